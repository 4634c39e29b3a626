#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The manifests of examples/kubernetes/ are as a cluster wants them, and fit each other. That
is tried with what is wrong too."""

import copy
import os
import sys

sys.dont_write_bytecode = True

import manifest
from manifest import claim


def changed(documents, change):
    copied = copy.deepcopy(documents)
    change(copied[-1]['spec']['template']['spec'], copied)
    return copied


def container(pod):
    return pod['containers'][0]


WRONG = [
    lambda pod, _: pod.update(hostPid=True),
    lambda pod, _: pod.update(hostPID='yes'),
    lambda pod, _: pod.pop('containers'),
    lambda pod, _: pod['volumes'][0].update(name='other'),
    lambda pod, _: container(pod).pop('image'),
    lambda pod, _: container(pod).update(args=['if']),
    lambda pod, _: container(pod).pop('securityContext'),
    lambda pod, _: container(pod)['env'][1]['valueFrom']['configMapKeyRef'].update(key='SERVER'),
    lambda pod, _: container(pod)['volumeMounts'][0].update(mountPropagation='Shared'),
    lambda pod, _: container(pod)['readinessProbe'].update(exec=['true']),
    lambda _, documents: documents[-1].update(apiVersion='v1'),
    lambda _, documents: documents[-1]['metadata'].update(name='Zk_lockfs'),
    lambda _, documents: documents[-1]['spec']['selector']['matchLabels'].update(app='other'),
    lambda _, documents: documents[0]['metadata'].pop('labels'),
]


def main():
    mounts, job = manifest.load('zklockfs.yaml'), manifest.load('job.yaml')
    for documents in (mounts, job):
        manifest.check(documents)
    for number, change in enumerate(WRONG):
        try:
            manifest.check(changed(mounts, change))
        except manifest.Wrong as wrong:
            print(wrong)
        else:
            sys.exit(f'nobody complains of the {number}th change')

    # Both look at the same directory of the node, in the right direction.
    places = [(volume['hostPath']['path'], mount['mountPath'], mount['mountPropagation'])
              for _, pod in manifest.pods(mounts + job)
              for volume in pod['volumes'] for mount in container(pod)['volumeMounts']]
    claim(places == [('/mnt/zklockfs', '/mnt/zklockfs', 'Bidirectional'),
                     ('/mnt/zklockfs', '/mnt/zklockfs', 'HostToContainer')], f'{places}')
    pod = manifest.pods(mounts)[0][1]
    options = manifest.kind(mounts, 'ConfigMap')[0]['data']['OPTIONS']
    drain = int(options.split('drain=')[1].rstrip('s'))
    claim(pod['terminationGracePeriodSeconds'] > drain + manifest.SESSION_SECONDS, 'no time to drain')
    script = container(pod)['args'][0]
    claim(all(word in script for word in ('umount -l', 'exec zklockfs -f')), script)
    with open(os.path.join(manifest.EXAMPLES, 'Containerfile'), encoding='utf-8') as file:
        claim(f'-t {container(pod)["image"]} ' in file.read(), 'Containerfile makes another image')


main()

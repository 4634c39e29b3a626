# SPDX-License-Identifier: MIT
"""manifest.py - reads the manifests of examples/kubernetes/ as strictly as a cluster would: each
field is one that there is, of its type; what one names, another is."""

import os
import re
import subprocess

import yaml

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'examples', 'kubernetes')
SESSION_SECONDS = 15    # zklockfs's session_timeout, where OPTIONS has none


class Wrong(Exception):
    pass


class Need:
    """A field that must be there."""

    def __init__(self, shape):
        self.shape = shape


class Pattern:
    def __init__(self, pattern):
        self.pattern = re.compile(pattern)


# A dict is an object with these fields, a list a list of these, a set one of these values, a
# type any value of it.
NAME = Pattern(r'[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?')
QUANTITY = Pattern(r'[0-9]+(m|Ki|Mi|Gi)?')
LABELS = {Pattern(r'([a-z0-9.-]+/)?[A-Za-z0-9._-]+'): str}
META = {'name': Need(NAME), 'namespace': NAME, 'labels': LABELS}
ENV = {
    'name': Need(Pattern(r'[A-Z_][A-Z0-9_]*')),
    'value': str,
    'valueFrom': {
        'fieldRef': {'fieldPath': Need({'spec.nodeName', 'metadata.name', 'status.podIP'})},
        'configMapKeyRef': {'name': Need(NAME), 'key': Need(str)},
    },
}
CONTAINER = {
    'name': Need(NAME),
    'image': Need(Pattern(r'[a-z0-9./-]+:[\w.-]+')),
    'command': [str],
    'args': [str],
    'env': [ENV],
    'securityContext': {'privileged': bool, 'runAsUser': int, 'runAsNonRoot': bool,
                        'allowPrivilegeEscalation': bool},
    'readinessProbe': {'exec': Need({'command': Need([str])}), 'periodSeconds': int},
    'resources': {'requests': {'cpu': QUANTITY, 'memory': QUANTITY}},
    'volumeMounts': [{'name': Need(NAME), 'mountPath': Need(Pattern('/.+')),
                      'mountPropagation': {'None', 'HostToContainer', 'Bidirectional'}}],
}
POD = {
    'hostPID': bool,
    'priorityClassName': {'system-node-critical', 'system-cluster-critical'},
    'automountServiceAccountToken': bool,
    'restartPolicy': {'Always', 'OnFailure', 'Never'},
    'tolerations': [{'operator': {'Exists', 'Equal'}}],
    'terminationGracePeriodSeconds': int,
    'containers': Need([CONTAINER]),
    'volumes': [{'name': Need(NAME), 'hostPath': Need({
        'path': Need(Pattern('/.+')), 'type': {'Directory', 'DirectoryOrCreate'}})}],
}
KINDS = {
    ('v1', 'Namespace'): {},
    ('v1', 'ConfigMap'): {'data': Need({Pattern(r'[\w.-]+'): str})},
    ('apps/v1', 'DaemonSet'): {'spec': Need({
        'selector': Need({'matchLabels': Need(LABELS)}),
        'updateStrategy': {'type': {'OnDelete', 'RollingUpdate'}},
        'template': Need({'metadata': Need({'labels': Need(LABELS)}), 'spec': Need(POD)}),
    })},
    ('batch/v1', 'Job'): {'spec': Need({
        'backoffLimit': int, 'template': Need({'metadata': {'labels': LABELS}, 'spec': Need(POD)})})},
}


def claim(condition, why):
    if not condition:
        raise Wrong(why)


def conform(value, shape, path):
    if isinstance(shape, Need):
        shape = shape.shape
    if isinstance(shape, dict):
        claim(isinstance(value, dict), f'{path} is no object')
        patterns = [key for key in shape if isinstance(key, Pattern)]
        for key, part in value.items():
            known = key if key in shape else next((p for p in patterns if p.pattern.fullmatch(str(key))), None)
            claim(known is not None, f'{path} has no field {key}')
            conform(part, shape[known], f'{path}.{key}')
        for key, part in shape.items():
            claim(not isinstance(part, Need) or key in value, f'{path} needs {key}')
    elif isinstance(shape, list):
        claim(isinstance(value, list) and value, f'{path} is no list')
        for number, part in enumerate(value):
            conform(part, shape[0], f'{path}[{number}]')
    elif isinstance(shape, set):
        claim(value in shape, f'{path}: {value!r} is none of {sorted(shape)}')
    elif isinstance(shape, Pattern):
        claim(isinstance(value, str) and shape.pattern.fullmatch(value), f'{path}: {value!r}')
    else:
        claim(type(value) is shape, f'{path}: {value!r} is no {shape.__name__}')


class Loader(yaml.SafeLoader):
    """A key that stands twice is wrong; the plain loader takes the last."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=deep) for key, _ in node.value]
        claim(len(keys) == len(set(keys)), f'a key stands twice:{node.start_mark}')
        return super().construct_mapping(node, deep)


def load(name):
    with open(os.path.join(EXAMPLES, name), encoding='utf-8') as file:
        return list(yaml.load_all(file, Loader))


def kind(documents, name):
    return [document for document in documents if document['kind'] == name]


def pods(documents):
    return [(document, document['spec']['template']['spec']) for document in documents
            if document['kind'] in ('DaemonSet', 'Job')]


def value_of(env, documents, node):
    """What a variable of a container is."""
    if 'value' in env:
        return env['value']
    source = env['valueFrom']
    if 'fieldRef' in source:
        claim(source['fieldRef']['fieldPath'] == 'spec.nodeName', f'{env["name"]}: not known here')
        return node
    wanted = source['configMapKeyRef']
    for each in kind(documents, 'ConfigMap'):
        if each['metadata']['name'] == wanted['name'] and wanted['key'] in each['data']:
            return each['data'][wanted['key']]
    raise Wrong(f'{env["name"]}: there is no {wanted}')


def check_container(container, pod, documents):
    name = container['name']
    volumes = {volume['name'] for volume in pod.get('volumes', [])}
    security = container.get('securityContext', {})
    for mount in container.get('volumeMounts', []):
        claim(mount['name'] in volumes, f'{name} mounts {mount["name"]}, which is no volume')
        claim(mount.get('mountPropagation') != 'Bidirectional' or security.get('privileged'),
              f'{name}: Bidirectional is for privileged containers alone')
    claim(not security.get('runAsNonRoot') or security.get('runAsUser') != 0, f'{name} runs as root')
    for env in container.get('env', []):
        value_of(env, documents, 'node')
    if container.get('command') == ['/bin/sh', '-c']:
        claim(len(container['args']) == 1, f'{name}: sh -c takes one text')
        said = subprocess.run(['shellcheck', '-s', 'sh', '-'], input=container['args'][0], text=True,
                              stdout=subprocess.PIPE, check=False)
        claim(said.returncode == 0, f'{name}: {said.stdout}')


def check(documents):
    for document in documents:
        head = (document.get('apiVersion'), document.get('kind'))
        claim(head in KINDS, f'there is no {head}')
        conform(document, {'apiVersion': str, 'kind': str, 'metadata': Need(META), **KINDS[head]}, head[1])
    namespaces = {each['metadata']['name']: each for each in kind(documents, 'Namespace')}
    for document, pod in pods(documents):
        meta, template = document['metadata'], document['spec']['template']
        for container in pod['containers']:
            check_container(container, pod, documents)
        if document['kind'] == 'DaemonSet':
            wanted = document['spec']['selector']['matchLabels']
            claim(wanted.items() <= template['metadata']['labels'].items(), 'the selector finds no pod')
            claim(pod.get('restartPolicy', 'Always') == 'Always', 'a DaemonSet always starts again')
        else:
            claim(pod.get('restartPolicy') in ('OnFailure', 'Never'), 'a Job says what restartPolicy it has')
        if pod.get('hostPID') or any(container.get('securityContext', {}).get('privileged')
                                     for container in pod['containers']):
            labels = namespaces[meta['namespace']]['metadata'].get('labels', {})
            claim(labels.get('pod-security.kubernetes.io/enforce') == 'privileged',
                  'the namespace lets no such pod in')

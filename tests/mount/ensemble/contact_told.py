#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The line of `systemctl status` says whether there is contact, since when, and how many hold, wait
and have lost a lock; it follows what changes, over a reload, too. The log has one line when the lease
is over though nobody holds, and one when contact is back."""

import os
import re
import signal

from harness import Systemd, check, check_equal, run, until

TIME = r'20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z'


def test(case):
    server = case.server(tick_ms=500)
    systemd = Systemd(case)
    mount = case.mount(server, session='4s', env={'NOTIFY_SOCKET': systemd.path})
    mount.allow('.')
    mount.mkdir('build')
    good = rf'In contact with 127\.0\.0\.1:{server.port} since ({TIME}); '
    since = systemd.until_status(good + '0 holders, 0 waiters; 0 losses since the start').group(1)
    until(lambda: 'READY=1\n' in systemd.listen(), 'it is ready')
    holder, waiter = mount.take('build').held(), mount.take('build')
    systemd.until_status(good + '1 holder, 1 waiter; 0 losses since the start')
    count = len(systemd.said)
    mount.reload()
    holder.do('write', b'more')
    waiter.kill()
    check_equal(systemd.until_status(good + '1 holder, 0 waiters; 0 losses since the start').group(1), since, 'since when')
    check(len(systemd.said) - count <= 4, f'it is told too often: {systemd.said[count:]}')

    server.stop()
    systemd.until_status(rf'NO CONTACT since {TIME}, locks are kept while the lease lasts; 1 holder, .*')
    systemd.until_status(rf'NO CONTACT since {TIME}, and the lease is over; 0 holders, 0 waiters; 1 loss since the start')
    holder.kill()
    until(lambda: re.search(r': no contact for \d+\.\d s: the lease is over', mount.log()), 'the log says that it is over')
    server.start()
    later = systemd.until_status(good + '0 holders, 0 waiters; 1 loss since the start').group(1)
    check(later > since, f'contact since {later}, and not {since}')
    mount.said(': contact is back after ')

    # Nobody holds, and it is said all the same; each once.
    server.stop()
    mount.said(': the lease is over', 2)
    systemd.until_status(rf'NO CONTACT since {TIME}, and the lease is over; .*')
    server.start()
    mount.ready()
    mount.said(': contact is back after ', 2)
    mount.said(': the lease is over', 2)

    last = mount.take('build').held()
    os.kill(mount.process.pid, signal.SIGTERM)
    systemd.until_status(r'Shutting down, waiting for holders; 1 holder, 0 waiters; .*')
    until(lambda: 'STOPPING=1\n' in systemd.listen(), 'it says that it stops')
    last.release()
    mount.check_end()


run(test)

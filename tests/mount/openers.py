# SPDX-License-Identifier: MIT
"""openers.py - processes that open a file in some way, and keep it open."""

import os
import signal
import socket
import traceback

from harness import _CLONE_NEWNS, _MS_BIND, check, die_with_parent, let_janitor_go, libc


def process(work, *args, uid=0, stays=True):
    """Start a process that calls work(*args), and then keeps the result, or ends. Returns its pid
    when the work is done."""
    ready, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(ready)
            let_janitor_go()
            signal.alarm(0)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            if uid:
                os.setgroups([])
                os.setgid(uid)
                os.setuid(uid)
            die_with_parent()
            kept = work(*args)
            os.write(theirs, b'.')
            os.close(theirs)
            if stays:
                signal.pause()
            del kept
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(theirs)
    check(os.read(ready, 1) == b'.', f'{work.__name__} is done')
    os.close(ready)
    return pid


def runs(pid):
    return os.waitpid(pid, os.WNOHANG)[0] == 0


def end(pid):
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def evict(mount, lock):
    """Evict the first taker in the queue of the lock."""
    with open(mount.path(lock, 'queue', mount.queue(lock)[0]), 'wb', buffering=0) as entry:
        entry.write(b'evict')


def other_name(path, scratch):
    """Open the file by a bind mount, as containers have it: by another name, in a mount namespace
    of its own."""
    check(libc.unshare(_CLONE_NEWNS) == 0, 'unshare')
    with open(scratch, 'wb'):
        pass
    check(libc.mount(path.encode(), scratch.encode(), None, _MS_BIND, None) == 0, 'a bind mount')
    return os.open(scratch, os.O_RDWR)


def send(path, to):
    """Open the file, and send the descriptor with a message, of which the receiver reads a part."""
    fd = os.open(path, os.O_RDWR)
    socket.send_fds(to, [b'a message that is longer'], [fd])


def receive(near):
    return near.recvmsg(1, socket.CMSG_SPACE(16))

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each version reads the records that the versions before it have written (make.py): a daemon could take over from them.
The files are of a machine with 64 bits, the lowest byte first, that runs for a minute."""

import fcntl
import glob
import os
import subprocess
import sys
import zlib

SIZE = 4096 + (16 << 20) + 2 * (256 << 20)     # of fs/store/journal.c
F_ADD_SEALS, SEALS = 1033, 7


def store(text):
    fd = os.memfd_create('records', os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, SIZE)
    at = 0
    while at < len(text):
        place, size = (int.from_bytes(text[at + i:at + i + 8], 'little') for i in (0, 8))
        os.pwrite(fd, text[at + 16:at + 16 + size], place)
        at += 16 + size
    fcntl.fcntl(fd, F_ADD_SEALS, SEALS)
    return fd


def main(program, directory):
    wrong = 0
    if sys.byteorder != 'little' or sys.maxsize < 1 << 32:
        return 77
    files = sorted(glob.glob(directory + '/*.z'))
    for path in files:
        with open(path, 'rb') as file:
            fd = store(zlib.decompress(file.read()))
        done = subprocess.run([program, f'--check-state={fd}', '-f', '-o', 'host=recorded,session_timeout=60s', '127.0.0.1:2181/locks', '/mnt'],
                              pass_fds=[fd], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        print(os.path.basename(path) + ':', done.stdout.strip())
        wrong += done.returncode != 0 or 'can take over from' not in done.stdout
        os.close(fd)
    return wrong if files else 1


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`ls -l` of a long queue, far from the ensemble: when entries are looked up one after the
other, many are read at a time; when one entry alone is looked up, only this one is read."""

import asyncio
import os
import re
import signal

from harness import Stopwatch, check, check_equal, command, libc, run

ENTRIES = 2000
DELAY = 0.005     # one way


async def _pass_on(reader, writer):
    """Copy the data, DELAY seconds later."""
    queue = asyncio.Queue()
    loop = asyncio.get_running_loop()

    async def read():
        while data := await reader.read(1 << 16):
            queue.put_nowait((loop.time() + DELAY, data))
        queue.put_nowait((loop.time(), b''))
    reading = asyncio.create_task(read())
    while True:
        when, data = await queue.get()
        await asyncio.sleep(max(0, when - loop.time()))
        if not data:
            break
        writer.write(data)
    await reading
    writer.close()


class FarServer:
    """The same server, behind a line with a delay."""

    def __init__(self, case, server):
        self.tick_ms = server.tick_ms
        read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                libc.prctl(1, signal.SIGKILL)   # PR_SET_PDEATHSIG
                signal.alarm(0)
                asyncio.run(self._serve(server.port, write))
            finally:
                os._exit(1)
        self.port = int(os.read(read, 16))
        os.close(read)
        os.close(write)
        case.cleanups.callback(self.end)

    @staticmethod
    async def _serve(port, write):
        async def connected(reader, writer):
            far = await asyncio.open_connection('127.0.0.1', port)
            await asyncio.gather(_pass_on(reader, far[1]), _pass_on(far[0], writer))
        listener = await asyncio.start_server(connected, '127.0.0.1', 0)
        os.write(write, str(listener.sockets[0].getsockname()[1]).encode())
        await listener.serve_forever()

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def test(case):
    server = case.server()
    mount = case.mount(FarServer(case, server), 'a', session='120s')
    mount.mkdir('build')
    client = server.client()
    for i in range(ENTRIES):
        client.create(f'/locks/build/_c_01234567-89ab-cdef-0123-{i:012x}-web{i % 9}.{i + 1}-lock-',
                      f'host: web{i % 9}\npid: {i + 1}\nuid: {1000 + i % 7}\n'.encode(), ephemeral=True, sequence=True)
    queue = mount.path('build', 'queue')

    watch = Stopwatch()
    status, out, _ = command(['ls', queue])
    watch.check(0, 2, 'ls')
    names = out.split()
    check_equal((status, len(names)), (0, ENTRIES), 'ls')
    check_equal(names[41], '0000000041-exclusive-42-web5', 'its name')

    # For one entry alone the mount reads the listing and this entry, and no other entries.
    def requests():
        return int(server.connections()[mount.session()]['recved'])
    costs = []
    for i in (1500, 7, 700, 301):
        before = requests()
        check_equal(os.stat(os.path.join(queue, names[i])).st_uid, 1000 + i % 7, 'its owner')
        costs.append(requests() - before)
    check(min(costs) <= 3, f'requests for one entry: {costs}')

    watch = Stopwatch()
    status, out, _ = command(['ls', '-ln', queue])
    # One after the other they would take 20 s.
    watch.check(0, 6, 'ls -l')
    lines = out.splitlines()[1:]
    check_equal((status, len(lines)), (0, ENTRIES), 'ls -l')
    for i, line in enumerate(lines):
        check(re.match(rf'-(rw{"x" if i == 0 else "-"}){{3}} +1 {1000 + i % 7} ', line) and line.endswith(names[i]),
              f'line {i}: {line}')

    # When the entries have gone, they are not shown any more.
    client.close()
    check_equal(command(['ls', '-l', queue])[1].split(), ['total', '0'], 'an empty queue')


run(test)

"""Exporters of one output at the same time, in processes and in threads."""

from __future__ import annotations

import os
import subprocess
import threading

from .replaced_file import export, names, python


def test_sixteen_exporters_race(tmp_path):
    """Each succeeds, the file always comes from one of them, and no other file remains."""
    target = tmp_path / "model.so"
    code = (
        "for count in range(25):\n"
        f"    with replacing({str(target)!r}) as workspace:\n"
        "        data = (b'%08d' % (os.getpid() * 100 + count)) * 5000\n"
        "        workspace.output.write_bytes(data)\n"
        "        assert workspace.output.read_bytes() == data\n"
        "        workspace.commit()\n"
    )
    target.write_bytes(b"00000000" * 5000)
    processes = [subprocess.Popen(python(code), stderr=subprocess.PIPE) for _ in range(16)]
    reads = 0
    while any(process.poll() is None for process in processes):
        data = target.read_bytes()
        assert data == data[:8] * 5000
        reads += 1
        os.sched_yield()
    errors = [process.communicate()[1].decode() for process in processes]
    assert [process.returncode for process in processes] == [0] * 16, errors
    assert reads > 0
    pids = {process.pid for process in processes}
    assert int(target.read_bytes()[:8]) // 100 in pids
    assert names(tmp_path) == ["model.so"]


def test_threads_race(tmp_path):
    """Within one process too every export has a separate folder."""
    target = tmp_path / "model.so"
    failures = []

    def work(number):
        try:
            for _ in range(20):
                export(target, bytes([number]) * 1000)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert target.read_bytes() in [bytes([number]) * 1000 for number in range(8)]
    assert names(tmp_path) == ["model.so"]

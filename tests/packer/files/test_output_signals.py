"""Signals while an output is written: the workspace is removed, handlers are restored."""

from __future__ import annotations

import os
import signal
import subprocess
import threading

import pytest

from packer.files.output import terminate_as_exception

from .replaced_file import python, untouched


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
)
def test_signal_cleans_up(old, number, status):
    """Ctrl-C, SIGTERM and SIGHUP leave only the old file."""
    code = (
        f"with terminate_as_exception(), replacing({str(old)!r}) as workspace:\n"
        "    workspace.output.write_bytes(b'half')\n"
        "    print('ready', flush=True)\n"
        "    for _ in range(6000):  # a signal just before a long sleep waits for its end\n"
        "        time.sleep(0.01)\n"
    )
    with untouched(old):
        process = subprocess.Popen(python(code), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        process.communicate(timeout=60)
        assert process.returncode == status


def test_second_signal_does_not_break_off_the_cleaning():
    """After the first SIGTERM the block's end is undisturbed."""
    cleaned = []
    with pytest.raises(SystemExit) as caught, terminate_as_exception():  # noqa: PT012
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGHUP)
            cleaned.append(True)
    assert (caught.value.code, cleaned) == (128 + signal.SIGTERM, [True])
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_handlers_of_others_are_left_alone():
    """A signal that is ignored (nohup) or handled stays so; other threads have no handlers."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with terminate_as_exception():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
    seen = []

    def enter():
        with terminate_as_exception():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [signal.SIG_DFL]

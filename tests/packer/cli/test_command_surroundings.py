"""Closed streams, full disks, signals and other surroundings of a command."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from ...support.command_line import ADD, CODE, COMMAND, TWO, Packer, digest, done, script_compiler


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_do_no_harm(packer: Packer, tmp_path: Path, closed: str) -> None:
    """Output never ends up in a file that was opened in place of a closed stream."""
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", *COMMAND]
    arguments = ["export", "model.so", "add.c", "--function", ADD, "-v"]
    assert subprocess.run([*command, *arguments], cwd=tmp_path, check=False).returncode == 0
    assert subprocess.run([*command, "load", "nonesuch"], cwd=tmp_path, check=False).returncode == 1
    assert (tmp_path / "add.c").read_text() == CODE
    assert done(packer("load", "-q", "model.so", "add", "40", "2")) == "42\n"


def test_closed_reader_is_not_an_error(packer: Packer, tmp_path: Path) -> None:
    """EPIPE ends the program as SIGPIPE would, without output."""
    done(packer("export", "model.so", "add.c", "--function", ADD))
    reader, writer = os.pipe()
    os.close(reader)
    for arguments in (["load", "model.so"], ["--help"], ["export", "m.so", "add.c"]):
        command = [*COMMAND, *arguments]
        run = subprocess.run(
            command,
            cwd=tmp_path,
            stdout=writer,
            stderr=subprocess.PIPE,
            check=False,
            env={k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"},
        )
        assert (run.returncode, run.stderr) == (128 + signal.SIGPIPE, b"")
    os.close(writer)


def test_full_disk_under_stdout_is_reported(packer: Packer, tmp_path: Path) -> None:
    """Output that cannot be written is an error."""
    done(packer("export", "model.so", "add.c", "--function", ADD))
    with open("/dev/full", "w") as full:
        command = [*COMMAND, "load", "model.so"]
        run = subprocess.run(
            command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert (
        run.returncode,
        run.stderr,
    ) == (1, b"packer: cannot write to stdout: No space left on device\n")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_signal_leaves_the_old_file(tmp_path: Path, packer: Packer, number: int, code: int) -> None:
    """The compiler ends too, no file is left, and the exit code states the signal."""
    (tmp_path / "model.so").write_text("old")
    started, survived = tmp_path / "started", tmp_path / "survived"
    environment = script_compiler(tmp_path, f"echo > {started}; sleep 3; echo > {survived}")
    command = [*COMMAND, "export", "model.so", "add.c", "--function", ADD]
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    )
    while not started.exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert (code, "") == (process.returncode, errors)
    assert (tmp_path / "model.so").read_text() == "old"
    time.sleep(3)
    assert sorted(os.listdir(tmp_path)) == ["add.c", "compiler", "model.so", "started"]


def test_signal_in_a_factory_is_not_its_error(tmp_path: Path, packer: Packer) -> None:
    """User code that catches nothing does not turn SIGTERM into a message."""
    (tmp_path / "build.py").write_text(
        "import os, signal, time\ndef make():\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n    time.sleep(60)\n"
    )
    (tmp_path / "packer.toml").write_text("[module.b]\nkind='python'\nfactory='build.py:make'\n")
    run = packer("export", "m.so")
    assert (run.returncode, run.stderr) == (143, "")


def test_surroundings_do_not_change_the_bytes(packer: Packer, tmp_path: Path) -> None:
    """Locale, time zone and umask do not matter; the umask decides only the mode."""
    (tmp_path / "packer.toml").write_text(
        f"[module.m]\nkind = 'c'\nsources = ['add.c']\nimports = ['k']\nfunctions.add = '{TWO}'\n"
        "[module.k]\nkind = 'opencl'\nsources = ['k.cl']\n"
    )
    (tmp_path / "k.cl").write_text("kernel void k() {}  // é", encoding="utf-8")
    digests = set()
    for locale, umask in (("C", 0o077), ("POSIX", 0), ("C.UTF-8", 0o022), ("tr_TR.UTF-8", 0o027)):
        environment = os.environ | {"LC_ALL": locale, "LANG": locale, "TZ": "Asia/Kathmandu"}
        done(packer("export", "m.so", env=environment, umask=umask))
        digests.add(digest(tmp_path / "m.so"))
        assert 0o777 & ~umask == (tmp_path / "m.so").stat().st_mode & 0o7777
        (tmp_path / "m.so").unlink()
    assert len(digests) == 1

"""Workspaces of killed exports are removed by the next export, and no other folder is."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time

from packer.files.output import replacing

from ...support import needs
from ...support.command_line import COMMAND
from ..compilers import program
from .replaced_file import (
    NEW,
    NOBODY,
    OLD,
    as_ordinary_user,
    build_shim,
    export,
    names,
    python,
    run_python,
)


def test_killed_export_is_swept_by_the_next(old):
    """A kill -9 leaves the old file; the next export removes the leftovers."""
    code = (
        f"with replacing({str(old)!r}) as workspace:\n"
        "    (workspace.directory / 'sub').mkdir()\n"
        "    (workspace.directory / 'sub' / 'lib0.o').write_bytes(b'half')\n"
        "    print(workspace.directory.name, flush=True)\n"
        "    time.sleep(60)\n"
    )
    process = subprocess.Popen(python(code), stdout=subprocess.PIPE, text=True)
    stale = process.stdout.readline().strip()
    export(old)
    assert names(old.parent) == sorted([stale, "model.so"])  # it lives: left alone
    process.kill()
    process.communicate()
    assert (old.parent / stale / "sub" / "lib0.o").exists()
    export(old, OLD)
    assert names(old.parent) == ["model.so"]


def test_temporary_folders_of_a_killed_export_are_swept(tmp_path) -> None:
    """An export whose compiler never ends is killed; TMPDIR is empty after the next one."""
    source, temporary = tmp_path / "a.c", tmp_path / "tmp"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary), "CC": str(tmp_path / "slow")}
    program(tmp_path / "slow", f'echo > "{tmp_path}/started"\nexec sleep 60')
    source.write_text("int f(int x) { return x; }")
    command = [*COMMAND, "export", "a.so", "a.c"]
    export_that_hangs = subprocess.Popen(command, cwd=tmp_path, env=environment)
    while not (tmp_path / "started").exists():
        time.sleep(0.01)
    left = names(temporary)
    export_that_hangs.kill()
    export_that_hangs.wait()
    assert left
    assert names(temporary) == left
    del environment["CC"]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    assert names(temporary) == []


def test_killed_at_any_time(tmp_path):
    """A kill -9 anywhere between mkdir and the end leaves the old or the new file, swept later."""
    old = tmp_path / "model.so"
    for calls in range(0, 60, 3):
        old.write_bytes(OLD)
        code = (
            "import signal\n"
            f"left = {calls}\n"
            "def count(event, args):\n"
            "    global left\n"
            "    if event.startswith(('os.', 'open', 'fcntl.', 'shutil.')):\n"
            "        left -= 1\n"
            "        if left < 0 and event != 'os.kill': os.kill(os.getpid(), signal.SIGKILL)\n"
            "def once():\n"
            f"    with replacing({str(old)!r}) as workspace:\n"
            "        workspace.output.write_bytes(b'the new bytes')\n"
            "        workspace.commit()\n"
            "sys.addaudithook(count)\n"
            "once()\n"
        )
        completed = run_python(code)
        assert old.read_bytes() in (OLD, NEW)
        if completed.returncode == 0:
            break
        assert completed.returncode == -signal.SIGKILL, completed.stderr
        with replacing(old) as workspace:
            assert names(tmp_path) == sorted([workspace.directory.name, "model.so"])
    assert completed.returncode == 0
    assert calls > 10


def test_folders_of_others_are_never_emptied(tmp_path):
    """A name like ours is not enough: without our lock file nothing in it is touched."""
    full = tmp_path / ".packer-0123456789abcdef"
    (full / "precious").mkdir(parents=True)
    (tmp_path / ".packer-cache").mkdir()
    (tmp_path / ".packer-cache" / ".lock").touch()
    link = tmp_path / ".packer-fedcba9876543210"
    link.symlink_to(tmp_path / ".packer-cache")
    (tmp_path / ".packer-cache" / "precious").touch()
    trap = tmp_path / ".packer-00000000000000ff"
    trap.mkdir()
    (trap / ".lock").symlink_to(tmp_path / ".packer-cache" / ".lock")
    before = [names(path) for path in (tmp_path, full, trap, tmp_path / ".packer-cache")]
    export(tmp_path / "model.so")
    (tmp_path / "model.so").unlink()
    assert [names(path) for path in (tmp_path, full, trap, tmp_path / ".packer-cache")] == before


def test_empty_folder_of_a_dead_process_is_swept(tmp_path):
    """A process killed between mkdir and the lock leaves an empty folder."""
    (tmp_path / ".packer-0123456789abcdef").mkdir()
    export(tmp_path / "model.so")
    assert names(tmp_path) == ["model.so"]


def test_stale_folder_that_cannot_be_removed_keeps_its_lock_file(shared_folder):
    """A folder that cannot be swept now can be swept later."""
    stale = shared_folder / ".packer-0123456789abcdef"

    def swept():
        (stale / "locked").mkdir(parents=True)
        (stale / "locked" / "file").touch()
        (stale / ".lock").touch()
        (stale / "locked").chmod(0o500)
        export(shared_folder / "model.so")
        assert names(stale) == [".lock", "locked"]
        (stale / "locked").chmod(0o700)
        export(shared_folder / "model.so")
        assert names(shared_folder) == ["model.so"]

    as_ordinary_user(swept)


def test_folder_with_an_orphan_at_work_keeps_its_lock_file(tmp_path):
    """A file that an orphaned compiler makes during a sweep is removed by the next sweep."""
    stale = tmp_path / ".packer-0123456789abcdef"
    stale.mkdir()
    (stale / ".lock").touch()
    audit.hook = lambda event, args: event == "os.rmdir" and (stale / "late.o").touch()
    try:
        export(tmp_path / "model.so")
    finally:
        audit.hook = None
    assert names(stale) == [".lock", "late.o"]
    export(tmp_path / "model.so")
    assert names(tmp_path) == ["model.so"]


def test_stale_folder_of_another_user_is_left(tmp_path):
    """Root too leaves folders of another user."""
    if os.geteuid() != 0:
        needs.system("root's rights", "only root could remove other users' folders")
    stale = tmp_path / ".packer-0123456789abcdef"
    stale.mkdir()
    (stale / ".lock").touch()
    os.chown(stale, NOBODY, NOBODY)
    export(tmp_path / "model.so")
    assert names(tmp_path) == [stale.name, "model.so"]


def test_file_system_without_locks(old, tmp_path_factory):
    """Without flock an export works, and no folder is swept."""
    shim = build_shim(
        tmp_path_factory, "int flock(int f, int o) { (void)f; (void)o; return errno = ENOLCK, -1; }"
    )
    stale = old.parent / ".packer-0123456789abcdef"
    stale.mkdir()
    (stale / ".lock").touch()
    code = f"with replacing({str(old)!r}) as w:\n    w.output.write_bytes(b'new'); w.commit()\n"
    completed = run_python(code, env={**os.environ, "LD_PRELOAD": shim})
    assert completed.returncode == 0, completed.stderr
    assert old.read_bytes() == b"new"
    assert names(old.parent) == [stale.name, "model.so"]


def test_sweeper_between_mkdir_and_lock(tmp_path):
    """A folder that a sweeper takes before it is locked is made again under another name."""
    swept = []
    audit.hook = lambda event, args: sweep_new_folder(event, args, tmp_path, swept)
    try:
        export(tmp_path / "model.so")
    finally:
        audit.hook = None
        os.close(audit.held)
    assert len(swept) == 3
    assert (tmp_path / "model.so").read_bytes() == NEW
    assert names(tmp_path) == ["model.so"]


def sweep_new_folder(event, args, parent, swept):
    """Play the sweeper at three points of a claim: no lock file yet, one, one that we hold."""
    folders = [path for path in parent.glob(".packer-*") if path not in swept]
    if not folders or len(swept) == 3:
        return
    folder = folders[0]
    lock = folder / ".lock"
    if event == "open" and str(args[0]) == str(lock) and len(swept) == 0:
        swept.append(folder)
        folder.rmdir()
    elif event == "fcntl.flock" and len(swept) == 1:
        swept.append(folder)
        lock.unlink()
        folder.rmdir()
    elif event == "fcntl.flock" and len(swept) == 2:
        swept.append(folder)
        audit.held = os.open(lock, os.O_RDWR)
        fcntl.flock(audit.held, fcntl.LOCK_EX)
        lock.unlink()
        folder.rmdir()


class audit:
    """One audit hook for this process (they cannot be removed), which tests switch on."""

    hook = None
    held = -1

    @staticmethod
    def call(event, args):
        """Call the test's hook, not from within itself."""
        hook, audit.hook = audit.hook, None
        if hook is not None:
            hook(event, args)
            audit.hook = hook


sys.addaudithook(audit.call)

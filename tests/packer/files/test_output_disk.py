"""Full and broken disks: the old file stays, and the error names the output."""

from __future__ import annotations

import errno
import os
import subprocess

import pytest

from packer.files.output import replacing
from runtime.error import ExportError

from ...support import needs
from .replaced_file import NEW, build_shim, names, python, run_python, untouched


def test_file_size_limit(old):
    """EFBIG, met while writing intermediate files, is an ExportError."""
    code = (
        "resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))\n"
        "try:\n"
        f"    with replacing({str(old)!r}) as workspace:\n"
        "        workspace.output.write_bytes(bytes(1 << 20))\n"
        "except ExportError as error:\n"
        "    print(error, error.path, error.__cause__.errno)\n"
    )
    with untouched(old):
        completed = run_python(code)
    assert completed.stdout == f"{old}: cannot write: File too large {old} {errno.EFBIG}\n"


@pytest.mark.parametrize("name", ["EIO", "ENOSPC", "EDQUOT"])
def test_disk_that_breaks_in_the_flush(old, tmp_path_factory, name):
    """A write error that fsync reports leaves the old file."""
    with untouched(old):
        completed = commit_with_fsync(old, tmp_path_factory, f"return errno = {name}, -1;")
    reason = os.strerror(getattr(errno, name))
    assert completed.stdout == f"{old}: cannot write: {reason}\n"


def test_folder_without_flush(old, tmp_path_factory):
    """A file system that does not flush folders causes no error after the rename."""
    body = (
        "struct stat s; fstat(f, &s);if (S_ISDIR(s.st_mode)) return errno = EINVAL, -1; return 0;"
    )
    completed = commit_with_fsync(old, tmp_path_factory, body)
    assert (completed.stdout, completed.stderr) == ("", "")
    assert old.read_bytes() == b"new"


def test_folder_whose_flush_breaks(old, tmp_path_factory):
    """A disk that breaks after the rename is reported, though the new file is there."""
    body = "struct stat s; fstat(f, &s); if (S_ISDIR(s.st_mode)) return errno = EIO, -1; return 0;"
    completed = commit_with_fsync(old, tmp_path_factory, body)
    assert completed.stdout == f"{old}: cannot write: Input/output error\n"
    assert old.read_bytes() == b"new"
    assert names(old.parent) == ["model.so"]


def commit_with_fsync(old, tmp_path_factory, body):
    """Export in a process whose fsync(int f) has this body."""
    code = (
        "try:\n"
        f"    with replacing({str(old)!r}) as w:\n"
        "        w.output.write_bytes(b'new'); w.commit()\n"
        "except ExportError as error:\n"
        "    print(error)\n"
    )
    shim = build_shim(tmp_path_factory, f"int fsync(int f) {{ {body} }}")
    return run_python(code, env={**os.environ, "LD_PRELOAD": shim})


def test_full_disk(tmp_path):
    """ENOSPC on a file system of 64 KiB is an ExportError, and the old file stays."""
    mount = [*needs.unshare("-rm"), "sh", "-c", 'mount -t tmpfs -o size=64k,nr_inodes=8 none "$0"']
    mount[-1] += ' && exec "$@"'
    if subprocess.run([*mount, tmp_path, "true"], capture_output=True).returncode != 0:
        needs.system("mounts in a user namespace", "mount(2) of a tmpfs is refused")
    old = tmp_path / "model.so"
    code = (
        f"old = pathlib.Path({str(old)!r}); old.write_bytes(b'old')\n"
        "def attempt(work):\n"
        "    try:\n"
        "        with replacing(old) as workspace:\n"
        "            work(workspace)\n"
        "    except ExportError as error:\n"
        "        print(error)\n"
        "    print(old.read_bytes(), os.listdir(old.parent))\n"
        "attempt(lambda workspace: workspace.output.write_bytes(bytes(1 << 20)))\n"
        "for number in range(20):\n"
        "    try: (old.parent / f'{number}').touch()\n"
        "    except OSError: break\n"
        "attempt(lambda workspace: print('reached'))\n"
        "os.unlink(old.parent / '0')\n"
        "attempt(lambda workspace: print('reached'))\n"
    )
    completed = run_python_under([*mount, str(tmp_path)], code)
    lines = completed.stdout.splitlines()
    full = f"{old}: cannot write: No space left on device"
    assert completed.returncode == 0, completed.stderr
    assert lines[:2] == [full, "b'old' ['model.so']"]
    assert lines[2] == lines[4] == full
    assert "reached" not in lines
    assert not any(".packer-" in line for line in lines)


def run_python_under(command: list[str], code: str) -> subprocess.CompletedProcess[str]:
    """Run some lines of Python under another command."""
    return subprocess.run([*command, *python(code)], capture_output=True, text=True, timeout=120)


def test_other_errors_of_the_block_are_not_ours(old):
    """A missing input, say, is not an error of the output."""
    with untouched(old), pytest.raises(FileNotFoundError), replacing(old):
        (old.parent / "missing").read_bytes()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO])
def test_full_disk_in_the_block_is_about_the_output(old, code):
    """A full or broken disk in the block is reported about the output."""
    with (
        untouched(old),
        pytest.raises(ExportError, match=f"cannot write: {os.strerror(code)}") as caught,
        replacing(old),
    ):
        raise OSError(code, os.strerror(code))
    assert caught.value.path == str(old)
    assert caught.value.__cause__.errno == code


def test_target_that_became_a_folder(tmp_path):
    """A rename that fails at the last moment is an ExportError."""
    target = tmp_path / "model.so"
    with replacing(target) as workspace:
        workspace.output.write_bytes(NEW)
        target.mkdir()
        with pytest.raises(ExportError, match=r"model\.so: cannot write: Is a directory"):
            workspace.commit()
    assert names(tmp_path) == ["model.so"]


def test_temporary_folder_of_the_system_does_not_matter(old):
    """A missing or full TMPDIR has no effect: all files are in the target's folder."""
    code = f"with replacing({str(old)!r}) as w:\n    w.output.write_bytes(b'new'); w.commit()\n"
    completed = run_python(code, env={**os.environ, "TMPDIR": "/no/such/folder"})
    assert completed.returncode == 0, completed.stderr
    assert old.read_bytes() == b"new"

"""Export into a file that exists, and check the remaining files."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import subprocess
import sys
from pathlib import Path

from packer.files.output import replacing

OLD = b"the old bytes"
NEW = b"the new bytes"
NOBODY = 65534


def export(path, data: bytes = NEW) -> None:
    """Simulate an export that succeeds."""
    with replacing(path) as workspace:
        workspace.output.write_bytes(data)
        workspace.commit()


def names(folder: Path | str) -> list[str]:
    """Return the names in a folder."""
    return sorted(os.listdir(folder))


def mode(path: Path) -> int:
    """The permission bits."""
    return stat.S_IMODE(path.stat().st_mode)


@contextlib.contextmanager
def untouched(path: Path):
    """Check that the file and its folder are unchanged afterwards, to the inode."""

    def state():
        found = path.stat()
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        return digest, found.st_ino, found.st_mode, found.st_mtime_ns, names(path.parent)

    before = state()
    yield
    assert state() == before


def run_python(code: str, **options) -> subprocess.CompletedProcess[str]:
    """Run some lines that begin with our names imported, in a fresh Python."""
    return subprocess.run(python(code), capture_output=True, text=True, timeout=120, **options)


def python(code: str) -> list[str]:
    """The command that runs some lines with our names imported."""
    prelude = (
        "import os, sys, time, pathlib, resource\n"
        "from packer.files.output import replacing, terminate_as_exception\n"
        "from runtime.error import ExportError\n"
    )
    return [sys.executable, "-c", prelude + code]


def as_ordinary_user(function) -> None:
    """Call it as an ordinary user, in a child process if we are root."""
    if os.geteuid() != 0:
        function()
        return
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            function()
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def build_shim(tmp_path_factory, function):
    """Compile a C function that replaces the C library's."""
    folder = tmp_path_factory.mktemp("shim")
    source = f"#include <errno.h>\n#include <sys/stat.h>\n{function}\n"
    (folder / "shim.c").write_text(source)
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-o", folder / "shim.so", folder / "shim.c"], check=True
    )
    return str(folder / "shim.so")

"""Atomic replacement of an output file (bad-input, parts E and G)."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from packer.files.output import replacing, shown_path, terminate_as_exception
from runtime.error import ExportError

OLD = b"the old bytes"
NEW = b"the new bytes"
NOBODY = 65534


def export(path, data: bytes = NEW) -> None:
    """Play an export that goes well."""
    with replacing(path) as workspace:
        workspace.output.write_bytes(data)
        workspace.commit()


def names(folder: Path | str) -> list[str]:
    """What lies in a folder."""
    return sorted(os.listdir(folder))


def mode(path: Path) -> int:
    """The permission bits."""
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def old(tmp_path):
    """An output that stood there before."""
    path = tmp_path / "model.so"
    path.write_bytes(OLD)
    return path


@contextlib.contextmanager
def untouched(path: Path):
    """Check that the file and its folder are afterwards what they were, to the inode."""

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
    """Call it as somebody whom permissions bind, in a child process if we are root."""
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


@pytest.fixture
def shared_folder():
    """A folder that anybody can reach and write."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o777)
    yield path
    path.chmod(0o777)
    shutil.rmtree(path)


# What a good export does


def test_new_file(tmp_path):
    """The file is there, and nothing else."""
    export(tmp_path / "model.so")
    assert (tmp_path / "model.so").read_bytes() == NEW
    assert names(tmp_path) == ["model.so"]


def test_old_file_is_replaced_by_a_new_inode(old):
    """Who has the old file open keeps it (E15)."""
    with old.open("rb") as reader:
        export(old)
        assert reader.read() == OLD
    assert old.read_bytes() == NEW
    assert names(old.parent) == ["model.so"]


def test_without_commit_nothing_changes(old):
    """Leaving the block is not enough."""
    with untouched(old), replacing(old) as workspace:
        workspace.output.write_bytes(NEW)


def test_workspace_is_private_and_beside_the_target(tmp_path):
    """Intermediate files lie in a folder of mode 0700 on the target's file system."""
    with replacing(tmp_path / "model.so") as workspace:
        assert workspace.directory.parent == tmp_path
        assert workspace.directory.name.startswith(".packer-")
        assert mode(workspace.directory) == 0o700
        assert workspace.output.parent == workspace.directory
        (workspace.directory / "sub").mkdir()
        (workspace.directory / "sub" / "lib0.o").write_bytes(b"object")
        (workspace.directory / "link").symlink_to(tmp_path)
    assert names(tmp_path) == []


def test_exception_removes_the_workspace(old):
    """What the block raises leaves as it is, and the old file stays."""
    with untouched(old), pytest.raises(ZeroDivisionError), replacing(old) as workspace:  # noqa: PT012
        workspace.output.write_bytes(NEW)
        raise ZeroDivisionError


def test_kept_workspace(tmp_path):
    """With workspace_dir the intermediate files stay; the output never lies there (F10)."""
    kept = tmp_path / "kept"
    kept.mkdir()
    directories = []
    for _ in range(2):
        with replacing(tmp_path / "model.so", workspace_dir=kept) as workspace:
            directories.append(workspace.directory)
            (workspace.directory / "lib0.c").write_text("int x;")
            assert workspace.output.parent.parent == tmp_path
            workspace.output.write_bytes(NEW)
            workspace.commit()
    assert sorted(directories) == sorted(kept / name for name in os.listdir(kept))
    assert all(path.name.startswith("packer-") and mode(path) == 0o700 for path in directories)
    assert [names(path) for path in directories] == [["lib0.c"]] * 2
    assert names(tmp_path) == ["kept", "model.so"]


def test_missing_workspace_dir(old):
    """A workspace_dir that is not there is an error about it."""
    missing = old.parent / "no"
    with (
        untouched(old),
        pytest.raises(ExportError, match="no: cannot write: No such file or directory"),
        replacing(old, workspace_dir=missing),
    ):
        pass


@pytest.mark.parametrize("umask", [0o077, 0o000, 0o022, 0o027])
def test_mode_follows_the_umask(old, umask):
    """The file gets the mode that a linker gives, whatever the old one had (E18)."""
    old.chmod(0o640)
    before = os.umask(umask)
    try:
        export(old)
    finally:
        assert os.umask(before) == umask
    assert mode(old) == 0o777 & ~umask


def test_relative_name_means_the_current_folder(tmp_path, monkeypatch):
    """A bare name lies where we are when the block begins (E5)."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with replacing("model.so") as workspace:
        workspace.output.write_bytes(NEW)
        monkeypatch.chdir(tmp_path)
        workspace.commit()
    assert (tmp_path / "here" / "model.so").read_bytes() == NEW


# Names


@pytest.mark.parametrize(
    "name",
    [
        "a b.so", "a\nb", "a\tb", "'\"`$(x)", "-o", "--", "@file", "ü",
        "e\N{COMBINING ACUTE ACCENT}", "\N{HEBREW LETTER ALEF}.so",
        b"\xff\xfe.so", "n" * 255, "ü" * 127,
    ],
    ids=ascii,
)  # fmt: skip
def test_any_name_works(tmp_path, monkeypatch, name):
    """Spaces, quotes, dashes, non-UTF-8 bytes, 255 bytes: a name is a name (E1, E2, E4, E12)."""
    monkeypatch.chdir(tmp_path)
    export(name)
    assert os.listdir(b".") == [os.fsencode(name)]
    export(Path(os.fsdecode(name)), b"again")
    assert Path(os.fsdecode(name)).read_bytes() == b"again"


@pytest.mark.parametrize("name", ["a\0b", "\0", "a\ud800"])
def test_name_that_no_file_can_have(tmp_path, name):
    """NUL and lone surrogates are a ValueError that is ours (E3)."""
    with pytest.raises(ExportError, match="no file can have this name") as caught:
        export(f"{tmp_path}/{name}")
    assert isinstance(caught.value, ValueError)
    assert names(tmp_path) == []


@pytest.mark.parametrize("name", ["", ".", "..", "/", "folder/", "new/", "folder/.", "folder/.."])
def test_name_of_no_file(tmp_path, monkeypatch, name):
    """Empty paths, dots and trailing slashes name no file (E6)."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(ExportError, match=r"^\S+: not the name of a file to write$") as caught:
        export(name)
    assert caught.value.path == name
    assert names(tmp_path) == ["folder"]


@pytest.mark.parametrize("name", ["n" * 256, "ü" * 128])
def test_name_too_long(tmp_path, name):
    """256 bytes are refused with the system's words (E12)."""
    with pytest.raises(ExportError, match="cannot write: File name too long"):
        export(tmp_path / name)
    assert names(tmp_path) == []


def test_path_too_long(tmp_path):
    """A path that leaves no room for a private folder, or is too long itself, is refused."""
    deep = str(tmp_path) + "/d" * ((4094 - len(str(tmp_path))) // 2)
    with pytest.raises(ExportError, match=r"File name too long|there is no folder"):
        export(deep)
    with pytest.raises(ExportError, match="cannot write: File name too long"):
        export(deep + "/ddddd")


def test_hostile_names_are_quoted_in_messages(tmp_path):
    """A newline in a name does not break the message's line."""
    (tmp_path / "a\nb").mkdir()
    with pytest.raises(ExportError, match=r"a\\nb': is a folder"):
        export(tmp_path / "a\nb")
    assert shown_path("plain ü.so") == "plain ü.so"


# What stands there already


def test_folder(tmp_path):
    """A folder is not replaced (E7)."""
    (tmp_path / "model.so").mkdir()
    with pytest.raises(ExportError, match=r"model\.so: is a folder, expected a file"):
        export(tmp_path / "model.so")
    assert names(tmp_path) == ["model.so"]


@pytest.mark.parametrize("path", ["/dev/null", "/dev/full", "/dev/zero"])
def test_device(path):
    """A device is refused as such (E7); tried by somebody who could do it no harm."""

    def refused():
        with pytest.raises(ExportError, match=f"^{path}: is a device, pipe or socket"):
            export(path)

    as_ordinary_user(refused)


def test_pipe_and_socket(tmp_path):
    """A FIFO or a socket is refused, and not waited for (E7)."""
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        for name in ("pipe", "socket"):
            with pytest.raises(ExportError, match=f"{name}: is a device, pipe or socket"):
                export(tmp_path / name)
    assert names(tmp_path) == ["pipe", "socket"]


def test_link_end_is_replaced(tmp_path, old):
    """Of a symbolic link, or a chain of them, what it points to is replaced (E9)."""
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "a.so").symlink_to("b.so")
    (tmp_path / "links" / "b.so").symlink_to("../model.so")
    export(tmp_path / "links" / "a.so")
    assert old.read_bytes() == NEW
    assert os.readlink(tmp_path / "links" / "a.so") == "b.so"
    assert names(tmp_path / "links") == ["a.so", "b.so"]


def test_dangling_link(tmp_path):
    """A link to what is not there yet makes it, if its folder is there (E9)."""
    (tmp_path / "a.so").symlink_to("model.so")
    (tmp_path / "b.so").symlink_to("no/model.so")
    export(tmp_path / "a.so")
    assert (tmp_path / "model.so").read_bytes() == NEW
    with pytest.raises(ExportError, match=r"b\.so: there is no folder \S+/no$"):
        export(tmp_path / "b.so")
    assert names(tmp_path) == ["a.so", "b.so", "model.so"]


def test_link_loop(tmp_path):
    """A link that leads to itself is refused (E9)."""
    (tmp_path / "a.so").symlink_to("b.so")
    (tmp_path / "b.so").symlink_to("a.so")
    with pytest.raises(ExportError, match="cannot write: Too many levels of symbolic links"):
        export(tmp_path / "a.so")
    assert names(tmp_path) == ["a.so", "b.so"]


def test_other_name_keeps_the_old_bytes(tmp_path, old):
    """Of a file with two names only the one named changes (E10)."""
    os.link(old, tmp_path / "other.so")
    export(old)
    assert ((tmp_path / "other.so").read_bytes(), old.read_bytes()) == (OLD, NEW)


def test_missing_folder(tmp_path):
    """A folder that is not there is named, not made (E13)."""
    with pytest.raises(ExportError, match=r"model\.so: there is no folder \S+/no$"):
        export(tmp_path / "no" / "model.so")
    assert names(tmp_path) == []


def test_file_in_place_of_the_folder(old):
    """A path through a file is refused."""
    with untouched(old), pytest.raises(ExportError, match="cannot write: Not a directory"):
        export(old / "model.so")


def test_write_protected_file(shared_folder):
    """A file of mode 0444 is refused before any work, though a rename would succeed (E11)."""
    old = shared_folder / "model.so"

    def refused():
        old.write_bytes(OLD)
        old.chmod(0o444)
        with untouched(old), pytest.raises(ExportError, match=r"model\.so: is write-protected$"):
            export(old)

    as_ordinary_user(refused)


def test_unreadable_file_is_replaced(shared_folder):
    """What the old file held is nobody's business: mode 0200 will do (E11)."""
    old = shared_folder / "model.so"

    def replaced():
        old.write_bytes(OLD)
        old.chmod(0o200)
        export(old)
        assert old.read_bytes() == NEW

    as_ordinary_user(replaced)


@pytest.mark.parametrize("folder_mode", [0o555, 0o666])
def test_write_protected_folder(shared_folder, folder_mode):
    """A folder that cannot be written or entered is refused before any work (E11)."""
    (shared_folder / "model.so").write_bytes(OLD)
    (shared_folder / "model.so").chmod(0o666)
    shared_folder.chmod(folder_mode)

    def refused():
        with pytest.raises(ExportError, match=r"cannot write"):
            export(shared_folder / "model.so")

    as_ordinary_user(refused)
    shared_folder.chmod(0o777)
    assert names(shared_folder) == ["model.so"]
    assert (shared_folder / "model.so").read_bytes() == OLD


def test_folder_that_cannot_be_listed(shared_folder):
    """Mode 0300 is enough: what is stale there stays."""
    folder = shared_folder / "dark"

    def exported():
        folder.mkdir(mode=0o300)
        export(folder / "model.so")
        folder.chmod(0o700)
        assert names(folder) == ["model.so"]

    as_ordinary_user(exported)


def test_folder_that_only_claims_to_be_writable():
    """Root may write anywhere, says access(); /proc says no when it is tried (E11)."""
    with pytest.raises(ExportError, match=r"/proc/model\.so: cannot write"):
        export("/proc/model.so")


# Signals and errors


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
)
def test_signal_cleans_up(old, number, status):
    """Ctrl-C, SIGTERM and SIGHUP leave the old file and nothing else (E17)."""
    code = (
        f"with terminate_as_exception(), replacing({str(old)!r}) as workspace:\n"
        "    workspace.output.write_bytes(b'half')\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(60)\n"
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


def test_file_size_limit(old):
    """EFBIG, met while writing intermediate files, is an ExportError (G3)."""
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


def test_output_that_is_a_link_is_not_followed(old, tmp_path_factory):
    """A linker that leaves a link in place of a file has not made a file."""
    other = tmp_path_factory.mktemp("other") / "other.so"
    other.write_bytes(NEW)
    other.chmod(0o600)
    with untouched(old), replacing(old) as workspace:
        workspace.output.symlink_to(other)
        with pytest.raises(ExportError, match="cannot write: Too many levels of symbolic links"):
            workspace.commit()
    assert mode(other) == 0o600


@pytest.mark.parametrize("name", ["EIO", "ENOSPC", "EDQUOT"])
def test_disk_that_breaks_in_the_flush(old, tmp_path_factory, name):
    """A write that comes out as bad in fsync leaves the old file (G3)."""
    with untouched(old):
        completed = commit_with_fsync(old, tmp_path_factory, f"return errno = {name}, -1;")
    reason = os.strerror(getattr(errno, name))
    assert completed.stdout == f"{old}: cannot write: {reason}\n"


def test_folder_without_flush(old, tmp_path_factory):
    """A file system that does not flush folders is no reason to complain after the rename."""
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


def build_shim(tmp_path_factory, function):
    """Compile a C function that stands in for the C library's."""
    folder = tmp_path_factory.mktemp("shim")
    source = f"#include <errno.h>\n#include <sys/stat.h>\n{function}\n"
    (folder / "shim.c").write_text(source)
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-o", folder / "shim.so", folder / "shim.c"], check=True
    )
    return str(folder / "shim.so")


def test_full_disk(tmp_path):
    """ENOSPC on a file system of 64 KiB is an ExportError, and the old file stays (G3)."""
    mount = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=64k,nr_inodes=8 none "$0"']
    mount[-1] += ' && exec "$@"'
    if subprocess.run([*mount, tmp_path, "true"], capture_output=True).returncode != 0:
        pytest.skip("this system lets nobody mount a tmpfs of their own")
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
    """Run some lines of Python behind another command."""
    return subprocess.run([*command, *python(code)], capture_output=True, text=True, timeout=120)


def test_other_errors_of_the_block_are_not_ours(old):
    """An input that is missing, say, is no trouble with the output."""
    with untouched(old), pytest.raises(FileNotFoundError), replacing(old):
        (old.parent / "missing").read_bytes()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO])
def test_full_disk_in_the_block_is_about_the_output(old, code):
    """Whoever writes into the workspace need not think of a full disk, or a broken one."""
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
    """A TMPDIR that is missing or full has no say: all lies beside the target (G4)."""
    code = f"with replacing({str(old)!r}) as w:\n    w.output.write_bytes(b'new'); w.commit()\n"
    completed = run_python(code, env={**os.environ, "TMPDIR": "/no/such/folder"})
    assert completed.returncode == 0, completed.stderr
    assert old.read_bytes() == b"new"


# Others at work in the same folder


def test_killed_export_is_swept_by_the_next(old):
    """A kill -9 leaves the old file; the next export takes away what was left (G1)."""
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
    assert names(old.parent) == sorted([stale, "model.so"])  # it lives: left alone (G7)
    process.kill()
    process.communicate()
    assert (old.parent / stale / "sub" / "lib0.o").exists()
    export(old, OLD)
    assert names(old.parent) == ["model.so"]


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
    """What cannot be swept today can be swept tomorrow."""
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
    """A file that an orphaned compiler makes while its folder is swept goes the next time."""
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


@pytest.mark.skipif(os.geteuid() != 0, reason="only root could remove what others own")
def test_stale_folder_of_another_user_is_left(tmp_path):
    """Root too leaves what somebody else planted or is at work in."""
    stale = tmp_path / ".packer-0123456789abcdef"
    stale.mkdir()
    (stale / ".lock").touch()
    os.chown(stale, NOBODY, NOBODY)
    export(tmp_path / "model.so")
    assert names(tmp_path) == [stale.name, "model.so"]


def test_file_system_without_locks(old, tmp_path_factory):
    """Where flock is not to be had an export works, and nobody's folder is swept."""
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


def test_sixteen_exporters_race(tmp_path):
    """Each succeeds, the file is always one of theirs, and nothing stays behind (G5, G6)."""
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
    """Within one process too every export has a folder of its own."""
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

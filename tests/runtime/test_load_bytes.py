"""load_from_bytes: libraries from memory, checked like files, one per content, nothing left."""

from __future__ import annotations

import fcntl
import gc
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import packer
import runtime

from ..support import needs
from ..support.process import run_python

ANSWER = "long answer(void) {{ return {}; }}"


def library_bytes(folder: Path, number: int = 42, *, nbytes: int = 0, options=()) -> bytes:
    """The file of a library whose function gives `number`, with a module of so many bytes."""
    root = packer.CSourceModule(ANSWER.format(number), functions={"answer": "long(void)"})
    root.import_module(runtime.DeviceModule("cuda", bytes(nbytes), "cubin", []))
    return packer.export_library(root, folder / f"{number}.so", options=options).read_bytes()


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> bytes:
    """A library's file, which is removed from disk."""
    return library_bytes(tmp_path_factory.mktemp("bytes"))


def descriptors() -> set[str]:
    """Return the open files: the names of the descriptors."""
    names = (Path("/proc/self/fd") / number for number in os.listdir("/proc/self/fd"))
    return {os.readlink(name) for name in names if name.is_symlink()}


def mappings() -> str:
    """The files that are mapped."""
    return Path("/proc/self/maps").read_text()


def test_library_is_loaded_from_its_bytes(data) -> None:
    """Functions and imports are available, and the module is named by its size."""
    module = runtime.load_from_bytes(data)
    assert module["answer"]() == 42
    assert [m.type_key for m in module.imported_modules] == ["cuda"]
    assert repr(module) == f"<LibraryModule '<{len(data)} bytes>'>"
    assert module.property_mask == 3


def test_equal_bytes_are_one_module(data, tmp_path) -> None:
    """Equal bytes are one module, from any buffer and from a file."""
    module = runtime.load_from_bytes(data)
    for equal in (bytearray(data), memoryview(bytes(bytearray(data)))):
        assert runtime.load_from_bytes(equal) is module
    del module
    gc.collect()
    (tmp_path / "lib.so").write_bytes(data)
    module = runtime.load(tmp_path / "lib.so")
    assert runtime.load_from_bytes(data) is module


def test_file_that_was_overwritten_is_not_taken_for_its_old_bytes(data, tmp_path) -> None:
    """The bytes are loaded, not a file that was loaded before."""
    path = tmp_path / "lib.so"
    path.write_bytes(data)
    module = runtime.load(path)
    path.unlink()
    path.write_bytes(b"other")
    assert runtime.load_from_bytes(data) is not module


def overwrite(path: Path, data: bytes) -> None:
    """The file is changed in place, with its earlier times."""
    times = path.stat()
    with path.open("r+b") as file:
        file.write(data)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def replace(path: Path, data: bytes) -> None:
    """The file is replaced by a rename, with its earlier times."""
    times = path.stat()
    path.with_name("fresh").write_bytes(data)
    os.utime(path.with_name("fresh"), ns=(times.st_atime_ns, times.st_mtime_ns))
    path.with_name("fresh").rename(path)


@pytest.mark.parametrize("change", [overwrite, replace])
def test_bytes_are_compared_with_the_loaded_ones(change, data, tmp_path) -> None:
    """A changed file is not the loaded one, whatever its times; here a name was changed."""
    path = tmp_path / "lib.so"
    path.write_bytes(data)
    module = runtime.load(path)
    other = data.replace(b"cubin", b"Cubin", 1)
    change(path, other)
    again = runtime.load_from_bytes(other)
    assert again is not module
    assert again.imported_modules[0].fmt == "Cubin"


def test_bytes_of_equal_size_are_distinguished(data) -> None:
    """One byte makes another library: here one of the device module's."""
    other = data.replace(b"cubin", b"Cubin", 1)
    first, second = runtime.load_from_bytes(data), runtime.load_from_bytes(other)
    assert [m.imported_modules[0].fmt for m in (first, second)] == ["cubin", "Cubin"]


def test_memory_is_sealed(data) -> None:
    """The checked bytes cannot be changed before or while they run."""
    module = runtime.load_from_bytes(data)
    descriptor = module._library.descriptor
    seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
    assert fcntl.fcntl(descriptor, fcntl.F_GET_SEALS) & seals == seals
    with pytest.raises(PermissionError):
        os.pwrite(descriptor, b"x", 0)


def test_overwritten_buffer_does_not_reach_the_library(data) -> None:
    """The bytes were copied: the caller may reuse the buffer."""
    buffer = bytearray(data)
    module = runtime.load_from_bytes(buffer)
    buffer[:] = bytes(len(buffer))
    assert module["answer"]() == 42


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda d: b"", "not-elf"),
        (lambda d: b"hello", "not-elf"),
        (lambda d: d[:-1000], "truncated"),
        (lambda d: d[:18] + b"\xb7\0" + d[20:], "machine"),
        (lambda d: d[:64], "truncated"),
    ],
)
def test_damaged_bytes_are_refused_before_they_run(damage, reason, data) -> None:
    """The same native check as of a file; the message has the size, and nothing stays open."""
    damaged, before = damage(data), descriptors()
    with pytest.raises(runtime.LibraryLoadError, match=f"^<{len(damaged)} bytes>: ") as info:
        runtime.load_from_bytes(damaged)
    assert (info.value.reason, info.value.path) == (reason, f"<{len(damaged)} bytes>")
    assert descriptors() == before


def test_library_that_cannot_be_bound_is_refused(compile_library) -> None:
    """The error names the undefined symbol."""
    data = compile_library("long no_such(void); long f(void) { return no_such(); }").read_bytes()
    with pytest.raises(runtime.LibraryLoadError, match="undefined symbol: no_such") as info:
        runtime.load_from_bytes(data)
    assert info.value.reason == "dlopen"


def test_object_without_contiguous_buffer_is_a_type_error(data) -> None:
    """The message is Python's."""
    for wrong in ("text", None, 42):
        with pytest.raises(TypeError, match="bytes-like"):
            runtime.load_from_bytes(wrong)
    with pytest.raises(TypeError, match="contiguous"):
        runtime.load_from_bytes(memoryview(data)[::2])


def test_descriptor_is_kept_as_long_as_the_library(data) -> None:
    """A function, and a view of the blob, keep it; the last one closes it."""
    gc.collect()
    before = descriptors()
    module = runtime.load_from_bytes(data)
    assert descriptors() - before == {"/memfd:packer (deleted)"}
    function, view = module["answer"], module.imported_modules[0].data
    del module
    assert function() == 42
    del function
    assert descriptors() - before == {"/memfd:packer (deleted)"}
    del view
    assert descriptors() == before
    assert "memfd:packer" not in mappings()


NEVER_UNLOADED = """
import json, pathlib, sys, runtime
stays, other = (pathlib.Path(path).read_bytes() for path in sys.argv[1:])
module = runtime.load_from_bytes(stays)
numbers, answers = [module._library.descriptor], [module["answer"]()]
del module
module = runtime.load_from_bytes(other)
print(json.dumps([numbers[0] == module._library.descriptor, *answers, module["answer"]()]))
"""


def test_reused_number_gives_the_new_library(tmp_path) -> None:
    """One that is never unloaded keeps the name; dlopen compares names first."""
    library_bytes(tmp_path, 1, options=("-Wl,-z,nodelete",))
    library_bytes(tmp_path, 2)
    paths = [str(tmp_path / name) for name in ("1.so", "2.so")]
    assert run_python(NEVER_UNLOADED, *paths) == [True, 1, 2]


def test_rounds_leave_nothing_open(tmp_path) -> None:
    """Two libraries in turn: no descriptor and no mapping is left."""
    files = [library_bytes(tmp_path, number) for number in (1, 2)]
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(200):
        assert [runtime.load_from_bytes(file)["answer"]() for file in files] == [1, 2]
    assert len(os.listdir("/proc/self/fd")) == before
    assert "memfd:packer" not in mappings()


def test_many_threads_get_one_module(tmp_path) -> None:
    """Loads run one after another, for equal bytes and for different ones."""
    files = [library_bytes(tmp_path, number) for number in (1, 2)] * 16
    with ThreadPoolExecutor(16) as pool:
        modules = list(pool.map(runtime.load_from_bytes, files))
    assert len(set(map(id, modules))) == 2
    assert [m["answer"]() for m in modules[:2]] == [1, 2]


def test_large_bytes_are_not_copied_in_python(tmp_path) -> None:
    """A load, and a search for loaded bytes, copy nothing: some 32 MiB."""
    data = library_bytes(tmp_path, nbytes=32 << 20)
    tracemalloc.start()
    module = runtime.load_from_bytes(data)
    assert runtime.load_from_bytes(bytearray(data)) is module  # 32 MiB of it are that bytearray
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < (32 << 20) + (2 << 20)


FORK = """
import json, os, pathlib, sys, runtime
first, second = (pathlib.Path(path).read_bytes() for path in sys.argv[1:])
module = runtime.load_from_bytes(first)
if child := os.fork():
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(json.dumps([status, module["answer"]()]))
else:
    same = runtime.load_from_bytes(first) is module
    answers = module["answer"](), runtime.load_from_bytes(second)["answer"]()
    os._exit(3 if same and answers == (1, 2) else 4)
"""


def test_library_works_on_both_sides_of_a_fork(tmp_path) -> None:
    """The child calls it, finds it again, and loads another."""
    for number in (1, 2):
        library_bytes(tmp_path, number)
    assert run_python(FORK, str(tmp_path / "1.so"), str(tmp_path / "2.so")) == [3, 1]


# seccomp(2): memfd_create is refused as by a kernel, or a policy, that has none.
NO_MEMFD = """
import ctypes, struct, platform
number = {"x86_64": 319, "aarch64": 279}[platform.machine()]
steps = struct.pack("HBBI" * 4, 0x20, 0, 0, 0, 0x15, 0, 1, number,
                    6, 0, 0, 0x00050001, 6, 0, 0, 0x7FFF0000)
buffer = ctypes.create_string_buffer(steps)
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 4, ctypes.addressof(buffer)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, program) == 0, ctypes.get_errno()
"""
LOAD = """
import json, os, pathlib, sys, runtime
data = pathlib.Path(sys.argv[1]).read_bytes()
try:
    runtime.load_from_bytes(data)
except runtime.LibraryLoadError as error:
    refusal = [error.reason, str(error)]
module = runtime.load_from_bytes(data, allow_file=True)
assert runtime.load_from_bytes(data) is module
copy = runtime.import_module_from_base64(runtime.export_module_to_base64(module))
assert copy is module
name = module._library.path
info = os.fstat(module._library.descriptor)
print(json.dumps([module["answer"](), name, info.st_nlink, oct(info.st_mode), refusal]))
"""
ADVICE = "; to load a private file that is not sealed, use load_from_bytes(data, allow_file=True)"


def test_without_memory_files_a_private_one_may_be_used(data, tmp_path, monkeypatch) -> None:
    """Only if it is allowed; readable only by its owner, and removed after the load."""
    (tmp_path / "lib.so").write_bytes(data)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    answer, name, links, mode, refusal = run_python(NO_MEMFD + LOAD, str(tmp_path / "lib.so"))
    text = f"<{len(data)} bytes>: cannot be loaded from a sealed file in memory: "
    assert refusal == ["io", text + "Operation not permitted" + ADVICE]
    assert (answer, name) == (42, f"<{len(data)} bytes>")
    assert (links, mode) == (0, "0o100600")
    assert list((tmp_path / "temporary").iterdir()) == []


def test_without_proc_a_private_file_may_be_used(data, tmp_path) -> None:
    """A memory file has no name to open it by."""
    (tmp_path / "lib.so").write_bytes(data)
    script = f'mount -t tmpfs none /proc && exec "{sys.executable}" -c "$0" "$1"'
    command = [*needs.unshare("-rm"), "sh", "-c", script, LOAD, str(tmp_path / "lib.so")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f'[42, "<{len(data)} bytes>", 0,' in done.stdout


NO_ROOM = """
import json, pathlib, resource, sys, runtime
data = pathlib.Path(sys.argv[1]).read_bytes()
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    runtime.load_from_bytes(data, allow_file=len(sys.argv) > 2)
except runtime.LibraryLoadError as error:
    print(json.dumps([error.reason, str(error)]))
"""


def test_missing_room_for_the_bytes_is_reported(data, tmp_path, monkeypatch) -> None:
    """Neither in memory nor on disk; nothing is left there."""
    (tmp_path / "lib.so").write_bytes(data)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    reason, text = run_python(NO_ROOM, str(tmp_path / "lib.so"), "allow_file")
    assert reason == "io"
    expected = f"<{len(data)} bytes>: cannot be written to a private file: File too large"
    assert text == expected
    reason, text = run_python(NO_ROOM, str(tmp_path / "lib.so"))
    assert (reason, "memory: File too large; to load" in text) == ("io", True)
    assert list((tmp_path / "temporary").iterdir()) == []


def test_own_name_and_descriptor_of_the_core(compile_library: Callable[..., Path]) -> None:
    """`load_from_bytes` needs a name for messages, and a descriptor that the library closes."""
    from runtime._core import Library

    read, write = os.pipe()
    os.close(write)
    path = compile_library("int named;")
    library = Library(str(path), name="shown", descriptor=read)
    assert (library.path, library.descriptor) == ("shown", read)
    with pytest.raises(runtime.LibraryLoadError, match="^shown: "):
        Library("/no/such", name="shown")
    assert Library(str(path)).descriptor == -1
    os.fstat(read)
    del library
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(read)

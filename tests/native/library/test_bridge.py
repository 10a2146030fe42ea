"""Libraries that leave TVM's functions undefined, and processes that hold a TVM runtime too."""

from __future__ import annotations

import ctypes
import gc
import importlib.util
import os
import subprocess
import sys
import threading
from itertools import permutations
from pathlib import Path

import pytest

import runtime

from ...support import needs
from ...support.paths import C_SOURCES

SOURCE = C_SOURCES / "undefined.c"


@pytest.fixture
def undefined(compile_library) -> Path:
    """The compiled undefined.c."""
    path: Path = compile_library(SOURCE.read_text())
    return path


def load_beside(path: Path) -> runtime.Module:
    """Load it, with an import that has the function it calls."""
    from ...support.importing import importing

    module = runtime.load(path)
    importing(module, **{"test.beside": lambda *args: ["ours", *args][-1]})
    return module


def test_plain_dlopen_refuses_such_a_library(undefined) -> None:
    """A plain dlopen cannot open the library that the bridge opens."""
    with pytest.raises(OSError, match="undefined symbol: TVMFFI"):
        ctypes.CDLL(str(undefined), os.RTLD_NOW)


def test_library_that_leaves_functions_undefined_runs(undefined) -> None:
    """The core makes look-ups, calls and errors."""
    module = load_beside(undefined)
    assert module["call_global"](1, 2) == 2
    assert module["apply"](max, 1, 3) == 3
    with pytest.raises(KeyError, match="in parts"):
        module["fail"]()


def test_nothing_becomes_global(undefined) -> None:
    """Neither the core nor the library is in the scope where others look."""
    module = load_beside(undefined)
    process = ctypes.CDLL(None)
    for name in ("TVMFFIFunctionCall", "TVMFuncCall", "__tvm_ffi_fail", "PyInit__core"):
        with pytest.raises(AttributeError):
            getattr(process, name)
    del module


def lines_of_maps(text: str) -> list[str]:
    """The lines of this process's memory map that contain a text."""
    return [line for line in Path("/proc/self/maps").read_text().splitlines() if text in line]


def test_bridge_stays_as_long_as_the_library(undefined) -> None:
    """No descriptor remains; closing the library unmaps it, and the bridge with the stubs."""
    gc.collect()
    before = len(lines_of_maps("dso-packer-bridge"))
    descriptors = len(os.listdir("/proc/self/fd"))
    module = load_beside(undefined)
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert len(lines_of_maps("dso-packer-bridge")) > before
    del module
    assert len(lines_of_maps("dso-packer-bridge")) == before
    assert lines_of_maps(str(undefined)) == []


def test_no_memory_of_a_bridge_is_writable_and_executable(undefined) -> None:
    """The stubs are in one segment, what the loader writes in another."""
    module = load_beside(undefined)
    rights = {line.split()[1] for line in lines_of_maps("dso-packer-bridge")}
    assert rights == {"r-xp", "---p", "rw-p"}
    del module


def test_missing_function_is_named(compile_library) -> None:
    """A function that the core does not provide stays undefined."""
    path = compile_library(SOURCE.read_text(), "-DMORE")
    with pytest.raises(runtime.LibraryLoadError, match="undefined symbol: TVMFFINobody") as caught:
        runtime.load(path)
    assert str(caught.value).count(str(path)) == 1
    assert caught.value.reason == "dlopen"


def test_replaced_file_gives_new_code(compile_library, tmp_path) -> None:
    """A new file under an old name is opened again, while the old one is in use."""
    path = tmp_path / "lib.so"
    modules = []
    for version in (1, 2, 3):
        new = compile_library(SOURCE.read_text(), f"-DVERSION={version}")
        (tmp_path / "new").write_bytes(new.read_bytes())
        (tmp_path / "new").rename(path)
        modules.append(load_beside(path))
    assert [module["version"]() for module in modules] == [1, 2, 3]
    assert [module["call_global"](n) for n, module in enumerate(modules)] == [0, 1, 2]


@pytest.mark.parametrize(
    "name", ["with space.so", "ż'ółw\"\n.so", "$(echo).so", "-Wl,x.so", "$LIB.so"]
)
def test_any_file_name(undefined, tmp_path, name) -> None:
    """The path is stored unchanged in a dynamic section."""
    path = tmp_path / name
    path.write_bytes(undefined.read_bytes())
    assert load_beside(path)["version"]() == 1


def test_bridges_in_threads(undefined, tmp_path) -> None:
    """Threads load one file and different ones at the same time."""
    paths = [tmp_path / f"{i}.so" for i in range(4)]
    for path in paths:
        path.write_bytes(undefined.read_bytes())
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for i in range(30):
                module = load_beside(paths[(number + i) % 4])
                assert module["call_global"](i) == i
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_weak_reference_needs_no_bridge(compile_library) -> None:
    """Our own wrappers refer to a setter weakly; without a TVM runtime it is NULL for them."""
    path = compile_library(
        '#include "dso_packer.h"\n'
        "DSO_EXPORT int __tvm_ffi_has(void *h, const dso_any *a, int32_t n, dso_any *result) {\n"
        "  *result = dso_bool(TVMFFIErrorSetRaisedFromCStr != NULL);\n  return 0;\n}\n"
    )
    assert runtime.load(path)["has"]() is False


# ---- One process with torch, a real tvm_ffi and us, in every order

OURS = """
import runtime
@runtime.register_func("test.beside")
def ours_beside(*args): return len(args)
module = runtime.load(path)
def check_ours():
    assert module["call_global"](1, 2, 3) == 3
    assert module["apply"](lambda a, b: a + b, 40, 2) == 42
    expect(module["fail"])
    expect(lambda: module["apply"](raises))
"""
THEIRS = """
import tvm_ffi
@tvm_ffi.register_global_func("test.beside")
def theirs_beside(*args): return len(args)
theirs = tvm_ffi.load_module(path) if load_both else None
def check_theirs():
    if theirs is None: return
    assert theirs["call_global"](1, 2, 3) == 3
    assert theirs["apply"](tvm_ffi.convert(lambda a, b: a + b), 40, 2) == 42
    expect(theirs["fail"])
"""
GLOBAL = """
import ctypes, tvm_ffi
ctypes.CDLL(str(tvm_ffi.libinfo.find_libtvm_ffi()), ctypes.RTLD_GLOBAL)
"""
TORCH = """
import torch
assert torch.arange(3).sum() == 3
"""
COMMON = """
import sys
path, load_both = sys.argv[1], sys.argv[2] == "both"
def raises(): raise KeyError("of a callback")
def expect(call):
    try: call()
    except KeyError: return
    raise AssertionError("expected a KeyError")
"""
CHECK = """
for _ in range(2):
    if "module" in globals(): check_ours()
    if "theirs" in globals(): check_theirs()
"""
PARTS = {"torch": TORCH, "tvm_ffi": THEIRS, "ours": OURS, "global": GLOBAL}


def run_code(code: str, path: Path, which: str = "both") -> subprocess.CompletedProcess[str]:
    """Run a program in a fresh process."""
    return subprocess.run(
        [sys.executable, "-c", code, str(path), which],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def run_order(order: tuple[str, ...], path: Path, which: str) -> None:
    """Run the parts in a fresh process, and all checks after each of them."""
    code = COMMON + "".join(PARTS[name] + CHECK for name in order)
    done = run_code(code, path, which)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")


@pytest.mark.parametrize("order", list(permutations(("torch", "tvm_ffi", "ours"))), ids="-".join)
def test_beside_torch_and_tvm_ffi(undefined, order) -> None:
    """Every order of the three in one process, both runtimes on one file."""
    needs.module("torch", "torch")
    run_order(order, undefined, "both")


@pytest.mark.parametrize("order", [("global", "ours"), ("ours", "global")], ids="-".join)
def test_beside_a_global_tvm_ffi(undefined, order) -> None:
    """libtvm_ffi is in the global scope, where look-ups begin."""
    run_order(order, undefined, "ours")


def test_pointer_variables_beside_a_global_tvm_ffi(compile_library) -> None:
    """Such libraries get the core's functions, which know the core's contexts."""
    path = compile_library((C_SOURCES / "host.c").read_text())
    code = (
        "import runtime\n"
        'runtime.register_func("test.beside")(lambda *args: len(args))\n'
        'assert runtime.load(path)["call"]("test.beside", 1, 2) == 2\n'
    )
    done = run_code(COMMON + GLOBAL + code, path, "ours")
    assert (done.returncode, done.stderr) == (0, "")


REFUSED = """
import runtime
def refused():
    try: runtime.load(path)
    except runtime.LibraryLoadError as error: return error.reason + ": " + str(error)
    raise AssertionError("expected an error")
"""


def test_file_that_was_opened_beside_a_global_tvm_ffi(undefined) -> None:
    """Its code calls tvm_ffi's look-up, which would follow the core's context and crash."""
    needs.importable("tvm_ffi", "test")
    code = COMMON + GLOBAL + "ctypes.CDLL(path)\n" + REFUSED
    code += "assert refused().startswith(f'dlopen: {path}: is bound to another TVM runtime')\n"
    done = run_code(code + THEIRS + OURS + CHECK, undefined)
    assert (done.returncode, done.stderr) == (0, "")


def test_file_that_is_opened_again_beside_a_global_tvm_ffi(undefined) -> None:
    """A file that the core opened first stays bound to the core, also for a later load."""
    needs.importable("tvm_ffi", "test")
    code = COMMON + OURS + GLOBAL + "ctypes.CDLL(path)\ncheck_ours()\ndel module\n"
    done = run_code(code + "module = runtime.load(path)\n" + CHECK, undefined)
    assert (done.returncode, done.stderr) == (0, "")


def test_file_that_depends_on_tvm_ffi(compile_library) -> None:
    """Its look-ups are tvm_ffi's as well; they need the context that tvm_ffi sets."""
    needs.importable("tvm_ffi", "test")
    folder = Path(str(importlib.util.find_spec("tvm_ffi").origin)).parent / "lib"
    path = compile_library(SOURCE.read_text(), f"-L{folder}", "-ltvm_ffi", f"-Wl,-rpath,{folder}")
    code = COMMON + REFUSED + "assert 'it depends on' in refused()\n"
    done = run_code(code + THEIRS + OURS + CHECK, path)
    assert (done.returncode, done.stderr) == (0, "")


def test_core_that_is_global_itself(undefined) -> None:
    """Where extension modules are imported RTLD_GLOBAL, the core finds its own setter."""
    flags = "import os, sys\nsys.setdlopenflags(os.RTLD_NOW | os.RTLD_GLOBAL)\n"
    done = run_code(flags + COMMON + OURS + CHECK, undefined, "ours")
    assert (done.returncode, done.stderr) == (0, "")

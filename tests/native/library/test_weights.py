"""dso_weight: host code of a library reads the weights of its tree."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import packer
import runtime

from ...support import needs
from ...support.compile import INCLUDE
from ...support.weights_host import ARRAYS, export_reader


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    """The library of weights_host.py."""
    return export_reader(tmp_path_factory.mktemp("weights") / "model.so")


def test_host_code_reads_the_weights_in_place(path) -> None:
    """The first of equal names counts; the address is that of Python's view."""
    module = runtime.load(path)
    assert module["weight_sum"]("layer.weight") == ARRAYS["layer.weight"].sum()
    assert module["weight_sum"]("layer.bias") == 1.5
    assert module["weight_sum"]("more") == 2.0
    address = module.weights["layer.weight"].numpy().ctypes.data
    assert module["weight_address"]("layer.weight") == address


def test_missing_weight_is_named_with_near_names(path) -> None:
    """The KeyError passes through host code."""
    module = runtime.load(path)
    what = "its host code reads weight 'layer.weigth', which no module of its tree has"
    with pytest.raises(KeyError, match=f"{what}; near names: 'layer.weight', 'layer.bias'"):
        module["weight_sum"]("layer.weigth")


def test_weights_follow_the_tree(path, tmp_path) -> None:
    """An import of Python's has weights as well; a tensor stays borrowed after it was removed."""

    class Weighty(runtime.Module):
        type_key = "weighty"

        @property
        def own_weights(self) -> dict[str, runtime.Tensor]:
            return {"new": runtime.tensor(np.full(4, 2.0, "f4"))}

    module = runtime.load(path)
    module.import_module(Weighty())
    assert module["weight_sum"]("new") == 8.0
    address = module["weight_address"]("new")
    assert module["weight_address"]("new") == address
    module.clear_imports()
    gc.collect()
    assert ctypes.cast(address, ctypes.POINTER(ctypes.c_float))[3] == 2.0
    with pytest.raises(KeyError, match="which no module of its tree has"):
        module["weight_sum"]("new")


def test_borrowed_weights_do_not_keep_the_library_open(tmp_path) -> None:
    """The file is unmapped with its last function."""
    path = export_reader(tmp_path / "closed.so")
    module = runtime.load(path)
    assert module["weight_sum"]("more") == 2.0
    del module
    gc.collect()
    assert str(path) not in Path("/proc/self/maps").read_text()


def test_threads_read_weights(path) -> None:
    """Calls without the GIL take it for the look-up."""
    function = runtime.load(path)["weight_sum"]
    found: list[float] = []
    threads = [
        threading.Thread(target=lambda: found.extend(function("more") for _ in range(200)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [2.0] * 800


def test_system_library_reads_its_weights(tmp_path) -> None:
    """The context symbol has the model's prefix."""
    object_path = export_reader(tmp_path / "net.o", system_lib=True, c_symbol_prefix="net_")
    library = tmp_path / "program.so"
    subprocess.run(["cc", "-shared", object_path, "-o", library], check=True)
    runtime.load(library)
    assert runtime.system_lib("net_")["weight_sum"]("more") == 2.0


def run_code(code: str, path: Path) -> str:
    """Run Python code in a fresh process."""
    command = [sys.executable, "-P", "-c", code, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


TVM_FFI = """
import sys, tvm_ffi
module = tvm_ffi.load_module(sys.argv[1])
try:
    module["weight_sum"]("more")
except RuntimeError as error:
    print(error)
"""
BOTH = """
import runtime
ours = runtime.load(sys.argv[1])
try:
    print(ours["weight_sum"]("more"))
except RuntimeError as error:
    print(error)
"""


def test_other_loaders_raise_an_error_in_words(path) -> None:
    """A tvm_ffi leaves the variable NULL, and its context is not the core's."""
    needs.importable("tvm_ffi", "test")
    # The blob has a type that tvm_ffi lacks, so a plain library of the same code is loaded.
    plain = path.with_name("plain.so")
    if not plain.exists():
        from ...support.weights_host import FUNCTIONS, SOURCE

        packer.export_library(packer.CSourceModule(SOURCE, functions=FUNCTIONS), plain)
    alone = run_code(TVM_FFI, plain)
    assert "load it with runtime.load or dso_load, not with tvm_ffi or dlopen" in alone
    both = run_code(TVM_FFI + BOTH, plain)
    assert "weight 'more': library context, expected one of an open library" in both


def test_plain_dlopen_returns_the_failure(path) -> None:
    """Without a loader the function returns -1 and does not crash."""
    code = (
        "import ctypes, sys\n"
        "function = ctypes.CDLL(sys.argv[1])['weight_sum']\n"
        "print(function(b'more', ctypes.byref(ctypes.c_double())))\n"
    )
    assert run_code(code, path) == "-1\n"


@pytest.mark.parametrize("compiler", [("cc", "-xc", "-std=c99"), ("c++", "-xc++", "-std=c++11")])
def test_header_compiles_without_warnings(compiler) -> None:
    """dso_weight is C99 and C++11."""
    text = (
        '#include "dso_packer.h"\n'
        "int f(DLTensor *w);\n"
        'int f(DLTensor *w) { return dso_weight("w", w); }\n'
    )
    warnings = ("-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", "-fsyntax-only")
    subprocess.run([*compiler, *warnings, f"-I{INCLUDE}", "-"], input=text, text=True, check=True)

"""Peers: how each package calls the functions of kernels.c."""

from __future__ import annotations

import ctypes
import io
import subprocess
import sysconfig
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
from library import DECLARATIONS, KERNELS

import runtime

Command = list[str | Path]
# A call: the timed expression, and the names that it uses besides the arguments of
# benchmarks/call.py: the function f, and often a converter c. If a peer needs converted arguments,
# every call converts them, from the same arguments.
Call = tuple[str, dict[str, Any]]

# The expression for peers that convert nothing; benchmarks/call.py has the arguments.
PLAIN = {
    "noop": "f()",
    "add": "f(a, b)",
    "pair": "f(x, y)",
    "torch": "f(t, u)",
    "first": "f(s)",
    "mixed": "f(a, r, k, s, x, y, n, b)",
    "apply": "f(g, a)",
    "thread": "f(a, b)",
}
# The function of a call, if it has another name.
FUNCTIONS = {"torch": "pair", "thread": "add"}
APPLY = "int64_t(int64_t (*function)(int64_t), int64_t value)"


def with_ctypes(library: ctypes.CDLL, name: str) -> Call:
    """Take the address of any array, and encode text by hand."""
    expression = {
        "pair": "f(x.ctypes.data, y.ctypes.data)",
        "torch": "f(t.data_ptr(), u.data_ptr())",
        "first": "f(s.encode())",
        "mixed": "f(a, r, k, s.encode(), x.ctypes.data, y.ctypes.data, n, b)",
        "apply": "f(c, a)",
    }.get(name, PLAIN[name])
    pointer, i64, i32 = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
    callback = ctypes.CFUNCTYPE(i64, i64)
    types: dict[str, tuple[list[Any], Any]] = {
        "noop": ([], None),
        "add": ([i64, i64], i64),
        "pair": ([pointer, pointer], None),
        "first": ([ctypes.c_char_p], i64),
        "mixed": ([i64, ctypes.c_double, ctypes.c_bool, ctypes.c_char_p, pointer, pointer, i32,
                   i64], ctypes.c_double),
        "apply": ([callback, i64], i64),
    }  # fmt: skip
    symbol = FUNCTIONS.get(name, name)
    function = library[symbol]
    function.argtypes, function.restype = types[symbol]  # type: ignore[assignment]
    return expression, {"f": function, "c": callback(_identity)}


def with_cffi(folder: Path, name: str) -> Call:
    """Take the address of any array, and encode text by hand; API mode."""
    declarations = {**DECLARATIONS, "apply": APPLY}
    extension = cffi_extension(folder, "_call_cffi", declarations, KERNELS)
    expression = {
        "pair": "f(c(x), c(y))",
        "torch": "f(c(t.data_ptr()), c(u.data_ptr()))",
        "first": "f(s.encode())",
        "mixed": "f(a, r, k, s.encode(), c(x), c(y), n, b)",
        "apply": "f(c, a)",
    }.get(name, PLAIN[name])
    ffi = extension.ffi
    converters: dict[str, Callable[[], Any]] = {
        "torch": lambda: partial(ffi.cast, "float *"),
        "apply": lambda: ffi.callback("int64_t(int64_t)", _identity),
    }
    arrays = partial(ffi.from_buffer, ffi.typeof("float[]"))
    function = getattr(extension.lib, FUNCTIONS.get(name, name))
    return expression, {"f": function, "c": converters.get(name, lambda: arrays)()}


def with_bindings(folder: Path, package: str, gil: str, name: str) -> Call:
    """Call through an extension module of pybind11 or nanobind."""
    function = getattr(_bindings(folder, package, gil), FUNCTIONS.get(name, name))
    return PLAIN[name], {"f": function}


def with_tvm_ffi(libraries: dict[str, Path], release_gil: bool, name: str) -> Call:
    """Call the same library as the runtime."""
    import tvm_ffi

    symbol = FUNCTIONS.get(name, name)
    function = tvm_ffi.load_module(str(libraries.get(symbol, libraries["all"])))[symbol]
    function.release_gil = release_gil
    return PLAIN[name], {"f": function}


def with_runtime(libraries: dict[str, Path], name: str) -> Call:
    """Call like a user."""
    symbol = FUNCTIONS.get(name, name)
    return PLAIN[name], {"f": runtime.load(libraries.get(symbol, libraries["all"]))[symbol]}


def with_tvm_code(library: Path, loader: str, own_tensors: bool, name: str) -> Call:
    """Call TVM's code, with TVM or the runtime, with NumPy's arrays or the loader's own tensors."""
    load: Callable[[str], Any] = runtime.load
    tensor: Callable[[Any], Any] = runtime.tensor
    if loader == "tvm":
        import tvm  # type: ignore[import-not-found,unused-ignore]

        load, tensor = tvm.runtime.load_module, tvm.runtime.tensor
    tensors = _pair_of(tensor) if own_tensors else {}
    return PLAIN[name], {"f": load(str(library))[name], **tensors}


def _pair_of(tensor: Callable[[Any], Any]) -> dict[str, Any]:
    """The arrays x and y as tensors of one kind."""
    return {"x": tensor(np.ones(1024, np.float32)), "y": tensor(np.zeros(1024, np.float32))}


def build_apply(output: Path, gil: str) -> Path:
    """Compile apply.c, whose function already is a safe call."""
    include = f"-I{Path(runtime.__file__).parent / 'include'}"
    source = Path(__file__).with_name("apply.c")
    _run(["gcc", "-O2", "-shared", "-fPIC", include, f'-DGIL="{gil}"', "-o", output, source])
    return output


def _identity(value: int) -> int:
    return value


def _run(command: Command) -> None:
    subprocess.run(command, check=True)


def _extension(name: str, path: Path) -> Any:
    spec = spec_from_file_location(name, path)
    assert spec is not None
    return module_from_spec(spec)


def cffi_extension(
    folder: Path, name: str, declarations: Mapping[str, str], code: Path, types: str = ""
) -> Any:
    """Compile C source and cffi's code for its functions to an extension module, once."""
    import cffi  # type: ignore[import-untyped]

    source, module = folder / f"{name}.c", folder / f"{name}.so"
    if not module.exists():
        ffi = cffi.FFI()
        ffi.cdef(types)
        for function, declaration in declarations.items():
            ffi.cdef(declaration.replace("(", f" {function}(", 1) + ";")
        ffi.set_source(name, code.read_text(encoding="utf-8"))
        with redirect_stdout(io.StringIO()):  # it says that it does
            ffi.emit_c_code(str(source))
        include = f"-I{sysconfig.get_path('include')}"
        _run(["gcc", "-O2", "-shared", "-fPIC", include, "-o", module, source])
    return _extension(name, module)


def _bindings(folder: Path, package: str, gil: str) -> Any:
    name = f"{package}_{gil}"
    module = folder / f"{name}.so"
    if not module.exists():
        kernels = folder / f"{name}.o"
        _run(["gcc", "-O2", "-fPIC", "-Dapply=apply_in_c", "-c", "-o", kernels, KERNELS])
        source = Path(__file__).with_name("bindings.cc")
        options = _nanobind_options() if package == "nanobind" else _pybind11_options()
        options += [f"-DNAME={name}", *(["-DGIL_KEPT"] if gil == "keep" else [])]
        include = f"-I{sysconfig.get_path('include')}"
        command: Command = ["g++", "-std=c++17", "-O2", "-DNDEBUG", "-fvisibility=hidden"]
        _run([*command, "-shared", "-fPIC", include, "-o", module, source, kernels, *options])
    spec = spec_from_file_location(name, module)
    assert spec is not None and spec.loader is not None
    made = module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def _pybind11_options() -> Command:
    import pybind11

    return [f"-I{pybind11.get_include()}"]


def _nanobind_options() -> Command:
    """Compile the library of nanobind too."""
    import nanobind

    package = Path(nanobind.__file__).parent
    robin_map = package / "ext/robin_map/include"
    library = package / "src/nb_combined.cpp"
    return ["-DNANOBIND", f"-I{package / 'include'}", f"-I{robin_map}", "-fno-strict-aliasing",
            library]  # fmt: skip

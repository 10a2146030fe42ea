"""legacy_calls: plain names are packed C functions, and C functions are hidden."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import packer
import runtime
from packer.inspect import inspect_library

from ...support.compile import compile_c

SOURCE = """
#include "dso_packer.h"
int64_t shown(int64_t x) { return x; }
int64_t add(int64_t a, int64_t b) { return shown(a) + b; }
int64_t twice(int64_t a) { return add(a, a); }
dso_status checked(int n) { return n == 7 ? 0 : dso_raise("ValueError", "not seven"); }
uint64_t big(void) { return ~0ull; }
double half(double x) { return x / 2; }
"""
NAMES = ("add", "twice", "checked", "big", "half")
INT, FLOAT, NULL, MODULE = 0, 2, 4, 9


class Value(ctypes.Union):
    """TVMValue."""

    _fields_ = [("v_int64", ctypes.c_int64), ("v_float64", ctypes.c_double)]


def call(library: ctypes.CDLL, name: str, *args: Any, code: int | None = None) -> Any:
    """Call as TVM to 2025 does; return the result, or the text of the error."""
    texts: list[str] = []
    setter = ctypes.CFUNCTYPE(None, ctypes.c_char_p)
    remember = setter(lambda text: texts.append(text.decode()))
    place = ctypes.c_void_p.in_dll(library, "__TVMAPISetLastError")
    place.value = ctypes.cast(remember, ctypes.c_void_p).value
    values, codes = (Value * 9)(), (ctypes.c_int * 9)()
    for i, given in enumerate(args):
        codes[i] = FLOAT if isinstance(given, float) else INT
        setattr(values[i], "v_float64" if isinstance(given, float) else "v_int64", given)
    if code is not None:
        codes[0] = code
    result, found = Value(), ctypes.c_int(NULL)
    status = library[name](
        values, codes, len(args), ctypes.byref(result), ctypes.byref(found), None
    )
    if status:
        return texts[-1]
    return {INT: result.v_int64, FLOAT: result.v_float64, NULL: None}[found.value]


def module(**options: Any) -> packer.CSourceModule:
    """The source; one function that C code calls is not declared."""
    functions = {"*": "auto", "shown": False}
    return packer.CSourceModule(SOURCE, functions=functions, **options)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library."""
    folder = tmp_path_factory.mktemp("legacy")
    return packer.export_library(
        module(), folder / "legacy.so", output=packer.Output(legacy_calls=True)
    )


def test_plain_names_take_and_return_the_values_of_packed_functions(path) -> None:
    """Numbers, no result, and errors, whose kind is the start of the text."""
    library = ctypes.CDLL(str(path))
    assert call(library, "add", 40, 2) == 42
    assert call(library, "twice", 4) == 8
    assert [call(library, "half", x) for x in (3.0, 3)] == [1.5, 1.5]
    assert call(library, "checked", 7) is None
    assert call(library, "checked", 8) == "ValueError: not seven"
    assert call(library, "add", 1).startswith("TypeError: add: expected 2 arguments, found 1;")
    refused = call(library, "add", 1, 2, code=MODULE)
    assert refused.startswith("TypeError: add: argument 1 has TVM's type code 9, expected a number")
    assert call(library, "big").startswith("TypeError: big: its result has no value in TVM to 2025")


def test_other_loaders_call_the_same_functions(path, tmp_path) -> None:
    """The wrappers are as in any library, and the text of an error is TVM's."""
    loaded = runtime.load(shutil.copy(path, tmp_path))
    assert [loaded["add"](40, 2), loaded["twice"](4)] == [42, 8]
    with pytest.raises(ValueError, match="^not seven$"):
        loaded["checked"](8)
    assert loaded["add"].signature == "int64_t add(int64_t a, int64_t b)"


def test_no_c_function_is_visible(path) -> None:
    """Only packed functions, wrappers and data; so no loader takes one for the other."""
    names = {s.name for s in inspect_library(path).symbols.dynamic if s.defined}
    functions = {name for name in names if not name.startswith("__")}
    assert functions == set(NAMES)
    assert {f"__tvm_ffi_{name}" for name in NAMES} < names
    assert not {name for name in names if name.startswith(("__packer_raw_", "__packer_packed_"))}


def test_default_libraries_keep_their_c_functions(tmp_path) -> None:
    """Nothing of them is packed, and they have no facts about it."""
    path = packer.export_library(module(), tmp_path / "plain.so")
    library = ctypes.CDLL(str(path))
    assert [library.shown(5), library.add(40, 2)] == [5, 42]
    assert b"plain packed_c" not in path.read_bytes()


@pytest.mark.parametrize(
    "build", [packer.Build(cpu=["x86-64-v2", "x86-64-v3"]), packer.Build(embed="c")]
)
def test_levels_and_trees_get_them_too(tmp_path, build) -> None:
    """The dispatcher of CPU levels is renamed; the tree stays where the embedder places it."""
    root = module()
    root.import_module(runtime.ConstLoaderModule({}, {}))
    path = packer.export_library(
        root, tmp_path / "m.so", build=build, output=packer.Output(legacy_calls=True)
    )
    assert call(ctypes.CDLL(str(path)), "twice", 4) == 8
    assert runtime.load(path).imported_modules[0].type_key == "const_loader"


def test_models_of_a_program_register_packed_functions(tmp_path) -> None:
    """With the prefix of the model, by which TVM's system library finds them."""
    model = tmp_path / "net1.o"
    output = packer.Output(legacy_calls=True)
    packer.export_library(module(), model, output=output, system_lib=True, c_symbol_prefix="net1_")
    noted = tmp_path / "noted.c"
    noted.write_text(
        "#include <string.h>\nvoid *found;\n"
        "int TVMBackendRegisterSystemLibSymbol(const char *name, void *address) {\n"
        '  if (!strcmp(name, "net1_twice")) found = address;\n  return 0;\n}\n'
    )
    linked = tmp_path / "net1.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", linked, noted, model], check=True)
    library = ctypes.CDLL(str(linked))
    address = ctypes.cast(library["net1_twice"], ctypes.c_void_p).value
    assert ctypes.c_void_p.in_dll(library, "found").value == address
    values, codes = (Value * 1)(), (ctypes.c_int * 1)()
    values[0].v_int64 = 21
    result, code = Value(), ctypes.c_int(NULL)
    status = library["net1_twice"](values, codes, 1, ctypes.byref(result), ctypes.byref(code), None)
    assert (status, code.value, result.v_int64) == (0, INT, 42)


@pytest.mark.parametrize(
    ("source", "declared", "message"),
    [
        ("int f(char **names) { return !names; }", "int(char **names)", "takes an array for 'nam"),
        (
            "float _Complex f(void) { return 0; }",
            "float _Complex(void)",
            "'f' returns an array, which TVM to 2025 cannot call; leave the function out",
        ),
        (
            "int f(int *x) { *x = 1; return 2; }",
            packer.FunctionDeclaration("int(int *x)", out=("x",)),
            "'f' has 2 results, expected one",
        ),
    ],
)
def test_a_function_that_tvm_cannot_call_is_refused(tmp_path, source, declared, message) -> None:
    """Its values have no arrays of values; the old file stays."""
    with pytest.raises(packer.ExportError, match=f"^legacy_calls: function 'f' .*|{message}") as e:
        packer.export_library(
            packer.CSourceModule(source, functions={"f": declared}),
            tmp_path / "f.so",
            output=packer.Output(legacy_calls=True),
        )
    assert message in str(e.value)
    assert not list(tmp_path.iterdir())


def test_functions_of_other_libraries_need_another_name(tmp_path) -> None:
    """A packed function of the same name would replace the one that it calls."""
    (tmp_path / "m.h").write_text("double cbrt(double x);\n")
    declared = {"root": {"declaration": "double(double x)", "symbol": "cbrt"}}
    for functions, refused in ((None, True), ({"cbrt": False, **declared}, False)):
        header = packer.from_header(tmp_path / "m.h", libraries=["m"], functions=functions)
        path = tmp_path / "m.so"
        if refused:
            text = (
                "^legacy_calls: function 'cbrt' is defined by another library, .* symbol = 'cbrt'"
            )
            with pytest.raises(packer.ExportError, match=text):
                packer.export_library(header, path, output=packer.Output(legacy_calls=True))
        else:
            packer.export_library(header, path, output=packer.Output(legacy_calls=True))
            assert abs(call(ctypes.CDLL(str(path)), "root", 27.0) - 3) < 1e-12


def test_an_addon_that_calls_a_c_function_is_refused(tmp_path) -> None:
    """It would call the packed one."""
    caller = compile_c(
        "long add(long, long);\nlong g(void) { return add(1, 2); }", tmp_path / "g.o", "-c"
    )
    with pytest.raises(packer.ExportError, match=r"g\.o calls add, .* not an addon$"):
        packer.export_library(
            module(), tmp_path / "m.so", addons=[caller], output=packer.Output(legacy_calls=True)
        )


def test_packed_functions_of_the_user_stay(tmp_path) -> None:
    """A function that is packed itself keeps its name."""
    source = "int f(void *a, void *c, int n, void *r, int *rc, void *h) { return n == 0 ? 0 : 5; }"
    root = packer.CSourceModule(source, functions=["f"])
    library = ctypes.CDLL(
        str(packer.export_library(root, tmp_path / "f.so", output=packer.Output(legacy_calls=True)))
    )
    assert library.f(None, None, 0, None, None, None) == 0


def test_exceptions_of_cpp_are_errors(tmp_path) -> None:
    """Beside C++ the packed functions are C++ too."""
    source = (
        "#include <stdexcept>\n#include <vector>\n"
        'extern "C" long f(long n) { return std::vector<long>(3, n).at(n); }\n'
    )
    root = packer.CSourceModule(source, fmt="cc", functions={"f": "long(long n)"})
    library = ctypes.CDLL(
        str(packer.export_library(root, tmp_path / "f.so", output=packer.Output(legacy_calls=True)))
    )
    assert call(library, "f", 2) == 2
    assert call(library, "f", 3).startswith("IndexError: vector::")

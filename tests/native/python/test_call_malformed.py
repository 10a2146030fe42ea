"""Calls of functions with wrong metadata about structs, defaults and codes: errors, no crash.

The tests of what is refused at the look-up are in library/test_library_symbols.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

import pytest

from runtime._core import Function, Library

CODE = """
#include "dso_packer.h"
DSO_EXPORT int __tvm_ffi_f(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  (void)handle, (void)args, (void)num_args;
  (void)result;
  return dso_raise("ValueError", "called");
}
"""


@pytest.fixture
def function(compile_library: Callable[..., Path]) -> Callable[[str], Function]:
    """Compile a function with these lines of metadata."""

    def make(lines: str) -> Function:
        text = f"packer-function 1\nabi safe_call\n{lines}".replace("\n", "\\n").replace('"', '\\"')
        source = f'{CODE}const char __packer_fn_f[] = "{text}";'
        found = Library(str(compile_library(source))).function("f", None)
        assert found is not None
        return found

    return make


@pytest.mark.parametrize(
    ("structs", "expected"),
    [
        ("struct s 8 8 x:f64@1\n", "fields within its 8 bytes, found 'x:f64@1'; export"),
        ("struct s 8 8 x:f64[4611686018427387904]@0\n", "within its 8 bytes, found 'x:f64"),
        ("struct s 8 8 x:f64[9999999999999999999999]@0\n", "within its 8 bytes, found 'x:f64"),
        ("struct s 8 8 x:f64[]@0\n", r"within its 8 bytes, found 'x:f64\[\]@0'"),
        ("struct s 8 8 x:f64[n]@0\n", r"within its 8 bytes, found 'x:f64\[n\]@0'"),
        ("struct s 8 8 x:{s}@0\n", "struct 's': expected its layout in the function's metadata"),
        ("struct s 8 8 x:{t}@0\nstruct t 8 8 x:{s}@0\n", "struct 't': expected its layout in"),
        ("struct t 8 8 x:f64@0\n", "struct 's': expected its layout in the function's metadata"),
    ],
)
@pytest.mark.parametrize("code", ["{s}", "*{s}", "&{s}"])
def test_layout(
    function: Callable[[str], Function], structs: str, expected: str, code: str
) -> None:
    """A field is within its struct, and what it contains comes before it."""
    with pytest.raises((ValueError, LookupError), match=expected):
        function(f"{structs}params x:{code}\n")({"x": 1.0})


def test_struct_that_points_to_itself(function: Callable[[str], Function]) -> None:
    """As the nodes of a list do; a mapping that contains itself is too deep."""
    node = function("struct node 8 8 next:&{node}@0\nparams x:&{node}\n")
    given: dict[str, object] = {"next": {"next": None}}
    with pytest.raises(ValueError, match="^called$"):
        node(given)
    given["next"] = given
    with pytest.raises(RecursionError):
        node(given)


@pytest.mark.parametrize("text", ["x", "1 2", "nul", "[" * 100000])
def test_default(function: Callable[[str], Function], text: str) -> None:
    """Its text is JSON."""
    made = function(f"params x:i64 y:i64\ndefault x {text}\n")
    expected = "f: default of 'x': expected JSON, found .*; export the library again"
    with pytest.raises(ValueError, match=expected):
        made(y=1)
    with pytest.raises(ValueError, match=expected):
        inspect.signature(made)


@pytest.mark.parametrize("code", ["*", "&", "@", "{", "{}", "[", "[3]", "*[", "*{", "i", "]", "@["])
def test_code(function: Callable[[str], Function], code: str) -> None:
    """One that no writer makes is shown, and the value's own type decides."""
    made = function(f"params x:{code}\nout y:{code} z:void\nresult {code}\n")
    assert inspect.signature(made).parameters["x"].name == "x"
    with pytest.raises(ValueError, match="^called$"):
        made(1)


def test_release_by_itself(function: Callable[[str], Function]) -> None:
    """A function may even name itself; it is called once for each handle."""
    with pytest.raises(ValueError, match="^called$"):
        function("params x:@s\nresult @s\nfree f\nlifetime x\n")(None)


@pytest.mark.parametrize("value", ["a", {}, object()], ids=["str", "dict", "object"])
def test_complex_field_by_value(function: Callable[[str], Function], value: object) -> None:
    """It is a number, or two of them."""
    made = function("struct s 16 8 z:c128@0\nparams x:{s}\n")
    for number in (1, 1j, [1.0, 2.0], (1.0, 2.0)):
        with pytest.raises(ValueError, match="^called$"):
            made({"z": number})
    with pytest.raises(TypeError, match="f: argument 1 'x': field 'z': expected a number, found"):
        made({"z": value})


def test_object_with_a_dtype_of_its_own(function: Callable[[str], Function]) -> None:
    """Only NumPy's have fields."""

    class Array:
        dtype = "f64"

    for code in ("{s}", "&{s}"):
        with pytest.raises(TypeError, match="f: argument 1 'x': unsupported type"):
            function(f"struct s 8 8 x:f64@0\nparams x:{code}\n")(Array())

"""A library with wrappers, called through ctypes as a loader calls it."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from ctypes import c_double, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

import packer
import runtime
from packer.declare.c_type import parse_functions
from packer.declare.declaration import Declaration, FunctionDeclaration
from packer.declare.glue import Glue
from packer.declare.redeclaration import redeclarations
from packer.dialect import Naming
from packer.records import checksums_of
from packer.target import find_target

INCLUDE = [
    f"-I{Path(runtime.__file__).parent / 'include'}",
    f"-I{Path(packer.__file__).parent / 'templates'}",
]
WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror"]


def parse(text: str | FunctionDeclaration, name: str = "f") -> Declaration:
    """The declaration of one function."""
    (declaration,) = parse_functions({name: text}, module="c")
    return declaration


def glue_source(declarations: Sequence[Declaration], entry: str | None = None) -> str:
    """The text of glue.c, as an export writes it."""
    glue = Glue(declarations, entry, Naming(), find_target(None).machine.char)
    return glue.source(checksums_of(glue.symbols, glue.texts, ()))


def gcc(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the compiler in the C locale, whatever its outcome."""
    command = ["gcc", "-O2", "-fPIC", *INCLUDE, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"})


def build(
    folder: Path, code: str, functions: dict[str, Any], *options: str, entry: str | None = None
) -> Path:
    """Make a library as an export does: the user's unit with redeclarations, and glue.c."""
    declarations = parse_functions(functions, module="c", entry=entry)
    code += redeclarations(declarations, "c")
    return build_declared(folder, code, declarations, *options, entry=entry)


def build_declared(
    folder: Path,
    code: str,
    declarations: Sequence[Declaration],
    *options: str,
    entry: str | None = None,
    language: Sequence[str] = (),
) -> Path:
    """Make a library of declarations; `language` has options for glue.c alone."""
    user, glue, library = folder / "user.c", folder / "glue.c", folder / "lib.so"
    user.write_text(code)
    glue.write_text(glue_source(declarations, entry))
    for source, flags in ((user, []), (glue, [*WARNINGS, *language])):
        made = gcc(*flags, "-c", source, "-o", source.with_suffix(".o"), *options)
        assert made.returncode == 0, made.stderr
    objects = (folder / "user.o", folder / "glue.o")
    made = gcc("-shared", "-Wl,-Bsymbolic", *objects, "-o", library, *options)
    assert made.returncode == 0, made.stderr
    return library


class Any16(ctypes.Structure):
    """TVMFFIAny."""

    _fields_ = (("type_index", c_int32), ("small_len", c_uint32), ("v_int64", c_int64))

    @property
    def v_float64(self) -> float:
        """The value as a double."""
        return c_double.from_buffer_copy(self, 8).value


class DLTensor(ctypes.Structure):
    """DLPack's tensor."""

    _fields_ = (
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", ctypes.POINTER(c_int64)),
        ("strides", ctypes.POINTER(c_int64)),
        ("byte_offset", c_uint64),
    )


class TensorObject(ctypes.Structure):
    """A Tensor object: the 24-byte header, then the DLTensor."""

    _fields_ = (("header", c_uint8 * 24), ("tensor", DLTensor))


class StringObject(ctypes.Structure):
    """A Str object: the header, then the byte array."""

    _fields_ = (
        ("combined_ref_count", c_uint64),
        ("type_index", c_int32),
        ("padding", c_uint32),
        ("deleter", ctypes.CFUNCTYPE(None, c_void_p, ctypes.c_int)),
        ("data", c_void_p),
        ("size", c_uint64),
    )


SET_RAISED = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p)
UNSIGNED = 1
BOOL_DTYPE, FLOAT32 = (6, 8, 1), (2, 32, 1)


class Library:
    """A library under test, with this process as its loader."""

    def __init__(self, path: Path) -> None:
        self.dll = ctypes.CDLL(str(path))
        self.raised: list[tuple[str, str]] = []
        self.setter = SET_RAISED(
            lambda *texts: self.raised.append(tuple(t.decode() for t in texts))
        )
        slot = c_void_p.in_dll(self.dll, "__TVMFFIErrorSetRaisedFromCStr")
        assert slot.value is None
        slot.value = ctypes.cast(self.setter, c_void_p).value

    def run(self, name: str, *values: Any16) -> tuple[int, Any16]:
        """Call a wrapper; give its return code and the result it wrote."""
        result = Any16()
        function = getattr(self.dll, f"__tvm_ffi_{name}")
        code = function(None, (Any16 * len(values))(*values), len(values), ctypes.byref(result))
        return code, result

    def call(self, name: str, *values: Any16) -> Any16:
        """Call a wrapper that must succeed."""
        code, result = self.run(name, *values)
        assert (code, self.raised) == (0, [])
        return result

    def refusal(self, name: str, *values: Any16) -> tuple[str, str]:
        """Call a wrapper that must raise; give the kind and the message."""
        code, result = self.run(name, *values)
        assert (code, result.type_index, len(self.raised)) == (-1, 0, 1)
        return self.raised.pop()


def integer(value: int) -> Any16:
    """An int as a caller passes it; beyond int64 by the bits."""
    beyond = value >= 2**63
    return Any16(1, UNSIGNED if beyond else 0, value - 2**64 if beyond else value)


def floating(value: float) -> Any16:
    """A float."""
    return Any16.from_buffer_copy(bytes(Any16(3))[:8] + bytes(c_double(value)))


def small(text: bytes, length: int | None = None) -> Any16:
    """A small string, of a length that may be wrong."""
    size = len(text) if length is None else length
    return Any16(11, size, int.from_bytes(text.ljust(8, b"\0"), "little", signed=True))


def pointer(type_index: int, target: Any) -> Any16:
    """A value that points to a ctypes object, and keeps it alive."""
    value = Any16(type_index, 0, ctypes.addressof(target))
    value.target = target
    return value


def heap(text: bytes, size: int | None = None) -> Any16:
    """A Str object over bytes with a NUL after them."""
    data = ctypes.create_string_buffer(text)
    string = StringObject(data=ctypes.addressof(data), size=len(text) if size is None else size)
    string.buffer = data
    return pointer(65, string)


def tensor(
    shape: tuple[int, ...] = (3,),
    dtype: tuple[int, int, int] = FLOAT32,
    *,
    strides: tuple[int, ...] | None = None,
    device: tuple[int, int] = (1, 0),
    offset: int = 0,
    data: int | None = 4096,
    as_object: bool = False,
) -> Any16:
    """A tensor argument; the memory of its data pointer is not read."""
    dims = [None if d is None else (c_int64 * max(len(d), 1))(*d) for d in (shape, strides)]
    made = DLTensor(data, *device, len(shape), *dtype, *dims, offset)
    made.dims = dims
    if not as_object:
        return pointer(7, made)
    whole = TensorObject(tensor=made)
    whole.dims = dims
    return pointer(70, whole)


NONE = Any16()
ELEMENTS = {
    **{f"int{n}_t": (0, n, 1) for n in (8, 16, 32, 64)},
    **{f"uint{n}_t": (1, n, 1) for n in (8, 16, 32, 64)},
    "bool": BOOL_DTYPE,
    "float": FLOAT32,
    "double": (2, 64, 1),
}
INTEGERS = {
    "int8_t": (-(2**7), 2**7 - 1),
    "int16_t": (-(2**15), 2**15 - 1),
    "int": (-(2**31), 2**31 - 1),
    "int64_t": (-(2**63), 2**63 - 1),
    "uint8_t": (0, 2**8 - 1),
    "unsigned_short": (0, 2**16 - 1),
    "uint32_t": (0, 2**32 - 1),
    "size_t": (0, 2**64 - 1),
}
CODE = """
#include "dso_packer.h"
#include <stdbool.h>
#include <stddef.h>
typedef unsigned short unsigned_short;
bool flip(bool b) { return !b; }
float half(float x) { return x / 2; }
double twice(double x) { return x * 2; }
double sum(int8_t a, double b, uint16_t c, float d, int64_t e) { return a + b + c + d + (double)e; }
static int touched;
void touch(void) { touched++; }
int touches(void) { return touched; }
int ndim(DLTensor *t) { return t->ndim; }
int64_t length(const char *s) { int64_t n = 0; while (s && s[n]) n++; return n; }
const char *echo(const char *s) { return s; }
const char *letters(int n) {
  static char text[2000];
  for (size_t i = 0; i < sizeof text; i++) text[i] = 'a';
  if (n >= 0) text[n] = 0;
  return n < 0 ? NULL : text;
}
uintptr_t any(const void *p) { return (uintptr_t)p; }
int64_t gamma(int64_t a) { return a + 1; }
int64_t index(const float *x, int64_t n) { return x ? n : -n; }
int64_t read(int64_t a) { return a + 3; }
"""
FUNCTIONS: dict[str, Any] = {
    "flip": "bool(bool b)",
    "half": "float(float x)",
    "twice": "double(double x)",
    "sum": "double(int8_t a, double b, uint16_t c, float d, int64_t e)",
    "touch": "void()",
    "touches": "int(void)",
    "ndim": "int(DLTensor *t)",
    "length": "int64_t(const char *s)",
    "echo": "const char *(const char *s)",
    "letters": "const char *(int n)",
    "any": "uintptr_t(const void *p)",
    "gamma": "int64_t(int64_t a)",
    "index": FunctionDeclaration("int64_t(const float *x, int64_t n)", doc='Says "n"??/\n\xe9\\'),
    "read": "int64_t(int64_t a)",
}


for _type in INTEGERS:
    CODE += f"{_type} same_{_type}({_type} x) {{ return x; }}\n"
    FUNCTIONS[f"same_{_type}"] = f"{_type}({_type} x)".replace("unsigned_short", "unsigned short")


for _type in ELEMENTS:
    CODE += f"uintptr_t at_{_type}({_type} *x) {{ return (uintptr_t)x; }}\n"
    CODE += f"uintptr_t in_{_type}(const {_type} *x) {{ return (uintptr_t)x; }}\n"
    FUNCTIONS[f"at_{_type}"] = f"uintptr_t({_type} *x)"
    FUNCTIONS[f"in_{_type}"] = f"uintptr_t(const {_type} *x)"

SANITIZE = ("-fsanitize=undefined", "-fno-sanitize-recover=undefined")
RAW = pointer(8, ctypes.create_string_buffer(b"raw"))

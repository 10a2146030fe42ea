"""A library with functions of every code of a type, declared by hand, and a loader for it."""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_int, c_int32, c_int64, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

from packer.declare.declaration import Callback, Declaration, Field, Parameter, Struct

from .wrapped_library import Any16, Library, StringObject, pointer

CODE = (Path(__file__).parent / "c" / "every_code.c").read_text()
POINT = Struct("point", "point", 16, 8, (Field("x", "f64", 0), Field("y", "f32", 8)))
BOX = Struct(
    "box",
    "box",
    48,
    8,
    (
        Field("low", "{point}", 0),
        Field("high", "{point}", 16),
        Field("flags", "i8[3]", 32),
        Field("ok", "bool", 35),
        Field("name", "str", 40),
    ),
)
ODD = Struct(
    "odd",
    "odd",
    28,
    4,
    (Field("z", "c64", 0), Field("grid", "i32[2][2]", 8), Field("h", "f16", 24)),
)


def declare(
    name: str, parameters: str, result: str = "void", result_text: str = "", **more: Any
) -> Declaration:
    """A declaration of parameters that are written ``type name:code``, separated by ``;``."""
    made = []
    for text in filter(None, parameters.split("; ")):
        declared, _, code = text.partition(":")
        type_text, _, own = declared.rpartition(" ")
        made.append(Parameter(own, type_text, code))
    types = ", ".join(f"{p.type_text} {p.name}" for p in made)
    whole = f"{result_text or result}({types})"
    return Declaration(name, whole, tuple(made), result, result_text or result, **more)


def callback(parameter: str, parameters: str, result: str, result_text: str) -> Callback:
    """The type of a callback."""
    declaration = declare("", parameters, result, result_text)
    return Callback(parameter, declaration.parameters, result, result_text)


_VISIT = callback(
    "visit",
    "const double * rest:&f64[n]; long n:i64; const char * text:str; char ** names:strs[3];"
    " point p:{point}; float _Complex z:c64; DLTensor * t:tensor; uint64_t big:u64",
    "bool",
    "bool",
)
_STATS = "const double * x:&f64[n]; long n:i64; double * mean:*f64"
DECLARATIONS = (
    declare("next_char", "char c:char", "char"),
    declare("half", "float x:f32", "f32", "float"),
    declare("half16", "_Float16 x:f16", "f16", "_Float16"),
    declare("turned", "double _Complex z:c128", "c128", "double _Complex"),
    declare("turned_float", "float _Complex z:c64", "c64", "float _Complex"),
    declare("total", "const double * x:&f64[n]; long n:i64", "f64", "double"),
    declare("trace", "double * x:*f64[n][m]; long n:i64; long m:i64", "f64", "double"),
    declare("four", "const float * x:&f32[4]", "f64", "double"),
    declare("counted", "const uint8_t * x:&u8[n]; uint64_t n:u64", "u64", "uint64_t"),
    declare("fill", "char * text:*char; long n:i64"),
    declare("address", "const unsigned char * p:&u8", "u64", "uintptr_t"),
    declare("writable", "unsigned char * p:*u8", "u64", "uintptr_t"),
    declare("anything", "const void * p:&void", "u64", "uintptr_t"),
    declare("anything_writable", "void * p:*void", "u64", "uintptr_t"),
    declare("first", "const void * p:&void", "i32", "int"),
    declare("joined", "const char *const * names:strs", "i64", "long"),
    declare("joined_n", "char ** names:strs[n]; long n:i64", "i64", "long"),
    declare("living", "", "i32", "int"),
    declare("counter_new", "long value:i64", "@counter", "counter *", free="counter_free"),
    declare("counter_next", "counter * c:@counter", "i64", "long"),
    declare("counter_free", "counter * c:@counter"),
    declare(
        "counter_open",
        "long value:i64; counter ** out:*@counter",
        "i32",
        "int",
        out=("out",),
        free="counter_free",
    ),
    declare("mirrored", "point p:{point}", "{point}", "point", structs=(POINT,)),
    declare("grown", "box b:{box}", "{box}", "box", structs=(POINT, BOX)),
    declare("oddly", "odd o:{odd}", "{odd}", "odd", structs=(ODD,)),
    declare("norm", "const point * p:&{point}", "f64", "double", structs=(POINT,)),
    declare("shift", "point * p:*{point}[n]; long n:i64", structs=(POINT,)),
    declare("stats", f"{_STATS}; double * peak:*f64", "i64", "long", out=("mean", "peak")),
    declare("only_mean", _STATS, out=("mean",)),
    declare(
        "checked",
        "long n:i64; long * half:*i64; bool * even:*bool; char * letter:*char",
        "status",
        "dso_status",
        out=("half", "even", "letter"),
    ),
    declare("frees", "", "i32", "int"),
    declare("repeated", "const char * text:str; long n:i64", "*char", "char *", free="text_free"),
    declare(
        "described",
        "long n:i64; char ** text:*str; point * p:*{point}",
        "i32",
        "int",
        out=("text", "p"),
        structs=(POINT,),
        free="text_free",
    ),
    declare("named", "long n:i64; const char ** what:*str", "str", "const char *", out=("what",)),
    declare("opened", "const char * path:str", "i32", "int", errno=True),
    declare("found", "long n:i64", "*void", "void *", errno=True),
    declare(
        "scaled",
        "long x:i64; long by:i64; double add:f64; const char * text:str; bool minus:bool",
        "i64",
        "long",
        defaults={"by": 2, "add": 0.5, "text": 'a"?', "minus": True},
    ),
    declare(
        "integral",
        "double (*)(double, void *) f:fn; void * data:*void; double a:f64; double b:f64",
        "f64",
        "double",
        callbacks=(callback("f", "double x:f64; void * data:*void", "f64", "double"),),
    ),
    declare(
        "each",
        "const double * x:&f64[n]; long n:i64; bool (*)(...) visit:fn",
        "i64",
        "long",
        callbacks=(_VISIT,),
        structs=(POINT,),
    ),
    declare("visited", "", "i32", "int"),
    declare(
        "sorted",
        "void (*)(void) swap:fn; int8_t (*)(int8_t, int8_t) compare:fn",
        callbacks=(
            callback("swap", "", "void", "void"),
            callback("compare", "int8_t a:i8; int8_t b:i8", "i8", "int8_t"),
        ),
    ),
    declare(
        "elsewhere",
        "void *(*)(void *) run:fn",
        callbacks=(callback("run", "void * data:*void", "*void", "void *"),),
    ),
    declare("later", ""),
    declare("print_int", "int a:i32", "i32", "int", symbol="print_call", is_external=True),
    declare(
        "asks",
        "dso_status (*)(long) ask:fn",
        "status",
        "dso_status",
        callbacks=(callback("ask", "long n:i64", "status", "dso_status"),),
    ),
)


class Header(ctypes.Structure):
    """The header of every object."""

    _fields_ = (
        ("combined_ref_count", c_uint64),
        ("type_index", c_int32),
        ("padding", c_uint32),
        ("deleter", c_void_p),
    )


class ArrayObject(ctypes.Structure):
    """An Array object."""

    _fields_ = (("header", Header), ("items", c_void_p), ("size", c_int64))


class FunctionObject(ctypes.Structure):
    """A Function object."""

    _fields_ = (("header", Header), ("safe_call", c_void_p), ("cpp_call", c_void_p))


SAFE_CALL = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_int32, ctypes.POINTER(Any16))
LOOKUP = ctypes.CFUNCTYPE(c_int, c_void_p, c_char_p, ctypes.POINTER(c_void_p))


def array(*items: Any16) -> Any16:
    """An Array of values."""
    made = (Any16 * max(len(items), 1))(*items)
    whole = ArrayObject(Header(1 | 1 << 32, 71), ctypes.addressof(made), len(items))
    whole.kept = (made, items)
    return pointer(71, whole)


def items_of(value: Any16) -> list[Any16]:
    """The items of an Array."""
    assert value.type_index == 71
    whole = ArrayObject.from_address(value.v_int64)
    return list((Any16 * whole.size).from_address(whole.items)) if whole.size else []


def text_of(value: Any16) -> str | None:
    """A str of any form; None."""
    if value.type_index == 0:
        return None
    if value.type_index == 11:
        return bytes(value)[8 : 8 + value.small_len].decode()
    if value.type_index == 8:
        return ctypes.string_at(value.v_int64).decode()
    assert value.type_index == 65
    string = StringObject.from_address(value.v_int64)
    return ctypes.string_at(string.data, string.size).decode()


def raw_bytes(data: bytes) -> Any16:
    """A Bytes object over data with a NUL after it."""
    buffer = ctypes.create_string_buffer(data)
    string = StringObject(data=ctypes.addressof(buffer), size=len(data))
    string.buffer = buffer
    return pointer(66, string)


def address(value: int) -> Any16:
    """An opaque pointer."""
    return Any16(4, 0, value)


class CodesLibrary(Library):
    """A library with a loader that has the function ``ffi.Array`` and makes Functions."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.kept: list[Any] = []
        self.lookups: list[bytes] = []
        self.fail_arrays = False
        self.make_array = self.function(self._array)
        self.lookup = LOOKUP(self._lookup)
        slot = c_void_p.in_dll(self.dll, "__TVMFFIEnvModLookupFromImports")
        slot.value = ctypes.cast(self.lookup, c_void_p).value

    def function(self, call: Any, code: int = 0) -> Any16:
        """A Function that calls Python with a list of values; it fails after `raised` grew."""

        def safe_call(handle: int, args: int, count: int, result: Any) -> int:
            values = list((Any16 * count).from_address(args)) if count else []
            before = len(self.raised)
            made = call(*values)
            if len(self.raised) > before:
                return -1
            ctypes.memmove(result, ctypes.byref(made or Any16()), 16)
            return code

        entry = SAFE_CALL(safe_call)
        whole = FunctionObject(Header(1 | 1 << 32, 68), ctypes.cast(entry, c_void_p).value)
        whole.entry = entry
        self.kept.append(whole)
        return pointer(68, whole)

    def _lookup(self, context: int, name: bytes, found: Any) -> int:
        self.lookups.append(name)
        found[0] = self.make_array.v_int64
        return 0

    def _array(self, *values: Any16) -> Any16:
        owned = []
        if self.fail_arrays:
            self.raised.append(("MemoryError", "no array"))
        for value in values:
            if value.type_index == 8:
                value = raw_text(ctypes.string_at(value.v_int64))
            elif value.type_index >= 64:
                Header.from_address(value.v_int64).combined_ref_count += 1
            owned.append(value)
        self.kept.append(made := array(*owned))
        return made


def raw_text(text: bytes) -> Any16:
    """A raw string that owns its text."""
    return pointer(8, ctypes.create_string_buffer(text))

"""Codes of types: what the generated C text needs to know of each (docs/format.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from .declaration import SIGNED, UNSIGNED, Struct


class Kind(NamedTuple):
    """How a value of one code is passed."""

    c_type: str  # its type in C, or one with the same ABI
    local: str  # the type of the variable that an argument is read into; converts to `c_type`
    take: str  # the function of the glue that reads an argument, after ``dso_take_``
    options: tuple[str, ...]  # the arguments of `take` before the variable
    give: str  # the function of the glue that stores a result, after ``dso_give_``
    spelling: str  # the type in messages
    header: str = "glue_take.h"  # the file that defines `take` and `give`


class Scope(NamedTuple):
    """The structs that the codes of one declaration name."""

    structs: Mapping[str, Struct]  # by the name in a code
    # The C types that glue.c defines for what is passed by value: by name, or of bytes by code.
    names: Mapping[str, str]


def _numbers() -> dict[str, Kind]:
    kinds = {}
    for code in SIGNED:
        bits = code[1:]
        limits = (f"INT{bits}_MIN", f"INT{bits}_MAX")
        c_type = f"int{bits}_t"
        kinds[code] = Kind(c_type, "int64_t", "signed", limits, "signed", c_type)
    for code in UNSIGNED:
        limit, c_type = (f"UINT{code[1:]}_MAX",), f"uint{code[1:]}_t"
        kinds[code] = Kind(c_type, "uint64_t", "unsigned", limit, "unsigned", c_type)
    kinds["char"] = Kind(
        "char", "int64_t", "signed", ("DSO_CHAR_MIN", "DSO_CHAR_MAX"), "signed", "char"
    )
    kinds["bool"] = Kind("uint8_t", "uint64_t", "unsigned", ("1",), "bool", "bool")
    kinds["f32"] = Kind("float", "float", "float32", (), "float", "float")
    kinds["longdouble"] = Kind("long double", "double", "float", (), "float", "long double")
    kinds["f64"] = Kind("double", "double", "float", (), "float", "double")
    for code, c_type in (("f16", "_Float16"), ("bf16", "__bf16")):
        kinds[code] = Kind(c_type, c_type, code, (), "float", c_type)
    for code, name, spelled in (
        ("c64", "complex64", "float _Complex"),
        ("c128", "complex128", "double _Complex"),
    ):
        kinds[code] = Kind(f"dso_{name}", f"dso_{name}", name, (), name, spelled, "glue_number.h")
    return kinds


_STRINGS = "glue_array.h"
_KINDS = {
    **_numbers(),
    "void": Kind("void", "", "", (), "", "void"),
    "status": Kind("int", "", "", (), "", "dso_status"),
    "str": Kind("const char *", "const char *", "string", (), "string", "const char *"),
    "strs": Kind("const char **", "const char **", "strings", (), "", "char **", _STRINGS),
    "tensor": Kind("DLTensor *", "DLTensor *", "tensor", (), "tensor", "DLTensor *"),
    "any": Kind("dso_any", "dso_any", "any", (), "any", "value"),
    "fn": Kind("dso_code", "dso_object *", "function", (), "", "function", "glue_callback.h"),
}
DTYPES = {
    **{code: f"DSO_DT_INT, {code[1:]}" for code in SIGNED},
    **{code: f"DSO_DT_UINT, {code[1:]}" for code in UNSIGNED},
    "char": "DSO_DT_INT, 8",
    "bool": "DSO_DT_BOOL, 8",
    "f16": "DSO_DT_FLOAT, 16",
    "f32": "DSO_DT_FLOAT, 32",
    "f64": "DSO_DT_FLOAT, 64",
    "longdouble": "DSO_DT_FLOAT, 128",
    "bf16": "DSO_DT_BFLOAT, 16",
    "c64": "DSO_DT_COMPLEX, 64",
    "c128": "DSO_DT_COMPLEX, 128",
}
_BYTES = ("char", "i8", "u8")


def split_extents(code: str) -> tuple[str, tuple[str, ...]]:
    """Split ``*f32[4][n]`` into ``*f32`` and its extents."""
    base, *_ = code.split("[", 1)
    return base, tuple(re.findall(r"\[([^\]]*)\]", code))


def is_pointers(code: str) -> bool:
    """Return True for a pointer to pointers: ``**f64``, ``&*char[n]``, ``*@foo``."""
    return code[0] in "*&" and code[1] in "*&@"


def is_pairs(code: str) -> bool:
    """Return True for pairs of floats, which are complex numbers too: ``*f64[n][2]``."""
    return code[1:4] in ("f32", "f64") and code.endswith("][2]")


def struct_of(code: str) -> str:
    """Return the name of the struct in ``{s}``, ``*{s}`` or ``&{s}[n]``; empty if there is none."""
    match = re.match(r"[*&]?\{(.*)\}", code)
    return match[1] if match else ""


def kind_of(code: str, scope: Scope) -> Kind:
    """Return how a value of this code is passed; extents are checked separately."""
    base, _ = split_extents(code)
    if is_pairs(code):
        made = _pointer(base, scope)
        return made._replace(take="pairs", options=(base[2:],), header="glue_buffer.h")
    if base[0] == "=":
        name = scope.names[base]
        take = name.removeprefix("dso_")
        return Kind(name, name, take, (), take, base[2:-1], "glue_value.h")
    if base[0] == "{":
        name, spelling = scope.names[base[1:-1]], scope.structs[base[1:-1]].spelling
        take = name.removeprefix("dso_")
        return Kind(name, name, take, (), take, spelling, "glue_array.h")
    if base[0] in "*&@":
        return _pointer(base, scope)
    return _KINDS[base]


def _pointer(code: str, scope: Scope) -> Kind:
    mark, pointee = code[0], code[1:]
    made = Kind("void *", "void *", "address", (), "address", "pointer")
    also_bytes = "DSO_ALSO_BYTES" if mark == "&" else "DSO_TENSOR_ONLY"
    if mark == "@":
        return made._replace(spelling=f"{pointee} *")
    if is_pointers(code):
        return made._replace(take="pointers", header="glue_buffer.h")
    if struct_of(code):
        struct, also = scope.structs[struct_of(code)], "DSO_ALSO_ADDRESS"
        also = f"{also} | DSO_ALSO_BYTES" if mark == "&" else also
        options = (str(struct.alignment), also)
        return made._replace(take="structs", options=options, header="glue_buffer.h")
    if pointee == "void":
        also = "DSO_ALSO_ADDRESS | DSO_ALSO_BYTES" if mark == "&" else "DSO_ALSO_ADDRESS"
        return made._replace(take="buffer", options=("DSO_DT_ANY", also), header="glue_buffer.h")
    if pointee in _BYTES:
        options = ("DSO_DT_BYTE", also_bytes)
        made = made._replace(take="buffer", options=options, header="glue_buffer.h")
        return made._replace(c_type="char *", give="string") if pointee == "char" else made
    return made._replace(take="pointer", options=(DTYPES.get(pointee, "DSO_DT_ANY, 8"),))


def item_size(code: str, scope: Scope) -> int:
    """Return the size of one element of a tensor that is passed for a pointer, in its elements."""
    name = struct_of(code)
    return scope.structs[name].size if name else 1

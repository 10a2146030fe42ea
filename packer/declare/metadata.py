"""The metadata and the doc of a function, as tvm_ffi's API reads them.

A library of dialect ``tvm-ffi`` has, in addition to ``__tvm_ffi_<f>``, functions that return text:

    __tvm_ffi__metadata_<f>     JSON {"type_schema": "<JSON>"}
    __tvm_ffi__doc_<f>          the doc, if there is one

The type schema is ``{"type": "ffi.Function", "named_args": {"return": [type], "params": [...]}}``.
(TVM FFI, function_detail.h and type_traits.h)
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from .code import is_pointers, split_extents
from .declaration import SIGNED, UNSIGNED, Declaration
from .results import results_of

_TENSOR = "DLTensor*"
_TYPES = {
    **dict.fromkeys((*SIGNED, *UNSIGNED, "char"), "int"),
    **dict.fromkeys(("f16", "bf16", "f32", "f64"), "float"),
    **dict.fromkeys(("void", "status"), "None"),
    "bool": "bool",
    "str": "const char*",
    "tensor": _TENSOR,
    "any": "Any",
}


def type_schema(declaration: Declaration) -> dict[str, Any]:
    """Describe the parameters and the result of a declared function in TVM FFI's terms."""
    groups = {
        "return": [_result(declaration)],
        "params": [_parameter(parameter.code) for parameter in declaration.passed],
    }
    return {"type": "ffi.Function", "named_args": groups}


def descriptions(declaration: Declaration) -> dict[str, str]:
    """Return the texts of one function by the tags of their symbols: ``_metadata_``, ``_doc_``."""
    schema = json.dumps(type_schema(declaration), separators=(",", ":"))
    texts = {"_metadata_": json.dumps({"type_schema": schema})}
    if declaration.doc:
        texts["_doc_"] = declaration.doc
    return texts


def _type(name: str, *arguments: dict[str, Any]) -> dict[str, Any]:
    return {"type": name, "args": list(arguments)} if arguments else {"type": name}


def _array(*items: dict[str, Any]) -> dict[str, Any]:
    """An Array whose items have one type, or any type."""
    return _type("ffi.Array", items[0] if all(i == items[0] for i in items) else _type("Any"))


def _union(*types: str) -> dict[str, Any]:
    return _type("Variant", *map(_type, types)) if len(types) > 1 else _type(types[0])


def _parameter(code: str) -> dict[str, Any]:
    base, extents = split_extents(code)
    if base in ("c64", "c128"):
        return _type("Variant", _type("float"), _array(_type("float")), _type(_TENSOR))
    if base == "strs":
        return _type("Optional", _array(_type("const char*")))
    if base[0] == "{":
        return _type("ffi.Array", _type("Any"))
    if base == "fn":
        return _type("Optional", _type("ffi.Function"))
    if base[0] == "@" or is_pointers(base):
        return _type("Optional", _type("void*"))
    if base[0] in "*&":
        tensor = _union(_TENSOR, *_also(base))
        return tensor if all(extents) and extents else _type("Optional", tensor)
    return _type(_TYPES[base])


def _also(base: str) -> Sequence[str]:
    """The types that a pointer parameter accepts besides a tensor."""
    is_struct = base[1] == "{"
    address = ["void*"] if is_struct or base[1:] == "void" else []
    is_bytes = is_struct or base[1:] in ("void", "char", "i8", "u8")
    return [*address, "ffi.Bytes"] if base[0] == "&" and is_bytes else address


def _result(declaration: Declaration) -> dict[str, Any]:
    types = [_value(result.code) for result in results_of(declaration)]
    if not types:
        return _type("None")
    return types[0] if len(types) == 1 else _array(*types)


def _value(code: str) -> dict[str, Any]:
    if code in ("c64", "c128"):
        return _array(_type("float"))
    if code[0] == "{":
        return _type("ffi.Array", _type("Any"))
    if code in ("str", "*char"):
        return _type("Optional", _type("const char*")) if code[0] == "*" else _type("const char*")
    if code[0] in "*&@":
        return _type("Optional", _type("void*"))
    return _type(_TYPES[code])

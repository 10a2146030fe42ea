"""The metadata and the doc of a function, as tvm_ffi's API reads them.

A library of dialect ``tvm-ffi`` has, in addition to ``__tvm_ffi_<f>``, functions that return text:

    __tvm_ffi__metadata_<f>     JSON {"type_schema": "<JSON>"}
    __tvm_ffi__doc_<f>          the doc, if there is one

The type schema is ``{"type": "ffi.Function", "named_args": {"return": [type], "params": [...]}}``.
(TVM FFI, function_detail.h and type_traits.h)
"""

from __future__ import annotations

import json
from typing import Any

from .declaration import SIGNED, UNSIGNED, Declaration

_TENSOR = "DLTensor*"
_TYPES = {
    **dict.fromkeys((*SIGNED, *UNSIGNED), "int"),
    **dict.fromkeys(("f32", "f64"), "float"),
    **dict.fromkeys(("void", "status"), "None"),
    "bool": "bool",
    "str": "const char*",
    "tensor": _TENSOR,
}


def type_schema(declaration: Declaration) -> dict[str, Any]:
    """Describe the parameters and the result of a declared function in TVM FFI's terms."""
    groups = {
        "return": [_type(declaration.result)],
        "params": [_type(parameter.code) for parameter in declaration.parameters],
    }
    return {"type": "ffi.Function", "named_args": groups}


def descriptions(declaration: Declaration) -> dict[str, str]:
    """Return the texts of one function by the tags of their symbols: ``_metadata_``, ``_doc_``."""
    schema = json.dumps(type_schema(declaration), separators=(",", ":"))
    texts = {"_metadata_": json.dumps({"type_schema": schema})}
    if declaration.doc:
        texts["_doc_"] = declaration.doc
    return texts


def _type(code: str) -> dict[str, Any]:
    if code[0] in "*&":  # for a pointer callers pass a tensor or None
        return {"type": "Optional", "args": [{"type": _TENSOR}]}
    return {"type": _TYPES[code]}

"""Descriptions of Numba's types as `Value`, which the rest of the packer reads."""

from __future__ import annotations

from typing import Any

from numba.core import types

from .values import Value


class UnsupportedTypeError(Exception):
    """A type that no caller of a library can pass or receive."""


def describe(given: Any) -> Value:
    """Return the description of a Numba type.

    Raises UnsupportedTypeError if a library cannot pass values of the type.
    """
    kind = types.unliteral(given)
    text = str(kind)
    if code := number_code(kind):
        return Value("number", text, code)
    if isinstance(kind, types.NoneType):
        return Value("none", "none")
    if isinstance(kind, types.Optional):
        item = describe(kind.type)
        return Value("optional", f"{item.text} or None", items=(item,))
    if isinstance(kind, types.BaseTuple):
        return _tuple(kind)
    if isinstance(kind, types.UnicodeType):
        return Value("str", "str")
    if isinstance(kind, types.Bytes):
        return Value("bytes", "bytes", "u8", 1, "C", is_mutable=False)
    if isinstance(kind, types.Array):
        return _array(kind)
    if isinstance(kind, types.CPointer):
        return Value("pointer", text, number_code(kind.dtype) or "void")
    if kind == types.voidptr:
        return Value("pointer", text, "void")
    raise UnsupportedTypeError(_reason(kind, text))


def describe_argument(given: Any) -> Value:
    """Return the description of the type of a parameter.

    Raises UnsupportedTypeError if a library cannot pass values of the type, or if the code is for
    one value.
    """
    if given != types.unliteral(given):
        text = f"type {given}: the code is for this value only; give a signature without it"
        raise UnsupportedTypeError(text)
    return describe(given)


def number_code(kind: Any) -> str:
    """Return the code of a number; empty for another type."""
    if isinstance(kind, types.Boolean):
        return "bool"
    if isinstance(kind, types.Integer):
        return f"{'i' if kind.signed else 'u'}{kind.bitwidth}"
    if isinstance(kind, (types.Float, types.Complex)) and kind.bitwidth in (32, 64, 128):
        return f"{'f' if isinstance(kind, types.Float) else 'c'}{kind.bitwidth}"
    return ""


def _tuple(kind: Any) -> Value:
    items = tuple(describe(item) for item in kind)
    is_named = isinstance(kind, types.BaseNamedTuple)
    names = tuple(kind.fields) if is_named else ()
    texts = [item.text for item in items]
    if is_named:
        texts = [f"{name}: {text}" for name, text in zip(names, texts, strict=True)]
    head = kind.instance_class.__name__ if is_named else "tuple"
    return Value("tuple", f"{head}[{', '.join(texts)}]", items=items, names=names)


def _array(kind: Any) -> Value:
    code = number_code(kind.dtype)
    if not code or type(kind) is not types.Array:
        raise UnsupportedTypeError(_reason(kind, str(kind)))
    last = {"C": "::1", "A": ":"}
    dims = [":"] * (kind.ndim - 1)
    if kind.layout == "F" and kind.ndim > 1:
        shown = ["::1", *dims]
    else:
        shown = [*dims, last.get(kind.layout, "::1")]
    text = f"{kind.dtype}[{','.join(shown)}]" if kind.ndim else f"{kind.dtype}[0d]"
    text = text if kind.mutable else f"readonly {text}"
    return Value("array", text, code, kind.ndim, kind.layout, kind.mutable)


_REASONS = {
    types.Generator: "it is a generator, which needs Python",
    types.PyObject: "it is a Python object",
    types.List: "it is a Python list; use an array or a tuple",
    types.Set: "it is a Python set; use an array",
    types.Function: "it is a function",
    types.Dispatcher: "it is a function",
    types.FunctionType: "it is a function",
    types.ClassInstanceType: "it is an object of a jitclass",
    types.ListType: "it is a typed list; use an array or a tuple",
    types.DictType: "it is a typed dict; use arrays",
}


def _reason(kind: Any, text: str) -> str:
    found = next((why for base, why in _REASONS.items() if isinstance(kind, base)), "")
    return f"type {text}: {found or 'callers of a library have no such value'}"

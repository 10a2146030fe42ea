"""The Python signature of a declared function: for `inspect`, `help` and keyword arguments.

The native core imports this file at the first keyword, default or signature that needs it.
"""

from __future__ import annotations

import json
from inspect import Parameter, Signature
from keyword import iskeyword

from .error import listed, near_names, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._core import Function

_NUMBERS: dict[str, type] = {"bool": bool, "f16": float, "bf16": float, "f32": float, "f64": float}
_NUMBERS["longdouble"] = float
_NUMBERS.update({"c64": complex, "c128": complex, "str": str})
_DTYPES = {"i": "int", "u": "uint", "f": "float", "c": "complex"}


def annotation_of(code: str) -> Any:
    """Return the Python type of a code, or a text that describes it."""
    base, _, extents = code.partition("[")
    extents = f" [{extents}" if extents else ""
    if base in _NUMBERS:
        return _NUMBERS[base]
    if base[:1] in ("i", "u") and base[1:].isdecimal():
        return int
    if base[:1] in ("*", "&"):
        return _pointer(base[1:]) + extents
    named = {"@": f"{base[1:]} handle", "{": f"{base.strip('{}')} struct"}
    named["="] = f"{base.strip('={}')} struct"
    words = {"strs": "list of str", "fn": "callable", "void": None}
    words |= dict.fromkeys(("tensor", "handle"), "array")
    return named.get(base[:1]) or words.get(base, base)


def _pointer(target: str) -> str:
    if target[:1] in ("*", "&", "@"):
        return "list of pointers"
    if target[:1] == "{":
        return f"{target.strip('{}')} struct"
    if target in ("void", "char"):
        return "buffer"
    if target == "longdouble":
        return "longdouble array"
    return f"{_DTYPES.get(target[:1], '')}{target[1:]} array" if target != "bool" else "bool array"


def defaults_of(function: Function) -> tuple[Any, ...]:
    """Return the default of each parameter, `...` for one that has none."""
    params, _, _, defaults, _ = function._declared
    values = {name: _default(function, name, text) for name, text in defaults}
    return tuple(values.get(name, ...) for name, _ in params)


def _default(function: Function, name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        wrong = f"{function.name}: default of {name!r}: expected JSON, found {shown(text)}"
        raise ValueError(f"{wrong}; export the library again") from None


def python_name(name: str) -> str:
    """Return the Python name of a parameter or field: ``from_`` for a keyword of Python."""
    return f"{name}_" if iskeyword(name) else name


def names_in_python(params: list[str]) -> tuple[list[str], int]:
    """Return the parameters' names in Python, and how many of them calls cannot name.

    A name that is not an identifier (``blockIdx.x``) or occurs twice makes the parameters up to it
    positional, since positional parameters of a Python signature precede all others.
    """
    names = [python_name(name) for name in params]
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    unnamed = (i for i, n in enumerate(names) if not n.isidentifier() or counts[n] > 1)
    num_positional = max(unnamed, default=-1) + 1
    for i in range(num_positional):
        name = "".join(c if c.isalnum() else "_" for c in names[i])
        name = name if name.isidentifier() else f"_{name}"
        counts[names[i]] -= 1
        while counts.get(name):
            name += f"{i}_" if name[-1] == "_" else "_"
        counts[name] = 1
        names[i] = name
    return names, num_positional


def signature_of(function: Function) -> Signature:
    """Return the signature that `inspect.signature` reports."""
    params, result, outs, _, _ = function._declared
    names, num_positional = names_in_python([name for name, _ in params])
    kinds = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.POSITIONAL_ONLY)
    defaults = defaults_of(function)
    made = [
        Parameter(
            name,
            kinds[i < num_positional],
            default=Parameter.empty if defaults[i] is ... else defaults[i],
            annotation=annotation_of(params[i][1]),
        )
        for i, name in enumerate(names)
    ]
    return Signature(made, return_annotation=_results(result, outs))


def _result(code: str) -> Any:
    if code[:1] in ("*", "&"):
        return str if code == "*char" else "handle"
    if code[:1] == "=":
        return f"{code.strip('={}')} handle"
    return annotation_of(code)


def _results(result: str | None, outs: list[tuple[str, str]]) -> Any:
    codes = [result] if result not in (None, "void", "status") else []
    codes += [code for _, code in outs]
    found = [_result(code) for code in codes if code is not None]
    if len(found) < 2:
        return found[0] if found else None
    names = (item if isinstance(item, str) else getattr(item, "__name__", "None") for item in found)
    return f"({', '.join(names)})"


def find_keyword(function: Function, name: str) -> int:
    """Return the position of a parameter by its Python name; refuse a name that no one has."""
    names = [python_name(param) for param, _ in function._declared[0]]
    if name in names:
        return names.index(name)
    text = f"{function.name}: unexpected keyword argument {name!r}{near_names(name, names)}"
    raise TypeError(text)


# ---- Functions without declared types: bytecode functions


def signature_of_names(function: Function) -> Signature:
    """Return the signature of a function whose parameters have names only.

    The function of a model with a record has the types of its inputs and outputs, as text.
    """
    params = list(function._names or ())
    inputs, result = _types_of_model(function)
    kind, no_type = Parameter.POSITIONAL_OR_KEYWORD, Parameter.empty
    made = [
        Parameter(name, kind, annotation=inputs.get(param, no_type))
        for name, param in zip(names_in_python(params)[0], params, strict=True)
    ]
    return Signature(made, return_annotation=result)


def _types_of_model(function: Function) -> tuple[dict[str, str], Any]:
    """Return the types of the inputs by name, and of the result, that the owner's record has."""
    owner = function.owner
    record = getattr(owner, "model_record", None)
    found = record.ends_of(function.name) if record is not None else None
    if found is None:
        return {}, Signature.empty
    inputs, outputs = ([str(info).partition(": ")[2] for info in infos] for infos in found)
    result = outputs[0] if len(outputs) == 1 else f"({', '.join(outputs)})"
    return dict(zip([info.name for info in found[0]], inputs, strict=True)), result


def in_order(
    function: Function, given: tuple[Any, ...], keywords: tuple[str, ...], values: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Return the arguments of a call in the order of the names; a name may be that in Python."""
    names = function._names or ()
    in_python = names_in_python(list(names))[0]
    missing = object()
    ordered = [*given, *([missing] * (len(names) - len(given)))]
    for keyword, value in zip(keywords, values, strict=True):
        index = names.index(keyword) if keyword in names else _index(in_python, keyword)
        if index is None:
            text = f"{function.name}: unexpected keyword argument {keyword!r}"
            raise TypeError(text + near_names(keyword, list(names)))
        if ordered[index] is not missing:
            raise TypeError(f"{function.name}: argument {keyword!r} given twice")
        ordered[index] = value
    for name, value in zip(names, ordered, strict=False):
        if value is missing:
            raise TypeError(f"{function.name}: missing argument {name!r}, expected {listed(names)}")
    return tuple(ordered)


def _index(names: list[str], name: str) -> int | None:
    return names.index(name) if name in names else None

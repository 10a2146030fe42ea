"""The signature of one function, from its facts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from runtime.error import ExportError
from runtime.signature import names_in_python
from runtime.structs.text import is_wide

from ...declare.c_type import parse_functions
from ...declare.code import split_extents
from ...declare.declaration import Callback, Struct
from ...declare.facts import Facts
from ...files.text import printable
from .annotations import Annotations, is_number
from .names import MOST_COLUMNS, Names, quoted


class Parameter(NamedTuple):
    """One parameter: its name in Python, its annotation, and its default or ""."""

    name: str
    annotation: str
    default: str

    def __str__(self) -> str:
        return f"{self.name}: {self.annotation}" + (f" = {self.default}" if self.default else "")


class Signature(NamedTuple):
    """The signature of one function."""

    parameters: tuple[Parameter, ...]
    num_positional: int  # the number of parameters that cannot be passed by name
    result: str
    doc: str

    def text(self, name: str, indent: str = "", own: str = "", mark: str = "") -> str:
        """Return the definition; `own` is the first parameter of a method.

        `mark` is a comment at the end of its first line.
        """
        texts = [str(p) for p in self.parameters]
        if self.num_positional:
            texts.insert(self.num_positional, "/")
        if own and any(p.name == own for p in self.parameters):
            own = Names(p.name for p in self.parameters).add(f"_{own}")
            texts = texts if self.num_positional else ["/", *texts]
        texts = [own, *texts] if own else texts
        head, tail = f"{indent}def {name}(", f") -> {self.result}:"
        mark = f"  {mark}" if mark else ""
        line = head + ", ".join(texts) + tail
        if len(line) + len(" ...") > MOST_COLUMNS:
            rows = "".join(f"{indent}    {text},\n" for text in texts)
            line = f"{head}{mark}\n{rows}{indent}{tail}"
        else:
            line += mark
        if self.doc:
            return f"{line}\n{docstring(self.doc, f'{indent}    ')}"
        return (
            f"{line} ..." if not mark or "\n" in line else line.replace(":" + mark, ": ..." + mark)
        )

    def positional(self) -> Signature:
        """Return the signature without names of parameters."""
        return self if self.is_open else self._replace(num_positional=len(self.parameters))

    @property
    def is_open(self) -> bool:
        """True if it accepts any arguments."""
        return any(p.name[0] == "*" for p in self.parameters)


def signature_of(facts: Facts, annotations: Annotations) -> Signature:
    """Return the signature of a declared function."""
    if facts.abi == "packed_c":
        anything = annotations.scope.use("Any")
        return Signature((Parameter("*args", anything, ""),), 0, anything, facts.doc)
    structs = {struct.name: struct for struct in facts.structs}
    callbacks = _callbacks(facts)
    names, num_positional = names_in_python([name for name, _ in facts.params])
    # Type checkers do not pass arguments by names that begin with two underscores.
    private = (i + 1 for i, name in enumerate(names) if name.startswith("__"))
    num_positional = max(num_positional, *private, 0)
    made = [
        Parameter(
            name,
            _callable(callbacks[param], annotations)
            if code == "fn" and param in callbacks
            else annotations.parameter(code, structs),
            "",
        )
        for name, (param, code) in zip(names, facts.params, strict=True)
    ]
    for i, parameter in enumerate(made):
        if is_wide(facts.signature("f"), facts.params, i):
            text = annotations.scope.use("str")
            made[i] = parameter._replace(annotation=f"{text} | {parameter.annotation}")
    for i in reversed(range(len(made))):
        name = facts.params[i][0]
        if name not in facts.defaults:
            break
        made[i] = made[i]._replace(default=_default(facts.defaults[name]))
    codes = [facts.result] if facts.result not in ("void", "status") else []
    codes += [code for _, code in facts.out]
    result = annotations.results(codes, structs)
    return Signature(tuple(made), num_positional, result, facts.doc)


def signature_of_alias(facts: Facts, annotations: Annotations) -> Signature:
    """Return the signature of a function that calls a declared one, and has no facts itself.

    A call has no names for its parameters, and no types for handles, structs and the like.
    """
    signature = signature_of(facts, annotations).positional()
    if facts.out or not (is_number(facts.result) or facts.result in ("void", "status", "str")):
        return signature._replace(result=annotations.scope.use("Any"))
    return signature


def _default(value: object) -> str:
    if isinstance(value, str):
        return quoted(value)
    if value is None or isinstance(value, int):
        return repr(value)
    return repr(value) if isinstance(value, float) and math.isfinite(value) else "..."


def docstring(text: str, indent: str) -> str:
    """Return a docstring, indented."""
    safe = printable(text, "\n").replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    safe = f'{safe[:-1]}\\"' if safe.endswith('"') else safe
    first, *lines = safe.strip().split("\n")
    rows = [f'{indent}"""{first}', *(f"{indent}{line}".rstrip() for line in lines)]
    rows += [f'{indent}"""'] if lines else []
    return "\n".join(rows) if lines else f'{rows[0]}"""'


# ---- Callbacks


def _callbacks(facts: Facts) -> Mapping[str, Callback]:
    """Return the types of function pointers, by parameter; those whose types C's text tells."""
    if not any(code == "fn" for _, code in facts.params):
        return {}
    try:
        (declaration,) = parse_functions({"f": facts.type}, module="")
    except ExportError:  # it names a type of its source
        return {}
    return {callback.parameter: callback for callback in declaration.callbacks}


def _callable(callback: Callback, annotations: Annotations) -> str:
    """Return the annotation of a function that C code calls."""
    passed = ", ".join(_passed(p.code, annotations) for p in callback.parameters)
    result = "object"
    if callback.result != "void":
        result = annotations.parameter(callback.result, {})
    use = annotations.scope.use
    result = use(result) if result == "object" else result
    return f"{use('Callable')}[[{passed}], {result}] | None"


def _passed(code: str, annotations: Annotations) -> str:
    """Return what Python gets for a value that C code passes."""
    base, extents = split_extents(code)
    use = annotations.scope.use
    if base == "strs":
        items = f"{use('str')} | None" if extents else use("Never")
        return f"{use('tuple')}[{items}, ...]"
    if base == "tensor" or extents:
        return use("Tensor")
    if base == "str":
        return f"{use('str')} | None"
    no_structs: dict[str, Struct] = {}
    return annotations.result("&void" if base[0] in "@*&" else base, no_structs)

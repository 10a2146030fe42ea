"""Function facts: the text of the symbol ``__packer_fn_<name>``, read without running code.

    packer-function 1
    abi safe_call                     or packed_c
    gil release                       or keep
    type void(const float *x)         C function type without the name
    params x:&f32                     name:code of what callers pass, in order
    out mean:f64                      name:code of what is written through a pointer
    result void                       a code
    default n 1                       a parameter that callers may omit, and its value as JSON
    free foo_free                     the function that releases a handle
    lifetime db                       the parameter that a handle keeps alive
    callback visit @point :*i32 >c128 what a callback gets, where Python converts it; its result
    kept start @parser                how long a callback or user data is kept: @handle, forever
    struct point 16 8 x:f64@0 y:f64@8 name, size, alignment, field:code@offset
    plain packed_c                    the symbol without a prefix is a packed C function, too
    doc Free text, the last key       up to the end, newlines included

A NUL ends the text; unknown keys are skipped. The native core reads it at look-up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from .declaration import Declaration, Field, Parameter, Struct, prototype

FIRST_LINE = "packer-function 1"
MAX_NBYTES = 1 << 20

_DEFAULTS = {"abi": "safe_call", "gil": "release", "type": "", "params": "", "result": "void"}
_DEFAULTS |= {"out": "", "free": "", "lifetime": "", "plain": ""}
_CHOICES = {"abi": ("safe_call", "packed_c"), "gil": ("release", "keep")}


class Facts(NamedTuple):
    """The facts of one function."""

    abi: str
    gil: str
    type: str  # the C function type without the name; empty for a packed C function
    params: tuple[tuple[str, str], ...]  # the parameters that callers pass, in order
    result: str  # the code of what the C function returns
    doc: str
    out: tuple[tuple[str, str], ...] = ()  # the parameters that are results, in order
    defaults: Mapping[str, Any] = {}  # the values of parameters that callers may omit
    free: str = ""  # the function that releases a handle
    lifetime: str = ""  # the parameter that a handle keeps alive
    kept: tuple[tuple[str, str], ...] = ()  # the parameters that C code keeps, and how long
    structs: tuple[Struct, ...] = ()  # the structs that codes name; without their spelling in C
    # ``"packed_c"`` if the symbol with the plain name is a packed C function over the wrapper;
    # empty if it is the C function.
    plain: str = ""

    def signature(self, name: str) -> str | None:
        """Return the C declaration with the name, as ``Function.signature`` shows it."""
        return prototype(self.type, name) if "(" in self.type else None


def dump_facts(declaration: Declaration, legacy_calls: bool = False) -> str:
    """Write the text of ``__packer_fn_<name>``, without the NUL; the inverse of `parse_facts`."""
    lines = [FIRST_LINE, f"abi {declaration.abi}", f"gil {declaration.gil}"]
    if declaration.abi == "safe_call":
        codes = " ".join(f"{p.name}:{p.code}" for p in declaration.passed)
        lines += [f"type {declaration.text}", f"params {codes}".rstrip()]
        lines += _optional_lines(declaration)
        lines += ["plain packed_c"] * legacy_calls
    if declaration.doc:
        lines += [f"doc {declaration.doc}"]
    return "\n".join(lines) + "\n"


def _optional_lines(declaration: Declaration) -> Iterator[str]:
    """The lines from the results on, of which most functions have only one."""
    if declaration.out:
        yield "out " + " ".join(f"{p.name}:{p.code}" for p in declaration.returned)
    yield f"result {declaration.result}"
    for name, value in declaration.defaults.items():
        yield f"default {name} {json.dumps(value)}"
    if declaration.free and declaration.handles:  # the wrapper itself releases text
        yield f"free {declaration.free}"
    if declaration.lifetime:
        yield f"lifetime {declaration.lifetime}"
    for name, lifetime in declaration.kept.items():
        mark = "" if lifetime in ("call", "forever") else "@"
        yield f"kept {name} {mark}{lifetime}"
    known = {aggregate.name for aggregate in declaration.aggregates}
    for callback in declaration.callbacks:
        codes = [_passed(p, known) for p in callback.parameters]
        codes += [f">{callback.result}"] if _is_converted(callback.result) else []
        if any(code != "-" for code in codes):
            yield f"callback {callback.parameter} {' '.join(codes)}"
    for struct in declaration.structs:
        fields = " ".join(f"{f.name}:{f.code}@{f.offset}" for f in struct.fields)
        yield f"struct {struct.name} {struct.size} {struct.alignment} {fields}".rstrip()


def _passed(parameter: Parameter, known: Collection[str]) -> str:
    """Return the code by which Python converts what a callback gets; a dash if none is needed."""
    code = parameter.code
    if code[0] == "@":
        mark = "&" if parameter.type_text.startswith("const ") else "@"
        return f"{mark}{code[1:]}" if code[1:] in known else "-"
    is_typed = code[0] in "*&" and code[1:] != "void" and "[" not in code
    return f":{code}" if is_typed else code if _is_converted(code) and code[0] != "{" else "-"


def _is_converted(code: str) -> bool:
    """Return True for a struct, a union or a complex number by value."""
    return code[0] in "{=" or code in ("c64", "c128")


def parse_facts(data: bytes | memoryview) -> Facts:
    """Parse the bytes of a fact symbol: the text and its NUL.

    Raises ValueError if the text is not of this format; the message says what was expected.
    """
    if len(data) > MAX_NBYTES:
        raise ValueError(f"{len(data)} bytes, expected at most {MAX_NBYTES}")
    text, nul, rest = bytes(data).partition(b"\0")
    if not nul or rest:
        raise ValueError("expected text that ends with its only NUL")
    head, doc = _without_doc(text.decode())
    first, *lines = head.split("\n")
    if first != FIRST_LINE:
        raise ValueError(f"first line {first[:40]!r}, expected {FIRST_LINE!r}")
    pairs = [_key_value(line) for line in lines if line]
    fields = _DEFAULTS | dict(pairs)
    for key, choices in _CHOICES.items():
        if fields[key] not in choices:
            raise ValueError(f"{key} {fields[key]!r}, expected {' or '.join(choices)}")
    return Facts(
        abi=fields["abi"],
        gil=fields["gil"],
        type=fields["type"],
        params=tuple(_parameter("params", text) for text in fields["params"].split()),
        result=fields["result"],
        doc=doc,
        out=tuple(_parameter("out", text) for text in fields["out"].split()),
        defaults=dict(_default(value) for key, value in pairs if key == "default"),
        free=fields["free"],
        lifetime=fields["lifetime"],
        kept=tuple(_key_value(value) for key, value in pairs if key == "kept"),
        structs=tuple(_struct(value) for key, value in pairs if key == "struct"),
        plain=fields["plain"],
    )


def _without_doc(text: str) -> tuple[str, str]:
    """Split off the doc, which extends to the end; its last newline is not part of it."""
    head, key, doc = text.partition("\ndoc ")
    return head, doc.removesuffix("\n") if key else ""


def _key_value(line: str) -> tuple[str, str]:
    key, _, value = line.partition(" ")
    return key, value


def _parameter(key: str, text: str) -> tuple[str, str]:
    name, _, code = text.partition(":")
    if not name or not code:
        raise ValueError(f"{key} {text!r}, expected name:code")
    return name, code


def _default(text: str) -> tuple[str, Any]:
    name, _, value = text.partition(" ")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        raise ValueError(f"default {text!r}, expected a name and JSON") from None


def _struct(text: str) -> Struct:
    """Read a struct, which is in braces in a code; its spelling is not stored."""
    name, _, rest = text.partition(" ")
    match = re.fullmatch(r"(\d{1,18}) (\d{1,18})((?: [^ :@]+:[^ ]+@\d{1,18})*)", rest)
    if not match:
        raise ValueError(f"struct {text!r}, expected name size alignment field:code@offset ...")
    fields = (re.split(":|@(?=[0-9]+$)", field, maxsplit=2) for field in match[3].split())
    made = tuple(Field(field, code, int(offset)) for field, code, offset in fields)
    return Struct(name, "", int(match[1]), int(match[2]), made)

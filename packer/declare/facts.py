"""Function facts: the text of the symbol ``__packer_fn_<name>``, read without running code.

    packer-function 1
    abi safe_call                     or packed_c
    gil release                       or keep
    type void(const float *x)         C function type without the name
    params x:&f32                     name:code, in order
    result void                       a code
    doc Free text, the last key       up to the end, newlines included

A NUL ends the text; unknown keys are skipped. The native core reads it at look-up.
"""

from __future__ import annotations

from typing import NamedTuple

from .declaration import Declaration, prototype

FIRST_LINE = "packer-function 1"
MAX_NBYTES = 1 << 20

_DEFAULTS = {"abi": "safe_call", "gil": "release", "type": "", "params": "", "result": "void"}
_CHOICES = {"abi": ("safe_call", "packed_c"), "gil": ("release", "keep")}


class Facts(NamedTuple):
    """The facts of one function.

    Attributes
    ----------
    type : str
        The C function type without the name; empty for a packed C function.
    params : tuple of (name, code)
        The parameters in order.
    result : str
        The code of the result.
    """

    abi: str
    gil: str
    type: str
    params: tuple[tuple[str, str], ...]
    result: str
    doc: str

    def signature(self, name: str) -> str | None:
        """Return the C declaration with the name, as ``Function.signature`` shows it."""
        return prototype(self.type, name) if "(" in self.type else None


def dump_facts(declaration: Declaration) -> str:
    """Write the text of ``__packer_fn_<name>``, without the NUL; the inverse of `parse_facts`."""
    lines = [FIRST_LINE, f"abi {declaration.abi}", f"gil {declaration.gil}"]
    if declaration.abi == "safe_call":
        codes = " ".join(f"{p.name}:{p.code}" for p in declaration.parameters)
        lines += [f"type {declaration.text}", f"params {codes}".rstrip()]
        lines += [f"result {declaration.result}"]
    if declaration.doc:
        lines += [f"doc {declaration.doc}"]
    return "\n".join(lines) + "\n"


def parse_facts(data: bytes | memoryview) -> Facts:
    """Parse the bytes of a fact symbol: the text and its NUL.

    Raises
    ------
    ValueError
        If the text is not of this format; the message says what was expected.
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
    fields = _DEFAULTS | dict(_key_value(line) for line in lines if line)
    for key, choices in _CHOICES.items():
        if fields[key] not in choices:
            raise ValueError(f"{key} {fields[key]!r}, expected {' or '.join(choices)}")
    params = tuple(_parameter(text) for text in fields["params"].split())
    return Facts(fields["abi"], fields["gil"], fields["type"], params, fields["result"], doc)


def _without_doc(text: str) -> tuple[str, str]:
    """Split off the doc, which extends to the end; its last newline is not part of it."""
    head, key, doc = text.partition("\ndoc ")
    return head, doc.removesuffix("\n") if key else ""


def _key_value(line: str) -> tuple[str, str]:
    key, _, value = line.partition(" ")
    return key, value


def _parameter(text: str) -> tuple[str, str]:
    name, _, code = text.partition(":")
    if not name or not code:
        raise ValueError(f"params {text!r}, expected name:code")
    return name, code

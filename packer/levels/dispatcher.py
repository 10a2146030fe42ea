"""The C text of a dispatcher: it defines each function, and chooses a level when it is loaded.

A function is a jump through its slot. The slots begin at the lowest level, so code that runs before
the constructor, such as a resolver, can call it. The constructor runs before users' constructors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from runtime.error import ExportError

from ..declare.c_text import c_string
from ..files.shipped import templates
from .features import needed_bits

if TYPE_CHECKING:
    from .table import Level


class Dispatched(NamedTuple):
    """One function of the dispatcher."""

    name: str  # its symbol
    targets: tuple[str, ...]  # the symbol to jump to, for each level
    is_weak: bool = False  # the binding of its symbol
    is_hidden: bool = False  # the visibility of its symbol


# By machine: the marker of a function, the instructions of a stub, and the alignment of a stub.
_STUBS: Mapping[str, tuple[str, tuple[str, ...], int]] = {
    "x86_64": ("@function", ("endbr64", "jmp *{slot}(%rip)"), 16),
    "aarch64": (
        "%function",
        ("hint #34", "adrp x16, {slot}", "ldr x16, [x16, #:lo12:{slot}]", "br x16"),
        16,
    ),
}
_START = templates()
_NAME_BYTES = 16  # of a level, in the tables of level_*.s
_NUM_WORDS = {"x86_64": 4, "aarch64": 2}  # of 64 bits, that a level needs


def dispatcher(levels: Sequence[Level], functions: Sequence[Dispatched]) -> str:
    """Return the C text of a dispatcher.

    Raises ExportError if the name of a function cannot be written in assembly.
    """
    lines = [
        "/* Written by dso-packer: one definition of each function, for all CPU levels. */",
        "__asm__(",
        *(f"  {c_string(line + chr(10))}" for line in _assembly(levels, functions)),
        ");",
        "",
    ]
    return "\n".join(lines)


def _assembly(levels: Sequence[Level], functions: Sequence[Dispatched]) -> Iterator[str]:
    """Yield the slots, the constructor with its tables, and the stubs."""
    machine = levels[0].machine
    mark, stub, alignment = _STUBS[machine]
    targets = {target for function in functions for target in function.targets}
    yield from (f".hidden {_quoted(target)}" for target in sorted(targets))
    yield from ('.section .data.rel,"aw"', ".balign 8", "packer_cpu_slots:")
    yield from (f".quad {_quoted(function.targets[0])}" for function in functions)
    yield f".set packer_cpu_num_functions, {len(functions)}"
    yield f".set packer_cpu_num_levels, {len(levels)}"
    yield from (_START / f"level_{machine}.s").read_text(encoding="utf-8").splitlines()
    for level in levels:
        yield f'.ascii "{level.name}"; .skip {_NAME_BYTES - len(level.name)}'
        for index in range(_NUM_WORDS[machine]):
            yield f".quad {needed_bits(level) >> 64 * index & (1 << 64) - 1:#x}"
    yield "packer_cpu_targets:"
    for index in range(len(levels)):
        for function in functions:
            yield f".long {_quoted(function.targets[index])} - packer_cpu_targets"
    for index, function in enumerate(functions):
        name = _quoted(function.name)
        yield f"{'.weak' if function.is_weak else '.globl'} {name}"
        yield from [f".hidden {name}"] * function.is_hidden
        yield from (f".type {name}, {mark}", f".balign {alignment}", f"{name}:", ".cfi_startproc")
        yield from (line.format(slot=f"packer_cpu_slots+{8 * index}") for line in stub)
        yield from (".cfi_endproc", f".size {name}, . - {name}")


def _quoted(symbol: str) -> str:
    if not symbol.isprintable() or '"' in symbol or "\\" in symbol:
        raise ExportError(f"function {symbol!r}: expected a name without quotes for CPU levels")
    return f'"{symbol}"'

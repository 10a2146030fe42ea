"""The C text of a dispatcher: it defines each function, and chooses a level when it is loaded.

A function is a jump through its slot. The slots begin at the lowest level, so code that runs before
the constructor, such as a resolver, can call it. The constructor runs before those of users.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from runtime.error import ExportError

from ..declare.c_text import c_string

if TYPE_CHECKING:
    from .table import Level


class Dispatched(NamedTuple):
    """One function of the dispatcher.

    Attributes
    ----------
    name : str
        Its symbol.
    targets : tuple of str
        The symbol to jump to, for each level.
    is_weak, is_hidden : bool
        The binding and visibility of its symbol.
    """

    name: str
    targets: tuple[str, ...]
    is_weak: bool = False
    is_hidden: bool = False


# By machine: the marker of a function, the instructions of a stub, and the alignment of a stub.
_STUBS: Mapping[str, tuple[str, tuple[str, ...], int]] = {
    "x86_64": ("@function", ("endbr64", "jmp *{slot}(%rip)"), 16),
    "aarch64": (
        "%function",
        ("hint #34", "adrp x16, {slot}", "ldr x16, [x16, #:lo12:{slot}]", "br x16"),
        16,
    ),
}
_HEAD = """\
/* Written by dso-packer: one definition of each function, for all CPU levels. */
#include "dso_cpu.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HIDDEN __attribute__((visibility("hidden")))
"""
_CODE = """\

/* The first level of `code` that DSO_CPU names and the processor has; else the best. */
static int packer_cpu_choose(void) {
  const uint64_t features = dso_cpu_features();
  const char *forced = getenv("DSO_CPU");
  int best = -1;
  for (int i = 0; i < NUM_LEVELS; i++)
    if ((features & needs[i]) == needs[i]) best = i;
  if (best < 0)
    fprintf(stderr, "DSO_CPU: this processor has less than %s, the lowest level of a library; "
                    "its code may end the process\\n", names[0]);
  if (best < 0 || forced == NULL || *forced == '\\0') return best < 0 ? 0 : best;
  for (int i = 0; i < NUM_LEVELS; i++)
    if (strcmp(forced, names[i]) == 0 && (features & needs[i]) == needs[i]) return i;
  fprintf(stderr, "DSO_CPU: level %.40s is not in a library, or not of this processor; "
                  "%s is used\\n", forced, names[best]);
  return best;
}

/* Before all other constructors. */
__attribute__((constructor(0))) static void packer_cpu_set(void) {
  const int32_t *targets = packer_cpu_targets + (long)packer_cpu_choose() * NUM_FUNCTIONS;
  for (int i = 0; i < NUM_FUNCTIONS; i++)
    packer_cpu_slots[i] = (const char *)packer_cpu_targets + targets[i];
}
"""


def dispatcher(levels: Sequence[Level], functions: Sequence[Dispatched]) -> str:
    """Return the C text of a dispatcher.

    Raises
    ------
    ExportError
        If the name of a function cannot be written in assembly.
    """
    needs = (
        " | ".join([f"DSO_CPU_BIT({name})" for name in level.features] or ["0"]) for level in levels
    )
    lines = [
        _HEAD,
        f"enum {{ NUM_LEVELS = {len(levels)}, NUM_FUNCTIONS = {len(functions)} }};",
        f"static const char *const names[] = {{{', '.join(c_string(x.name) for x in levels)}}};",
        f"static const uint64_t needs[] = {{{', '.join(needs)}}};",
        "extern HIDDEN const void *packer_cpu_slots[];",
        "extern HIDDEN const int32_t packer_cpu_targets[];",
        "__asm__(",
        *(f"  {c_string(line + chr(10))}" for line in _assembly(levels, functions)),
        ");",
        _CODE,
    ]
    return "\n".join(lines)


def _assembly(levels: Sequence[Level], functions: Sequence[Dispatched]) -> Iterator[str]:
    """Yield the slots, the distance of each target from the first row, and the stubs."""
    mark, stub, alignment = _STUBS[levels[0].machine]
    targets = {target for function in functions for target in function.targets}
    yield from (f".hidden {_quoted(target)}" for target in sorted(targets))
    yield from ('.section .data.rel,"aw"', ".balign 8", "packer_cpu_slots:")
    yield from (f".quad {_quoted(function.targets[0])}" for function in functions)
    yield from ('.section .rodata,"a"', ".balign 4", "packer_cpu_targets:")
    for index in range(len(levels)):
        for function in functions:
            yield f".long {_quoted(function.targets[index])} - packer_cpu_targets"
    yield ".text"
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

"""The C modules of a model: its operators, and what the program itself needs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from packer import CSourceModule, ExportError, FunctionDeclaration
from packer import operators as fast
from packer.declare.c_text import c_string

from .dtypes import c_type
from .extent import FLOOR_DIV, Extent, in_c, parameter

if TYPE_CHECKING:
    from .operator import Operator
    from .read.equations import Conditions

COPY = "dso_copy_bytes"
_HELPERS = """\
#include <stdint.h>
#include <string.h>

void dso_copy_bytes(const void *from, void *to, int64_t nbytes) {
  memcpy(to, from, (size_t)nbytes);
}
"""
_HELPER_TYPES = {COPY: "void(const void *from, void *to, int64_t nbytes)"}

# Loops become vectors, also loops with sqrtf, floorf and their like, whose errno is not read.
_OPTIONS = ("-O3", "-fno-math-errno", "-fno-trapping-math")

# Two models of one library share the modules of equal code: a symbol has one definition.
_MADE: WeakValueDictionary[Hashable, CSourceModule] = WeakValueDictionary()


def operator_modules(
    operators: Sequence[Operator], options: Sequence[str] = ()
) -> list[CSourceModule]:
    """Make one module for each distinct operator, and the modules of `packer.operators`.

    Parameters
    ----------
    operators : sequence of Operator
        Of one program or more.
    options : sequence of str
        Compiler options for the operators.

    Returns
    -------
    list of CSourceModule
        Modules of equal code are the same object, also between calls.

    Raises
    ------
    ExportError
        Two operators of one name have different code.
    """
    distinct: dict[str, Operator] = {}
    for operator in operators:
        if operator.code and distinct.setdefault(operator.name, operator).code != operator.code:
            raise ExportError(f"operator {operator.name!r}: two definitions, expected one")
    words = (*_OPTIONS, *options)
    made = [_operator_module(operator, words) for operator in distinct.values()]
    parts = sorted({part for operator in operators for part in operator.parts})
    sources = fast.sources(*parts) if parts else []
    return made + [shared(f"dso_{p.stem}", p, partial(CSourceModule, p)) for p in sources]


def helper_module() -> CSourceModule:
    """Return the module of `COPY`."""
    return shared(
        "dso_helpers", _HELPERS, partial(CSourceModule, _HELPERS, functions=_HELPER_TYPES)
    )


_NUMBERS = """\
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "dso_packer.h"

%(functions)s%(steps)s
static inline int64_t n_up(int64_t a) { return (a + 63) / 64 * 64; }

%(numbers)s/* The bytes in floating point, where nothing overflows. */
#define n_floor(a, b) floor((a) / (b))
#define n_max(a, b) fmax(a, b)
#define n_min(a, b) fmin(a, b)
#define n_up(a) ((a) + 63)
%(nbytes)s#undef n_floor
#undef n_max
#undef n_min
#undef n_up

static int32_t refuse(const char *what, int64_t one, int64_t other) {
  char text[512];
  snprintf(text, sizeof text, "%%s%%" PRId64 "%%s%%" PRId64, what, one, ", found ", other);
  return dso_raise("ValueError", text);
}
%(checks)s"""
_NUMBER = """\
int64_t %(name)s(int64_t index, %(integers)s) {
%(named)s%(unused)s  switch (index) {
%(cases)s  }
  return 0;
}

"""
_NBYTES = """\
static double nbytes%(number)s(%(doubles)s) {
%(doubles_named)s%(unused)s  return %(nbytes)s;
}
"""
_CHECK = """
dso_status %(name)s_check(%(integers)s) {
%(named)s%(unused)s%(checks)s  if (nbytes%(number)s(%(arguments)s) > %(most)s)
    return dso_raise("OutOfMemoryError", %(too_large)s);
  return 0;
}
"""
# The greatest s of at least 0 with factor * s + rest <= extent: the shape is checked with it.
_STEP = """
int64_t %(name)s(int64_t extent, int64_t factor, int64_t rest) {
  return n_max(n_floor(extent - rest, factor), 0);
}
"""
_MOST_NBYTES = 1 << 46  # less than the address space
_MOST_EXTENT = (1 << 31) - 1


class Numbers:
    """C functions of open extents: the numbers that are calculated from them, and their checks.

    Attributes
    ----------
    symbols : tuple of str
        The open extents of the inputs.
    name, check_name : str
        The functions: ``int64_t name(int64_t index, int64_t n_SYMBOL, ...)`` and ``dso_status
        check_name(int64_t n_SYMBOL, ...)``.
    step_name : str
        ``int64_t step_name(int64_t extent, int64_t factor, int64_t rest)``, if `has_steps`.
    is_used : bool
        True if `name` is called; without branches, loops and numbers that data decides it is
        there in any case.
    """

    def __init__(
        self,
        symbols: Sequence[str],
        named: Mapping[str, Extent],
        key: Sequence[object],
        known: Collection[str] | None = None,
    ) -> None:
        """Begin the functions; `known` are the symbols that an earlier check had, if any did."""
        self.symbols, self._known = tuple(symbols), known or ()
        self.is_used = known is None
        self._named = {parameter(name): in_c(extent) for name, extent in named.items()}
        self.name = f"numbers_{blake2b(repr(key).encode(), digest_size=8).hexdigest()}"
        self.check_name, self.step_name = f"{self.name}_check", f"{self.name}_step"
        self.has_steps = False
        self._codes: list[str] = []
        self._checks = ""
        self._nbytes = "0"
        self._function = ""

    def index(self, code: str) -> int:
        """Return the index of a number that is not known yet, an expression of C."""
        self.is_used = True
        self._codes.append(code)
        return len(self._codes) - 1

    def check(
        self, function: str, conditions: Conditions, nbytes: str, extents: Sequence[Extent]
    ) -> None:
        """Let the check refuse what does not fulfil conditions, or needs too many bytes.

        `extents` are the extents of all values: none may be negative.
        """
        self._nbytes, self._function = nbytes, function
        for symbol in (one for one in self.symbols if one not in self._known):
            most, name = conditions.most.get(symbol, _MOST_EXTENT), parameter(symbol)
            text = c_string(f"{function}: extent {symbol}, expected at most ")
            self._checks += f"  if ({name} > {most}) return refuse({text}, {most}, {name});\n"
        for extent in dict.fromkeys(extents):
            if "-" in (code := in_c(extent)):
                text = c_string(f"{function}: extent {extent}, expected at least ")
                self._checks += f"  if ({code} < 0) return refuse({text}, 0, {code});\n"
        for one, other, where in conditions.equations:
            a, b = in_c(one), in_c(other)
            text = c_string(f"{function}: {where}: extent {other} as {one}, expected ")
            self._checks += f"  if ({a} != {b}) return refuse({text}, {a}, {b});\n"

    def parts(self, number: str) -> tuple[str, str, str, str]:
        """Return the C of steps, numbers, bytes and check; `number` ends the name of `nbytes`."""
        names = [parameter(name) for name in self.symbols]
        named = [f"{name} = {code};\n" for name, code in self._named.items()]
        words = {
            "name": self.name,
            "number": number,
            "integers": self._integers(),
            "doubles": ", ".join(f"double {name}" for name in names),
            "arguments": ", ".join(f"(double){name}" for name in names),
            "named": "".join(f"  const int64_t {line}" for line in named),
            "doubles_named": "".join(f"  const double {line}" for line in named),
            "unused": "".join(f"  (void){name};\n" for name in (*names, *self._named)),
            "cases": "".join(f"    case {i}: return {c};\n" for i, c in enumerate(self._codes)),
            "nbytes": self._nbytes,
            "checks": self._checks,
            "most": float(_MOST_NBYTES),
            "too_large": c_string(f"{self._function}: the values for these extents exceed memory"),
        }
        step = _STEP % {"name": self.step_name} if self.has_steps else ""
        return step, _NUMBER % words if self.is_used else "", _NBYTES % words, _CHECK % words

    def types(self) -> dict[str, str]:
        """Return the types of the functions."""
        integers = self._integers()
        types = {self.name: f"int64_t(int64_t index, {integers})"} if self.is_used else {}
        types[self.check_name] = f"dso_status({integers})"
        if self.has_steps:
            types[self.step_name] = "int64_t(int64_t extent, int64_t factor, int64_t rest)"
        return types

    def _integers(self) -> str:
        return ", ".join(f"int64_t {parameter(name)}" for name in self.symbols)


def numbers_module(numbers: Sequence[Numbers]) -> CSourceModule | None:
    """Make the module of the functions of a variant; None for a model without open extents."""
    numbers = [one for one in numbers if one.symbols]
    if not numbers:
        return None
    parts = (one.parts(f"_{i}" if i else "") for i, one in enumerate(numbers))
    joined = map("".join, zip(*parts, strict=True))
    words = zip(("steps", "numbers", "nbytes", "checks"), joined, strict=True)
    code = _NUMBERS % {"functions": FLOOR_DIV, **dict(words)}
    types = {name: type_ for one in numbers for name, type_ in one.types().items()}
    return shared(numbers[0].name, code, partial(CSourceModule, code, functions=types))


def declaration_of(operator: Operator) -> FunctionDeclaration:
    """Return the declaration of an operator's C function.

    A type that not every compiler has is declared as void: the call converts the pointer.
    """
    numbers = [f"int64_t number{i}" for i in range(len(operator.numbers))]
    numbers += [f"int64_t {parameter(symbol)}" for symbol in operator.symbols]
    types = [c_type(value) for value in (*operator.inputs, *operator.outputs)]
    num_inputs = len(operator.inputs)
    reads = [f"const {type_} *in{i}" for i, type_ in enumerate(types[:num_inputs])]
    writes = [f"{type_} *out{i}" for i, type_ in enumerate(types[num_inputs:])]
    workspace = ["void *workspace"] if operator.workspace else []
    text = f"dso_status({', '.join([*numbers, *reads, *writes, *workspace]) or 'void'})"
    return FunctionDeclaration(text, symbol=operator.name if "void" in types else "")


def _operator_module(operator: Operator, options: tuple[str, ...]) -> CSourceModule:
    declaration = declaration_of(operator)
    include = [fast.INCLUDE] if operator.parts else []

    def make() -> CSourceModule:
        functions = {operator.name: declaration}
        return CSourceModule(operator.code, functions=functions, include=include, options=options)

    return shared(operator.name, (operator.code, declaration.declaration, options), make)


def shared(stem: str, key: Hashable, make: Callable[[], CSourceModule]) -> CSourceModule:
    """Return the module that was made for a key, or make it."""
    found = _MADE.get(key)
    if found is None:
        found = _MADE[key] = make()
        found.stem = stem
    return found

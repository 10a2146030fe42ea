"""The C modules of a model: its operators, and what the program itself needs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from packer import CSourceModule, ExportError, FunctionDeclaration
from packer import operators as fast

from .dtypes import c_type

if TYPE_CHECKING:
    from .operator import Operator

COPY, PRODUCT = "dso_copy_bytes", "dso_product"
_HELPERS = """\
#include <stdint.h>
#include <string.h>

void dso_copy_bytes(const void *from, void *to, int64_t nbytes) {
  memcpy(to, from, (size_t)nbytes);
}

int64_t dso_product(int64_t a, int64_t b) { return a * b; }
"""
_HELPER_TYPES = {
    COPY: "void(const void *from, void *to, int64_t nbytes)",
    PRODUCT: "int64_t(int64_t a, int64_t b)",
}

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
    made = [_operator_module(operator, tuple(options)) for operator in distinct.values()]
    parts = sorted({part for operator in operators for part in operator.parts})
    sources = fast.sources(*parts) if parts else []
    return made + [_shared(path.name, partial(CSourceModule, path)) for path in sources]


def helper_module() -> CSourceModule:
    """Return the module of `COPY` and `PRODUCT`."""
    return _shared("helpers", partial(CSourceModule, _HELPERS, functions=_HELPER_TYPES))


def declaration_of(operator: Operator) -> FunctionDeclaration:
    """Return the declaration of an operator's C function.

    A type that not every compiler has is declared as void: the call converts the pointer.
    """
    batch = ["int64_t batch"] if operator.takes_batch else []
    types = [c_type(value) for value in (*operator.inputs, *operator.outputs)]
    num_inputs = len(operator.inputs)
    reads = [f"const {type_} *in{i}" for i, type_ in enumerate(types[:num_inputs])]
    writes = [f"{type_} *out{i}" for i, type_ in enumerate(types[num_inputs:])]
    workspace = ["void *workspace"] if operator.workspace else []
    text = f"dso_status({', '.join([*batch, *reads, *writes, *workspace]) or 'void'})"
    return FunctionDeclaration(text, symbol=operator.name if "void" in types else "")


def _operator_module(operator: Operator, options: tuple[str, ...]) -> CSourceModule:
    declaration = declaration_of(operator)
    include = [fast.INCLUDE] if operator.parts else []

    def make() -> CSourceModule:
        functions = {operator.name: declaration}
        return CSourceModule(operator.code, functions=functions, include=include, options=options)

    return _shared((operator.code, declaration.declaration, options), make)


def _shared(key: Hashable, make: Callable[[], CSourceModule]) -> CSourceModule:
    """Return the module that was made for a key, or make it."""
    found = _MADE.get(key)
    if found is None:
        found = _MADE[key] = make()
    return found

"""Functions that compiled code uses as values: in tuples, in variables, and in ``@cfunc``.

Numba stores three addresses of such a function, and reads the one that the process has. Here only
the address for its calling convention is used, whose callers raise the exceptions of the function.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import cgutils, cpu, errors, types
from numba.core.ccallback import CFunc
from numba.core.dispatcher import Dispatcher
from numba.core.lowering import Lower

from .found import dispatcher_of

# The method that finds the address of a function without code of that convention.
_FIND = "_Lower__get_first_class_function_pointer"


class FunctionValues(cpu.CPUContext):
    """Lowers functions that are values."""

    callbacks: dict[Any, Any]

    def get_constant_generic(self, builder: Any, ty: Any, val: Any) -> Any:
        """Return a constant; that of a function has the address of its code."""
        if not isinstance(ty, types.FunctionType):
            return super().get_constant_generic(builder, ty, val)
        if isinstance(val, CFunc):
            if val not in self.callbacks:
                self.callbacks[val] = dispatcher_of(val)
            val = self.callbacks[val]
        if not isinstance(val, Dispatcher):
            what = f"a function of type {type(val).__name__}, whose address only this process has"
            raise errors.UnsupportedError(f"{what}; call one of @njit or @cfunc")
        return self._address_of(builder, ty, val)

    def cast(self, builder: Any, val: Any, fromty: Any, toty: Any) -> Any:
        """Convert a value; a dispatcher becomes the address of its code."""
        if isinstance(fromty, types.Dispatcher) and isinstance(toty, types.FunctionType):
            return self._address_of(builder, toty, fromty.dispatcher)
        return super().cast(builder, val, fromty, toty)

    def _address_of(self, builder: Any, kind: Any, dispatcher: Any) -> Any:
        kind = kind.get_precise()
        compiled = dispatcher.get_compile_result(kind.signature)
        value = cgutils.create_struct_proxy(kind)(self, builder)
        address = self.declare_function(builder.module, compiled.fndesc)
        value.jit_addr = builder.bitcast(address, self.get_value_type(types.voidptr))
        self.active_code_library.add_linking_library(compiled.library)
        return value._getvalue()


@contextmanager
def calling_by_address() -> Iterator[None]:
    """Let calls of functions that are values use only the address that `FunctionValues` stores."""

    def find(self: Any, ftype: Any, fname: str, sig: Any) -> Any:
        del fname, sig
        null = cgutils.get_null_value(cgutils.voidptr_t)  # never called
        return self.builder.bitcast(null, self.context.get_value_type(ftype))

    original = Lower.__dict__[_FIND]
    setattr(Lower, _FIND, find)
    try:
        yield
    finally:
        setattr(Lower, _FIND, original)

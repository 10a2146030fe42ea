"""The LLVM code of one signature, as Numba compiles it."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from numba.core import errors, sigutils, types
from numba.core.registry import CPUDispatcher
from numba.np.ufunc.wrappers import build_gufunc_wrapper, build_ufunc_wrapper

from .found import Found
from .needs import line_in

_LINES = 6  # of Numba's messages
# Numba's texts: of generator expressions, and of instructions that it does not know.
_CLOSURE = "The use of yield in a closure is unsupported"
_RAISED = re.compile(r"\.? Raised from (?:None|(.+) \((\d+)\))$")
_NO_DEBUG = ("debug", "target", "writable_args", "identity", "cache")


class RefusedError(Exception):
    """A function that cannot be exported: the reason, and the place if it is known.

    Attributes
    ----------
    line : int
        The line; 0 if it is unknown.
    file : str
        The file, if it is not that of the function.
    """

    def __init__(self, reason: str, line: int = 0, file: str = "") -> None:
        super().__init__(reason)
        self.line = line
        self.file = file


class Code(NamedTuple):
    """The code of one signature."""

    module: Any  # what LLVM has optimised, with the functions that are called
    name: str  # the function to call
    signature: Any  # Numba's signature, with the type of the result


def compile_signature(found: Found, signature: Any) -> Code:
    """Compile one signature.

    Raises RefusedError if Numba cannot compile it without Python objects.
    """
    try:
        compiled = _compiled(found.dispatcher, signature)
        if compiled.objectmode:
            raise RefusedError("object mode (forceobj) needs Python; use @njit")
        if found.kind == "jit":
            name = compiled.fndesc.llvm_func_name
            return Code(compiled.library._final_module, name, compiled.signature)
        made = _loop(found, compiled)
        made.library._ensure_finalized()
        return Code(made.library._final_module, made.name, compiled.signature)
    except errors.NumbaError as error:
        text = _first_lines(str(error))
        if _CLOSURE in str(error):
            text = "a generator expression, or yield in an inner function; write a loop"
        raise RefusedError(text, _line_in(error, found)) from error
    except RefusedError:
        raise
    except Exception as error:  # of any class: the compiler failed
        what = _RAISED.sub("", f"{type(error).__name__}: {error}".removesuffix(": "))
        raise RefusedError(f"Numba cannot compile it: {what}", _line_in(error, found)) from error


def _compiled(dispatcher: Any, signature: Any) -> Any:
    """Return Numba's result."""
    arguments, _ = sigutils.normalize_signature(signature)
    made = dispatcher.compile(signature)
    if not isinstance(dispatcher, CPUDispatcher):
        return made
    result = dispatcher.overloads[tuple(arguments)].signature.return_type
    plain = types.unliteral(result)
    context = dispatcher.targetctx
    if context.get_data_type(plain) != context.get_data_type(result):
        # Numba stores no text of a literal, such as that in a tuple.
        del dispatcher.overloads[tuple(arguments)]
        dispatcher.compile(plain(*arguments))
    return dispatcher.overloads[tuple(arguments)]


def _loop(found: Found, compiled: Any) -> Any:
    """Build the loop over the elements, as NumPy would call it."""
    if found.kind == "vectorize":
        name, context = compiled.fndesc.llvm_func_name, compiled.target_context
        return build_ufunc_wrapper(
            compiled.library, context, name, compiled.signature, False, compiled
        )
    core = [tuple(dims) for dims in found.core]
    inputs, outputs = core[: found.num_inputs], core[found.num_inputs :]
    function = found.dispatcher.py_func
    return build_gufunc_wrapper(function, compiled, inputs, outputs, False, is_parfors=False)


def line_that_needs(found: Found, signature: Any, symbol: str) -> int:
    """Return the line of a function that needs a symbol; 0 if it is unknown.

    It is compiled again, with debug information, which may change the code.
    """
    options = found.dispatcher.targetoptions
    kept = {key: value for key, value in options.items() if key not in _NO_DEBUG}
    dispatcher = CPUDispatcher(found.dispatcher.py_func, targetoptions={**kept, "debug": True})
    try:
        arguments, _ = sigutils.normalize_signature(signature)
        dispatcher.compile(signature)
    except Exception:  # of any class: the compiler failed
        return 0
    made = dispatcher.overloads[tuple(arguments)]
    text = str(made.library._final_module)
    return line_in(text, made.fndesc.llvm_func_name, symbol)


def _line_in(error: Any, found: Found) -> int:
    """Return the line of the file in Numba's error; 0 if it has none."""
    loc = getattr(error, "loc", None)
    file = found.dispatcher.py_func.__code__.co_filename
    if (raised := _RAISED.search(str(error))) and raised[1] == file:
        return int(raised[2])
    return loc.line if loc is not None and loc.filename == file and loc.line else 0


def _first_lines(text: str) -> str:
    """Return the part of Numba's message that says what is wrong, in one line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join(lines[:_LINES])

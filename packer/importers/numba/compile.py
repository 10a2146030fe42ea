"""From functions and signatures to one relocatable object, with Numba's own compiler."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from numba.core import errors, sigutils

from .context import Context, compiling_for
from .describe import UnsupportedTypeError, describe
from .found import Found
from .internal import make_internal
from .needs import line_that_needs, needed_by, undefined_in, why_refused
from .source import Processor
from .values import Compiled, Unit, Variant


class RefusedError(Exception):
    """A function that cannot be exported: the reason, and the line of the file if it is known."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.line = line


class _Entry(NamedTuple):
    """The code of one signature."""

    symbol: str
    compiled: Any


def compile_functions(
    functions: Sequence[Found], prefix: str, processors: Sequence[Processor]
) -> list[Unit]:
    """Compile functions for each processor.

    Parameters
    ----------
    functions : sequence of Found
        The functions.
    prefix : str
        The beginning of the hidden symbols, unlike that of other units of a library.
    processors : sequence of Processor
        The processors; at least one.

    Returns
    -------
    list of Unit
        One for each processor.
    """
    return [_compile_for(functions, prefix, processor) for processor in processors]


def _compile_for(functions: Sequence[Found], prefix: str, processor: Processor) -> Unit:
    refused: dict[str, str] = {}
    made: list[Compiled] = []
    entries: list[_Entry] = []
    notes: list[str] = []
    with compiling_for(processor.name, processor.features, prefix) as context:
        for found in functions:
            context.frozen.clear()
            try:
                compiled, own = _compile_one(context, found, f"{prefix}{len(made)}_")
            except RefusedError as error:
                file, _, line = found.place.rpartition(":")
                refused[found.name] = f"{file}:{error.line or line}: {error}"
                continue
            made.append(compiled)
            entries += own
            notes += [f"{found.place}: {found.name}: {note}" for note in _notes(context)]
        code, undefined = _link(context, entries, prefix)
    return Unit(tuple(made), code, frozenset(undefined), refused, tuple(notes))


def _notes(context: Context) -> Iterator[str]:
    for text in dict.fromkeys(context.frozen):
        yield f"a global array ({text}) is stored as it is now; later changes have no effect"


def _compile_one(context: Context, found: Found, prefix: str) -> tuple[Compiled, list[_Entry]]:
    """Compile all signatures of a function."""
    variants: list[Variant] = []
    entries: list[_Entry] = []
    for index, signature in enumerate(found.signatures):
        symbol = f"{prefix}{index}"
        compiled = _compile_signature(found, signature)
        entries.append(_Entry(symbol, compiled))
        variant = _variant(symbol, compiled)
        needed = needed_by(context.codegen(), compiled)
        if refusal := why_refused(needed):
            name, why = refusal
            line = _line_of(found, signature, name)
            raise RefusedError(f"{why} ({name})", line)
        variants.append(variant._replace(notes="nb_note" in needed))
    names = tuple(found.parameters)
    made = Compiled(
        found.name,
        found.kind,
        names,
        found.defaults,
        tuple(variants),
        found.place,
        found.doc,
        found.nogil,
        found.core,
    )
    return made, entries


def _line_of(found: Found, signature: Any, symbol: str) -> int:
    """Return the line of a function that needs a symbol: compile it with debug information."""
    dispatcher = found.dispatcher
    options, compiled = dispatcher.targetoptions, dict(dispatcher.overloads)
    dispatcher.overloads.clear()
    options["debug"], before = True, options.get("debug")
    try:
        made = _compile_signature(found, signature)
        text, name = str(made.library._final_module), made.fndesc.llvm_func_name
        return line_that_needs(text, name, symbol)
    except RefusedError:
        return 0
    finally:
        options["debug"] = before
        if before is None:
            del options["debug"]
        dispatcher.overloads.clear()
        dispatcher.overloads.update(compiled)


def _variant(symbol: str, compiled: Any) -> Variant:
    try:
        arguments = tuple(describe(kind) for kind in compiled.signature.args)
    except UnsupportedTypeError as error:
        raise RefusedError(f"an argument of {error}") from None
    try:
        return Variant(symbol, arguments, describe(compiled.signature.return_type))
    except UnsupportedTypeError as error:
        raise RefusedError(f"a result of {error}") from None


def _compile_signature(found: Found, signature: Any) -> Any:
    """Compile one signature; return Numba's result."""
    dispatcher = found.dispatcher
    try:
        arguments, result = sigutils.normalize_signature(signature)
        dispatcher.compile((arguments, result) if result is None else signature)
        compiled = dispatcher.overloads[tuple(arguments)]
    except errors.NumbaError as error:
        raise RefusedError(_first_lines(str(error))) from error
    except (NotImplementedError, AssertionError, TypeError, ValueError, KeyError) as error:
        raise RefusedError(f"Numba cannot compile it: {error}") from error
    if compiled.objectmode:
        raise RefusedError("object mode, which needs Python")
    return compiled


def _first_lines(text: str) -> str:
    """Return the part of Numba's message that says what is wrong, in one line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join(lines[:6])


def _link(context: Context, entries: Sequence[_Entry], prefix: str) -> tuple[bytes, set[str]]:
    """Join the code of all entries; return the object, and the symbols that it needs."""
    generator = context.codegen()
    module = generator.empty_module(prefix)
    for entry in entries:
        module.link_in(entry.compiled.library._final_module, preserve=True)
    names = {entry.compiled.fndesc.llvm_func_name: entry.symbol for entry in entries}
    make_internal(module, names, prefix)
    generator.remove_unused(module)
    return generator.emit(module), undefined_in(module)

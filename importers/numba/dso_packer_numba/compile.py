"""From functions and signatures to one relocatable object, with Numba's own compiler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .code import Code, RefusedError, compile_signature, line_that_needs
from .constructs import construct_in, line_of
from .context import Context, compiling_for
from .describe import UnsupportedTypeError, describe, describe_argument
from .found import Found, is_for_values
from .internal import make_internal, resolve
from .needs import allocates_memory, needed_by, undefined_in, why_refused
from .source import Processor, Progress
from .values import Compiled, Unit, Value, Variant


class _Entry(NamedTuple):
    """The code of one signature, and its symbol."""

    symbol: str
    code: Code


def compile_functions(
    functions: Sequence[Found],
    prefix: str,
    processors: Sequence[Processor],
    blas: Path | None,
    progress: Progress,
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
    blas : Path, optional
        As for `find_blas`.
    progress : callable
        Gets the name of each function before it is compiled.

    Returns
    -------
    list of Unit
        One for each processor.
    """
    return [_compile_for(functions, prefix, one, blas, progress) for one in processors]


def _compile_for(
    functions: Sequence[Found],
    prefix: str,
    processor: Processor,
    blas: Path | None,
    progress: Progress,
) -> Unit:
    refused: dict[str, str] = {}
    made: list[Compiled] = []
    entries: list[_Entry] = []
    notes: list[str] = []
    with compiling_for(processor.name, processor.features, prefix) as context:
        for index, found in enumerate(functions):
            place = f"{index + 1} of {len(functions)}"
            progress(f"compile {found.name} {processor.name and f'for {processor.name} '}({place})")
            context.frozen.clear()
            try:
                symbols = {entry.code.name: entry.symbol for entry in entries}
                compiled, own = _compile_one(context, found, f"{prefix}{len(made)}_", symbols, blas)
            except RefusedError as error:
                file, _, line = found.place.rpartition(":")
                refused[found.name] = f"{error.file or file}:{error.line or line}: {error}"
                continue
            made.append(compiled)
            entries += own
            notes += [f"{found.place}: {found.name}: {note}" for note in _notes(context)]
        data, undefined = _link(context, entries, prefix)
    return Unit(tuple(made), data, frozenset(undefined), refused, tuple(notes))


def _notes(context: Context) -> Iterator[str]:
    for text in dict.fromkeys(context.frozen):
        yield f"a global array ({text}) is stored as it is now; later changes have no effect"


def _compile_one(
    context: Context, found: Found, prefix: str, symbols: Mapping[str, str], blas: Path | None
) -> tuple[Compiled, list[_Entry]]:
    """Compile all signatures of a function; what another name of it has, `symbols`, is shared."""
    variants: list[Variant] = []
    entries: list[_Entry] = []
    seen: set[tuple[Any, ...]] = set()
    for index, signature in enumerate(_signatures(found)):
        code = compile_signature(found, signature)
        if tuple(code.signature.args) in seen:  # as in Numba, which keeps one
            continue
        seen.add(tuple(code.signature.args))
        entry = _Entry(symbols.get(code.name, f"{prefix}{index}"), code)
        variant = _variant(found, entry)
        needed = needed_by(context, entry.code)
        if construct := construct_in(needed):
            raise RefusedError(construct.why, construct.line, construct.file)
        if refusal := why_refused(needed, blas):
            symbol, why = refusal
            line = line_that_needs(found, signature, symbol)
            is_told = symbol in why or (line and symbol.startswith(("Py", "numba")))
            raise RefusedError(why if is_told else f"{why} ({symbol})", line)
        if code.name not in symbols:
            entries.append(entry)
        allocates = allocates_memory(variant.arguments, needed)
        variants.append(variant._replace(notes="nb_note" in needed, allocates=allocates))
    made = Compiled(
        found.name,
        found.kind,
        tuple(found.parameters),
        dict(found.defaults),
        tuple(variants),
        found.place,
        found.doc,
        found.nogil,
        found.core or tuple(() for _ in variants[0].arguments),
        found.num_inputs or len(variants[0].arguments) - 1,
    )
    return made, entries


def _signatures(found: Found) -> Iterator[Any]:
    """Yield a function's signatures, and the ones that its decorator adds for recursive calls."""
    yield from found.signatures
    if found.is_closed:
        yield from [types for types in found.dispatcher.overloads if not is_for_values(types)]


def _variant(found: Found, entry: _Entry) -> Variant:
    signature = entry.code.signature
    try:
        arguments = tuple(map(describe_argument, signature.args))
    except UnsupportedTypeError as error:
        raise RefusedError(f"an argument of {error}") from None
    try:
        result = describe(signature.return_type)
    except UnsupportedTypeError as error:
        line = line_of(found.dispatcher.py_func, "RETURN_VALUE")
        raise RefusedError(f"a result of {error}", line) from None
    if found.kind == "vectorize":
        arguments, result = (*arguments, result), Value("none", "none")
    others = [value for value in arguments if value.kind not in ("number", "array")]
    if found.kind != "jit" and others:
        raise RefusedError(f"an operand of type {others[0].text}, expected numbers")
    return Variant(entry.symbol, arguments, result)


def _link(context: Context, entries: Sequence[_Entry], prefix: str) -> tuple[bytes, set[str]]:
    """Join the code of all entries; return the object, and the symbols that it needs."""
    generator = context.codegen()
    module = generator.empty_module(prefix)
    for entry in entries:
        module.link_in(entry.code.module, preserve=True)
    resolve(module, context.libraries)
    make_internal(module, {entry.code.name: entry.symbol for entry in entries}, prefix)
    generator.remove_unused(module)
    return generator.emit(module), undefined_in(module)

"""The functions of the host code with their metadata, and the library's entry function."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from runtime.abi import FACT_PREFIX, FUNCTION_PREFIX, MAIN_NAME

from ..declare.facts import MAX_NBYTES, Facts, parse_facts
from .report import FunctionReport

if TYPE_CHECKING:
    from ..elf.image import Image
    from ..elf.symbol_table import Symbol, SymbolTable

METADATA_PREFIX = "__tvm_ffi__metadata_"
MAX_FUNCTIONS = 65_536


def read_functions(image: Image, symbols: SymbolTable) -> tuple[FunctionReport, ...]:
    """Find the callable functions, sorted by name.

    These are the safe-call functions, as in ``LibraryModule.function_names``, and the packed C
    functions that facts declare.
    """
    start = len(FUNCTION_PREFIX)
    names = {s.name[start:] for s in _first(image, symbols, FUNCTION_PREFIX) if s.type == "FUNC"}
    names = {name for name in names if name and not name.startswith("_")}
    facts: dict[str, Facts] = {}
    budget = len(image.data)  # symbols may overlap; this bounds the bytes read
    for symbol in _first(image, symbols, FACT_PREFIX):
        budget -= symbol.size
        found = _read_facts(image, symbol) if budget >= 0 else None
        name = symbol.name[len(FACT_PREFIX) :]
        if found is not None and (name in names or found.abi == "packed_c"):
            facts[name] = found
    metadata = {symbol.name for symbol in _first(image, symbols, METADATA_PREFIX)}
    return tuple(
        _function(name, facts.get(name), METADATA_PREFIX + name in metadata)
        for name in sorted(names | facts.keys())
    )


def read_entry_function(image: Image, symbols: SymbolTable) -> str | None:
    """Read the name of the function that a call of the library runs."""
    symbol = symbols.find(MAIN_NAME)
    if symbol is None:
        return None
    with image.reading():
        name = bytes(image.data_of(symbol)[:MAX_NBYTES]).rstrip(b"\0")
        if name.isascii():
            return name.decode()
        raise image.error(f"{MAIN_NAME} contains {name[:40]!r}, expected a function's name")
    return None


def _first(image: Image, symbols: SymbolTable, prefix: str) -> Iterator[Symbol]:
    """Find symbols, at most as many as a library may have functions: a file may have a million."""
    found = symbols.beginning_with(prefix)
    yield from islice(found, MAX_FUNCTIONS)
    if next(found, None) is not None:
        text = f"more than {MAX_FUNCTIONS:,} symbols {prefix}*, expected at most that many"
        image.problems.append(text)


def _read_facts(image: Image, symbol: Symbol) -> Facts | None:
    with image.reading():
        try:
            return parse_facts(image.data_of(symbol))
        except ValueError as error:
            raise image.error(f"{symbol.name} at {symbol.address:#x}: {error}") from error
    return None


def _function(name: str, facts: Facts | None, has_metadata: bool) -> FunctionReport:
    metadata = METADATA_PREFIX + name if has_metadata else None
    if facts is None:
        symbol = FUNCTION_PREFIX + name
        return FunctionReport(name, symbol, "safe_call", None, (), None, "", None, metadata)
    return FunctionReport(
        name,
        symbol=name if facts.abi == "packed_c" else FUNCTION_PREFIX + name,
        abi=facts.abi,
        signature=facts.signature(name),
        params=facts.params,
        result=facts.result if facts.type else None,
        doc=facts.doc,
        gil=facts.gil,
        metadata=metadata,
    )

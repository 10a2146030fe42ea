"""Say what TVM to 2025 calls if it looks up a function of a library by its plain name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from runtime.abi import FACT_PREFIX

from ..declare.facts import parse_facts
from ..elf.dynamic import read_dynamic
from .findings import Finding

if TYPE_CHECKING:
    from . import LibraryReport

_NAME = "TVM to 2025"


def check_legacy(path: str | os.PathLike[str], report: LibraryReport) -> Iterator[Finding]:
    """Check the plain names of declared functions: a C function there is called as a packed one."""
    exported = {s.name for s in report.symbols.dynamic if s.defined and s.type == "FUNC"}
    declared = [f.name for f in report.functions if f.signature is not None and f.name in exported]
    if not declared:
        return
    dynamic = read_dynamic(path)
    symbol = dynamic.symbols.find(FACT_PREFIX + declared[0])
    try:
        is_plain = symbol is not None and parse_facts(dynamic.image.data_of(symbol)).plain
    except ValueError:
        return  # damaged, as another finding says
    if is_plain:
        yield Finding(_NAME, "pass", "plain names are packed C functions, which it can call")
        return
    more = f" and {len(declared) - 1} more" if len(declared) > 1 else ""
    detail = f"must not call {declared[0]}{more}: a C function, which it takes for a packed one"
    yield Finding(_NAME, "pass", f"{detail}; export with --legacy-calls for it")

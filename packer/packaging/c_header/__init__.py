"""A type-safe C header of one library, written from the metadata of its functions."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from runtime.abi import FACT_PREFIX, __version__
from runtime.constants import ConstantsRecord

from ...declare.facts import Facts, parse_facts
from ...elf.dynamic import read_dynamic
from ...files.output import refuse_output_among_inputs, replacing
from ...inspect import LibraryReport, inspect_library
from ...inspect.constants import read_constants
from .constants import values_text
from .function import Scope, function_text
from .names import Names, comment, identifier, literal

__all__ = ["header_text", "write_header"]


class Function(NamedTuple):
    """A function of known type."""

    name: str
    identifier: str
    facts: Facts


def write_header(library: str | os.PathLike[str], output: str | os.PathLike[str]) -> None:
    """Write the header of a library of any machine, which is read, never executed.

    The first part of the header's name is the prefix of all names in it.
    """
    refuse_output_among_inputs(output, [library])
    text = header_text(library, identifier(Path(output).stem))
    with replacing(output) as workspace:
        workspace.output.write_text(text)
        workspace.commit()


def header_text(library: str | os.PathLike[str], prefix: str) -> str:
    """Return the header of a library, whose names begin with `prefix`."""
    report = inspect_library(library)
    functions = tuple(_typed_functions(library, report, prefix))
    handles = _handles(functions)
    above = "\n\n".join([_head(report, prefix, bool(functions)), *_constants(report, prefix)])
    parts = [
        above,
        "\n".join(f"typedef struct {prefix}_{h} {prefix}_{h};" for h in sorted(handles)),
        _holder(functions, prefix),
        *(
            function_text(f.facts, f.name, f.identifier, index, Scope(prefix, handles))
            for index, f in enumerate(functions)
        ),
        values_text(_record(library), prefix, re.findall(r"#define (\w+)", above)),
        _untyped(report, {f.name for f in functions}),
        f"#ifdef __cplusplus\n}}\n#endif\n\n#endif /* {prefix.upper()}_H */",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _typed_functions(
    library: str | os.PathLike[str], report: LibraryReport, prefix: str
) -> Iterator[Function]:
    dynamic = read_dynamic(os.fspath(library))
    names = Names(f"{prefix}_open", f"{prefix}_close")
    for function in report.functions:
        symbol = dynamic.symbols.find(FACT_PREFIX + function.name)
        if function.signature is None or symbol is None:
            continue
        facts = parse_facts(dynamic.image.data_of(symbol))
        yield Function(function.name, names.add(f"{prefix}_{function.name}"), facts)


def _record(library: str | os.PathLike[str]) -> ConstantsRecord:
    dynamic = read_dynamic(os.fspath(library))
    return read_constants(dynamic.image, dynamic.symbols)


def _head(report: LibraryReport, prefix: str, has_functions: bool) -> str:
    library = comment(os.path.basename(report.path))
    guard = f"{prefix.upper()}_H"
    calls = f"\n *     {prefix}_...(&model, ..., &result);" if has_functions else ""
    return f"""\
/* The functions and weights of {library}. C99 and C++11. Written by packer c-header {__version__}.
 *
 *     {prefix} model;
 *     if ({prefix}_open(&model, "{library}", NULL)) return puts(dso_last_error()), 1;{calls}
 *     {prefix}_close(&model);
 *
 * The functions return 0, or -1 with the error raised: dso_last_error(). */
#ifndef {guard}
#define {guard}

#include "dso_typed.h"

#if DSO_ABI_VERSION != 1
#error "dso_abi.h has another version than this header: write it again with packer c-header"
#endif

#ifdef __cplusplus
extern "C" {{
#endif"""


def _constants(report: LibraryReport, prefix: str) -> Iterator[str]:
    """The version, the licence, the producer, the entry, and the names of the weights."""
    described = ((name, report.metadata.get(name)) for name in ("version", "license"))
    lines = [
        f"#define {prefix.upper()}_{name.upper()} {literal(text)}"
        for name, text in described
        if isinstance(text, str)
    ]
    if report.producer:
        lines.append(f"#define {prefix.upper()}_PRODUCER {literal(report.producer)}")
    if report.entry:
        lines.append(f"#define {prefix.upper()}_ENTRY {literal(report.entry)}")
    yield "\n".join(lines)
    names = Names()
    weights = []
    for module in report.modules:
        for tensor in module.tensors:
            name = names.add(f"{prefix}_weight_{tensor.name}".upper())
            shape = f"{tensor.dtype}{list(tensor.shape)}"
            weights.append(f"#define {name} {literal(tensor.name)} /* {comment(shape)} */")
    if weights:
        yield "\n".join(("/* Weights, for dso_module_weight(model.module, ...). */", *weights))


def _handles(functions: tuple[Function, ...]) -> frozenset[str]:
    """Return the names of handles, each of which becomes a type."""
    return frozenset(
        code[1:]
        for f in functions
        for code in (f.facts.result, *(c for _, c in (*f.facts.params, *f.facts.out)))
        if re.fullmatch(r"@[A-Za-z_]\w*", code, re.ASCII)
    )


def _holder(functions: tuple[Function, ...], prefix: str) -> str:
    count = len(functions)
    rows = ",\n".join(f"      {{{literal(f.name)}, {literal(f.facts.type)}}}" for f in functions)
    declared = "NULL"
    table = ""
    if functions:
        declared = "declared"
        table = f"  static const dso_typed_declaration declared[] = {{\n{rows},\n  }};\n"
    return f"""\
/* The library, and its functions, found once. */
typedef struct {{
  dso_module *module;
  dso_function *functions[{max(count, 1)}];
}} {prefix};

/* Load the library from a file. `options` may be NULL. */
static inline int {prefix}_open({prefix} *self, const char *path, const dso_options *options) {{
{table}\
  return dso_typed_open(&self->module, self->functions, {declared}, {count}, path, options);
}}

static inline void {prefix}_close({prefix} *self) {{
  dso_typed_close(&self->module, self->functions, {count});
}}"""


def _untyped(report: LibraryReport, typed: set[str]) -> str:
    """List the functions that dso_module_call calls without a check of types."""
    lines = [f"{f.name}" for f in report.functions if f.name not in typed]
    for module in report.modules:
        if module.index != 0:
            lines += module.signatures or module.functions
    if not lines:
        return ""
    rows = "\n".join(f" *     {comment(line)}" for line in lines)
    return f"/* Functions without C types, for dso_module_call(model.module, ...):\n *\n{rows}\n */"

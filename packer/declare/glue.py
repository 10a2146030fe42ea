"""Glue: the C file of one library, with the wrappers, facts and entry of all declared functions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from runtime.abi import CONTEXT_SYMBOLS

from ..dialect import PACKED_PREFIX, Naming
from .c_text import c_string
from .constants.variables import is_access
from .declaration import Declaration, with_char
from .facts import dump_facts
from .kept import is_kept
from .legacy import packed_lines
from .metadata import descriptions
from .results import INITIALIZER
from .structs import Structs
from .wrapper import (
    body_lines,
    declared_lines,
    guarded_lines,
    headers_of,
    initializer_lines,
    narrow_types,
)

_HEADER = """\
/* Written by dso-packer: the safe-call wrappers of one library. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O1") /* calls as quick as with -O2, and compiled in less time */
#endif"""
_BEGIN = """\

#ifdef __cplusplus
extern "C" {
#endif

#ifndef DSO_PACKER_H
DSO_EXPORT void (*__TVMFFIErrorSetRaisedFromCStr)(const char *kind, const char *message) = 0;
#endif"""
_HALVES = {"f16": "_Float16", "bf16": "__bf16"}
_RAISE = "__TVMFFIErrorSetRaisedFromCStr"
_FOOTER = """
#ifdef __cplusplus
}
#endif
"""
_SAFE_CALL = "(void *handle, const dso_any *args, int32_t num_args, dso_any *result)"


class Glue:
    """The C text of one library's declared functions, and the symbols that it exports.

    `declarations` has the functions of all modules that merge into the library, each name once;
    `entry` is the function that a call of the library itself runs. `char` is the code of plain
    char, ``"i8"`` or ``"u8"``. `records` are the records that the glue defines, by symbol. A call
    of a function of `constants` is refused before its ``__init_`` function ran. `ready` are the
    functions whose safe calls the code itself defines.

    `symbols` maps each exported symbol to its name in the C text, without the checksums; `packed`
    does so for the declared functions that are packed C functions themselves. `texts` has the
    symbols that are data, with their text without the NUL: the facts, the entry, the records.
    """

    def __init__(
        self,
        declarations: Sequence[Declaration],
        entry: str | None,
        naming: Naming,
        char: str,
        records: Mapping[str, str] = MappingProxyType({}),
        constants: Collection[str] = (),
        ready: Collection[str] = (),
    ) -> None:
        declarations = [with_char(declaration, char) for declaration in declarations]
        self._naming = naming
        self._ready = ready
        self._headers = {"dso_abi.h", "glue.h"}
        self._narrow: set[str] = set()
        self._structs = Structs()
        self._symbols = {d.name: d.symbol or d.name for d in declarations}
        # C code may keep a callback and call it during any later call of the library.
        has_callbacks = any(d.callbacks for d in declarations)
        self._checks = ("if (!status) status = dso_check_kept();",) * has_callbacks
        self._headers |= {"glue_callback.h"} if has_callbacks else set()
        if any(is_kept(d, c.parameter) for d in declarations for c in d.callbacks):
            failed, gone = "if (dso_take_failed()) status = -1;", "status = dso_check_gone();"
            self._checks = (failed, *self._checks, f"if (!status) {gone}")
            self._headers |= {"glue_kept.h"}
        wrapped = {d.name: i for i, d in enumerate(declarations) if d.abi == "safe_call"}
        # Of a function with constants and of its initialiser, the place of the latter.
        self._initializers: dict[str, int] = {}
        for name in sorted(wrapped.keys() & constants):
            if (index := wrapped.get(INITIALIZER + name)) is not None:
                self._initializers |= {name: index, INITIALIZER + name: index}
        self._lines: list[str] = [
            f"static int dso_has_constants_{i};" for i in sorted({*self._initializers.values()})
        ]
        self.packed: dict[str, str] = {}
        self.symbols: dict[str, str] = {}
        self.texts: dict[str, str] = {}
        for index, declaration in enumerate(declarations):
            self._lines += ["", f"/* {declaration.name} */"]
            self._add_function(index, declaration)
            if declaration.name == entry:
                self._add_entry(index, declaration)
        if entry is not None:
            self.texts[naming.entry] = entry
        self.texts |= records
        for index, (symbol, text) in enumerate(records.items()):
            self._define_text(f"dso_record_{index}", symbol, text)

    def source(self, checksums: str) -> str:
        """Return the text of glue.c, with the text of the checksums of the library."""
        name = self._naming.checksums
        lines = ["", "/* checksums */", *_text_lines("dso_checksums", name, checksums)]
        register = self._naming.register
        if register:
            lines += self._registration_lines({name: "dso_checksums"})
        defines = [f"#define DSO_REGISTER {register}"] if register else []
        includes = [f'#include "{header}"' for header in sorted(self._headers)]
        narrow = [f"DSO_TAKE_NARROW(dso_take_{c}, {_HALVES[c]})" for c in sorted(self._narrow)]
        return "\n".join(
            [_HEADER, *defines, *includes, _BEGIN, *narrow, *self._lines, *lines, _FOOTER]
        )

    def _add_function(self, index: int, declaration: Declaration) -> None:
        name, naming = declaration.name, self._naming
        is_legacy = naming.legacy_calls and not is_access(name)
        self.texts[naming.fact(name)] = text = dump_facts(declaration, is_legacy)
        self._define_text(f"dso_fact_{index}", naming.fact(name), text)
        if declaration.abi == "packed_c":
            self.packed[name] = f"dso_packed_{index}"
            return
        self._lines += self._structs.add(declaration)
        scope = self._structs.scope(declaration)
        self._headers |= {"glue_take.h", "glue_give.h"} | headers_of(declaration, scope)
        self._narrow |= narrow_types(declaration, scope)
        free = self._symbols.get(declaration.free, declaration.free)
        self._lines += declared_lines(index, declaration, scope, free)
        wrapper, body = f"dso_wrapper_{index}", body_lines(index, declaration, scope, self._checks)
        self._define_function(wrapper, naming.wrapper(name), self._guarded(index, name, body))
        if is_legacy:
            self._headers.add("glue_legacy.h")
            self._lines += packed_lines(index, declaration, PACKED_PREFIX + name)
            self.symbols[naming.prefix + name] = f"dso_packed_{index}"
        if naming.dialect == "tvm-ffi":
            for tag, text in descriptions(declaration).items():
                lines = [
                    "(void)handle, (void)args, (void)num_args;",
                    f"return dso_give_string(result, {c_string(text)});",
                ]
                self._define_function(f"dso{tag}{index}", naming.description(tag, name), lines)

    def _guarded(self, index: int, name: str, body: Iterator[str]) -> Iterator[str]:
        """Return the body of a wrapper that refuses, or provides, missing constants."""
        place = self._initializers.get(name)
        if place is None:
            return body
        if place != index:
            return guarded_lines(place, body)
        self._lines += _function_lines(f"static int dso_initialize_{index}", body)
        return initializer_lines(index)

    def _add_entry(self, index: int, declaration: Declaration) -> None:
        self._define_text("dso_entry_name", self._naming.entry, declaration.name)
        if declaration.abi == "safe_call" and declaration.name != "main":
            call = f"return dso_wrapper_{index}(handle, args, num_args, result);"
            self._define_function("dso_entry", self._naming.wrapper("main"), [call])

    def _define_text(self, name: str, symbol: str, text: str) -> None:
        self.symbols[symbol] = name
        self._lines += _text_lines(name, symbol, text)

    def _define_function(self, name: str, symbol: str, body: Iterable[str]) -> None:
        """Define a safe-call function; its symbol need not be a C name."""
        self.symbols[symbol] = name
        self._lines += [
            f"DSO_EXPORT int {name}{_SAFE_CALL}",
            f"  DSO_SYMBOL({c_string(symbol)});",
            *_function_lines(f"int {name}", body),
        ]

    def _registration_lines(self, checksums: dict[str, str]) -> Iterator[str]:
        """A constructor that registers the symbols, and the context symbols that are defined.

        Other objects may define any of those, so they are weak references.
        """
        yield from ("", "/* system library */")
        prefix, addresses = self._naming.prefix, checksums | self.symbols
        for index, symbol in enumerate(CONTEXT_SYMBOLS):
            if symbol != _RAISE:
                yield f"extern void *dso_context_{index} DSO_SYMBOL({c_string(symbol)}) DSO_WEAK;"
                addresses[prefix + symbol] = f"&dso_context_{index}"
        addresses[prefix + _RAISE] = f"&{_RAISE}"
        for function, name in self.packed.items():
            yield f"extern int {name}(void) DSO_SYMBOL({c_string(function)});"
            addresses[prefix + function] = name
        for index, function in enumerate(self._ready):
            symbol = self._naming.wrapper(function)
            yield f"extern int dso_ready_{index}{_SAFE_CALL} DSO_SYMBOL({c_string(symbol)});"
            addresses[symbol] = f"dso_ready_{index}"
        yield "DSO_CONSTRUCTOR static void dso_register(void) {"
        yield from (f"  dso_add({c_string(n)}, (void *){a});" for n, a in addresses.items())
        yield "}"


def _function_lines(head: str, body: Iterable[str]) -> Iterator[str]:
    """A safe-call function: its result type and name, and its body."""
    yield f"{head}{_SAFE_CALL} {{"
    yield from (f"  {line}" for line in body)
    yield "}"


def _text_lines(name: str, symbol: str, text: str) -> Iterator[str]:
    """A constant char array; its size as a symbol includes the NUL."""
    yield f"DSO_EXPORT extern const char {name}[] DSO_SYMBOL({c_string(symbol)});"
    yield f"const char {name}[] ="
    yield from (f"  {c_string(line)}" for line in text.splitlines(keepends=True))
    yield "  ;"

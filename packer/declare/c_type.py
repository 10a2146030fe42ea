"""The declarations of a module's functions: read them, and refuse what cannot be exported.

A declaration is a C function type without the name, ``void(const float *x, int64_t n)``, or a
mapping of it and options. A `Scope` says what its names mean.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from runtime.error import ExportError

from .advice import mended, syntax_text, table, without_extents
from .c.aggregate import reached
from .c.check import checked, fits
from .c.code import Codes
from .c.numbers import UnsupportedError
from .c.parser import CSyntaxError, parse_function_type
from .c.prototype import in_double, is_packed, results_of
from .c.scope import Scope
from .c.types import Function, parameter_text, render
from .declaration import AUTO, SIGNED, UNSIGNED, Declaration, FunctionDeclaration, Parameter
from .options import function_declaration, lifetimes_of, missing_free, problem_of

# The assembler parses a leading "$" as a number, and drops names with ".L" from the object.
_NAME = re.compile(r"(?!\.L)(?:[A-Za-z_]|\.(?=.))[A-Za-z0-9_.$]*", re.ASCII)
_OWN_NAMES = ("_library_bin", "_library_ctx")
OWN_PREFIXES = ("_metadata_", "_doc_", "__tvm_", "__TVM", "TVMFFI", "__packer_")
# Functions that glue.h or the compiler calls: a user's definition would replace them.
_LIBC_NAMES = (
    *("calloc", "free", "memchr", "memcmp", "memcpy", "memmove", "memset"),
    *("strerror", "strlen", "vsnprintf"),
)
_MAX_TEXT = 1 << 16
_MAX_PARAMETERS = 1024
PACKED = "packed"  # in place of a declaration: a packed C function, which needs none

Functions = Mapping[str, "str | FunctionDeclaration | Mapping[str, Any]"]


def parse_functions(
    functions: Functions | Sequence[str] | None,
    *,
    module: str,
    entry: str | None = None,
    scope: Scope | None = None,
) -> tuple[Declaration, ...]:
    """Parse the declarations of one module's functions.

    A sequence has only the names of packed C functions. Only the name of the function `entry` may
    be ``main``. Without the `scope` of a source only the standard types are known, and a pointer to
    any other type is a handle. Raises ExportError if a name or a declaration cannot be exported;
    the message names `module`, function and parameter.
    """
    if functions is None:
        return ()
    if isinstance(functions, Mapping):
        made = tuple(
            FunctionReader(module, name, entry, scope).declaration(given)
            for name, given in functions.items()
        )
        check_frees(made, module)
        return made
    if isinstance(functions, (str, bytes)) or not isinstance(functions, Sequence):
        raise ExportError(
            f"{module}: functions, expected a mapping of names to declarations or a list of names,"
            f" found {functions!r}",
            module=module,
        )
    for name in functions:
        if functions.count(name) > 1:
            raise ExportError(f"{module}: function {name!r}: listed twice", module=module)
    return tuple(FunctionReader(module, name, entry, scope).packed() for name in functions)


def check_frees(declarations: Sequence[Declaration], module: str) -> None:
    """Refuse a handle whose releasing function is not declared."""
    if not any(declaration.free for declaration in declarations):
        return
    by_name = {declaration.name: declaration for declaration in declarations}
    for declaration in declarations:
        if text := missing_free(declaration, by_name):
            raise ExportError(f"{module}: function {declaration.name!r}: {text}", module=module)


class FunctionReader:
    """The reader of one function's declaration."""

    def __init__(
        self, module: str, name: str, entry: str | None = None, scope: Scope | None = None
    ) -> None:
        self.module = module
        self.name = name
        self.scope = scope
        self.where = f"function {name!r}"
        self.is_converted = False  # the compiler converts numbers in its call
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            self.refuse("not a symbol name, expected letters, digits, '_', '.' and '$'")
        if name in _OWN_NAMES or name.startswith(OWN_PREFIXES):
            self.refuse("the name is reserved: loaders look for a symbol of this name")
        if name in _LIBC_NAMES:
            self.refuse("the name is reserved: every wrapper calls this function of the C library")
        if name == "main" and entry != "main":
            self.refuse("the name is reserved for the entry function; rename it or make it entry")

    def refuse(self, what: str) -> NoReturn:
        raise ExportError(f"{self.module}: {self.where}: {what}", module=self.module)

    def packed(self) -> Declaration:
        return Declaration(self.name, abi="packed_c")

    def declaration(self, given: Any, symbol: str = "") -> Declaration:
        """Read a declaration that the user wrote, or that the source has; `symbol` by default."""
        if given == PACKED:
            return self.packed()
        whole = function_declaration(given, self.refuse)
        whole = whole._replace(symbol=whole.symbol or symbol)
        text = " ".join(whole.declaration.split()).removesuffix(";").rstrip()
        if text not in ("", AUTO) or given == "":
            return self.typed(whole, self.parsed(text), text)
        if self.scope is None or not self.scope.has_text:
            self.refuse(
                'declaration: missing, expected a C type: { declaration = "int(int a)", ... }'
            )
        function = self.scope.function(whole.symbol or self.name)
        if function is None:
            self.refuse(
                f"the source does not declare {whole.symbol or self.name}; give its C type:"
                ' { declaration = "int(int a)", ... }'
            )
        return self.found(whole, function)

    def found(self, whole: FunctionDeclaration, function: Function) -> Declaration:
        """Make the declaration of a function that the source declares."""
        assert self.scope is not None
        if is_packed(function) and not whole.symbol:
            return self.packed()
        for index, declared in enumerate(function.parameters):
            if local := self.scope.local_tag(declared.type):
                self.where = f"function {self.name!r}: parameter {index + 1} {declared.name!r}"
                what = local.spelling or f"a {local.kind} without a name"
                self.refuse(f"{what} is declared by the parameter; declare it before the function")
        whole = whole._replace(out=whole.out or results_of(function, self.scope))
        return self.typed(whole, function)

    def parsed(self, text: str) -> Function:
        """Parse the text of a declaration."""
        if len(text) > _MAX_TEXT:
            self.refuse(f"a declaration of {len(text)} characters, expected at most {_MAX_TEXT}")
        if not text.isascii():
            self.refuse(f"expected a declaration in ASCII, found {text!r}")
        head, _, rest = text.partition("(")
        if re.search(rf"\b{re.escape(self.name)}$", head.rstrip()):
            plain = f"{head.rstrip().removesuffix(self.name).rstrip()}({rest}"
            self.refuse(
                f"expected a C function type without the name, found {text!r}; declare {plain!r}"
            )
        try:
            return parse_function_type(text)
        except CSyntaxError as error:
            self.refuse(syntax_text(text, error))

    def typed(self, whole: FunctionDeclaration, function: Function, text: str = "") -> Declaration:
        """Make the declaration of a function of this type; `text` as the user wrote it."""
        if (count := len(function.parameters)) > _MAX_PARAMETERS:
            self.refuse(f"{count} parameters, expected at most {_MAX_PARAMETERS}; pass a struct")
        scope = self.scope or Scope()
        if scope.has_text and (converted := in_double(function, scope)) != function:
            whole, function, text = whole._replace(symbol=whole.symbol or self.name), converted, ""
            self.is_converted = True
        codes = Codes(scope)
        named = tuple(
            p._replace(name=p.name or f"arg{i}") for i, p in enumerate(function.parameters)
        )
        is_own = not text
        text = text or render(function._replace(parameters=named))
        function = function._replace(parameters=named)
        parameters = tuple(self.parameters(codes, function, whole))
        result = self.result(codes, function, whole)
        made = Declaration(
            self.name, text, parameters, result, render(function.result), whole.doc, whole.gil,
            out=whole.out, errno=whole.errno, free=whole.free, lifetime=whole.lifetime,
            symbol=whole.symbol, defaults=whole.defaults, structs=tuple(codes.structs.values()),
            kept=lifetimes_of(whole.kept, parameters), callbacks=tuple(codes.callbacks),
            values=tuple(codes.values.values()), aggregates=reached(function, scope),
            is_external=bool(whole.symbol),
        )  # fmt: skip
        self.check_extents(made, function)
        self.where = f"function {self.name!r}"
        if problem := problem_of(made):
            self.refuse(problem)
        return checked(made, function, scope, is_own)

    def parameters(
        self, codes: Codes, function: Function, whole: FunctionDeclaration
    ) -> list[Parameter]:
        """Return the parameters with their codes."""
        made: list[Parameter] = []
        for index, declared in enumerate(function.parameters):
            self.where = f"function {self.name!r}: parameter {index + 1} {declared.name!r}"
            if any(declared.name == other.name for other in made):
                self.refuse("a name that another parameter has; rename one of them")
            try:
                code = codes.parameter(declared, declared.name in whole.out)
            except UnsupportedError as error:
                self.unsupported(error, function, whole)
            made.append(Parameter(declared.name, parameter_text(declared, code), code))
        if function.is_variadic:
            self.where = f"function {self.name!r}: parameter {len(made) + 1} 'arg{len(made)}'"
            what = "a variable number of arguments, expected a fixed number"
            self.refuse(f"{what}; {self.advice(function, whole)}")
        return made

    def check_extents(self, declaration: Declaration, function: Function) -> None:
        """Refuse an extent that is not an integer that callers pass."""
        passed = {p.name: p.code for p in declaration.passed}
        wrong = {
            index: extent
            for index, parameter in enumerate(declaration.parameters)
            for extent in re.findall(r"\[([A-Za-z_]\w*)\]", parameter.code)
            if passed.get(extent) not in (*SIGNED, *UNSIGNED, "char")
        }
        for index, extent in wrong.items():
            self.where = f"function {self.name!r}: parameter {index + 1} " + repr(
                declaration.parameters[index].name
            )
            what = "is not a parameter" if extent not in passed else "is not an integer"
            text = without_extents(function, wrong)
            advice = f"; or declare {text!r}" if self.works(text, declaration.symbol) else ""
            self.refuse(
                f"extent {extent!r} {what}, expected a number or the name of an integer"
                f" parameter{advice}"
            )

    def result(self, codes: Codes, function: Function, whole: FunctionDeclaration) -> str:
        """Return the code of the result."""
        self.where = f"function {self.name!r}: result"
        try:
            return codes.result(function.result)
        except UnsupportedError as error:
            self.unsupported(error, function, whole)

    def unsupported(
        self, error: UnsupportedError, function: Function, whole: FunctionDeclaration
    ) -> NoReturn:
        """Refuse a type, and show the declaration to write instead."""
        if error.is_converted:
            self.refuse(f"{error} is not supported; {self.advice(function, whole)}")
        expected = f", expected {error.instead!r}" if error.instead else ""
        self.refuse(f"{error}{expected}; {self.advice(function, whole)}")

    def advice(self, function: Function, whole: FunctionDeclaration) -> str:
        """Say what to declare instead, if that is right for the function that the source has."""
        is_called = function.is_variadic or self.is_converted
        given = mended(self.name, function, whole, self.scope or Scope(), is_called)
        if given is None or not self.works(given, whole.symbol):
            return "export a function of supported types that calls it"
        if isinstance(given, str):
            return f"declare {given!r}"
        how = "let the compiler convert" if "symbol" in given else "declare it so"
        return f"{'declare an instance' if function.is_variadic else how}: {table(given)}"

    def works(self, given: Any, symbol: str) -> bool:
        """Return True if a declaration is accepted, and is right for the source's function."""
        try:
            made = _Trial(self.module, self.name, None, self.scope).declaration(given, symbol)
        except ExportError:
            return False
        scope = self.scope
        found = scope.function(symbol or self.name) if scope and scope.has_text else None
        return found is None or scope is None or fits(made, found, scope)


class _Trial(FunctionReader):
    """A reader whose refusals have no advice."""

    def advice(self, function: Function, whole: FunctionDeclaration) -> str:
        del function, whole
        return ""

    def works(self, given: Any, symbol: str) -> bool:
        del given, symbol
        return False

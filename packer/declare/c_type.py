"""C function types: parse the declarations of users, and refuse what cannot be exported.

A declaration is a C function type without the name, ``void(const float *x, int64_t n)``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from runtime.error import ExportError

from .declaration import Declaration, FunctionDeclaration, Parameter

if TYPE_CHECKING:
    from pycparser import c_ast

# Every C spelling of a type by its code in the facts; words in any order, LP64 widths.
_SPELLINGS = {
    "i8": "signed char | int8_t",
    "i16": "short | short int | signed short | signed short int | int16_t",
    "i32": "int | signed | signed int | int32_t",
    "i64": "long | long int | signed long | signed long int | long long | long long int"
    " | signed long long | signed long long int | int64_t | ptrdiff_t | intptr_t",
    "u8": "unsigned char | uint8_t",
    "u16": "unsigned short | unsigned short int | uint16_t",
    "u32": "unsigned | unsigned int | uint32_t",
    "u64": "unsigned long | unsigned long int | unsigned long long | unsigned long long int"
    " | uint64_t | size_t | uintptr_t",
    "bool": "bool | _Bool",
    "f32": "float",
    "f64": "double",
    "char": "char",
    "void": "void",
    "tensor": "DLTensor",
    "status": "dso_status",
}
_CODES = {
    tuple(sorted(spelling.split())): code
    for code, spellings in _SPELLINGS.items()
    for spelling in spellings.split(" | ")
}
TYPEDEFS = [
    word for (word, *more) in _CODES if not more and re.search(r"_t$|^bool|^DL|^dso_", word)
]
_C_WORDS = {word for words in _CODES for word in words} | {"const", "volatile", "restrict"}
_PREAMBLE = "".join(f"typedef int {name};" for name in TYPEDEFS)

# The assembler parses a leading "$" as a number, and drops names with ".L" from the object.
_NAME = re.compile(r"(?!\.L)(?:[A-Za-z_]|\.(?=.))[A-Za-z0-9_.$]*", re.ASCII)
_OWN_NAMES = ("_library_bin", "_library_ctx")
_OWN_PREFIXES = ("_metadata_", "_doc_", "__tvm_", "__TVM", "TVMFFI", "__packer_")
# Functions that glue.h or the compiler calls: a user's definition would replace them.
_LIBC_NAMES = (
    *("calloc", "free", "memchr", "memcmp", "memcpy", "memmove", "memset"),
    *("strlen", "vsnprintf"),
)


def parse_functions(
    functions: Mapping[str, str | FunctionDeclaration] | Sequence[str] | None,
    *,
    module: str,
    entry: str | None = None,
) -> tuple[Declaration, ...]:
    """Parse the declarations of one module's functions.

    Parameters
    ----------
    functions : mapping, sequence of str, or None
        Names and their declarations; or only the names of packed C functions.
    module : str
        The module, for messages.
    entry : str or None
        The entry function; only its name may be ``main``.

    Raises
    ------
    ExportError
        If a name or a declaration cannot be exported; the message names function and parameter.
    """
    if functions is None:
        return ()
    if isinstance(functions, Mapping):
        return tuple(
            _Reader(module, name, entry).declaration(given) for name, given in functions.items()
        )
    if isinstance(functions, (str, bytes)) or not isinstance(functions, Sequence):
        raise ExportError(
            f"{module}: functions, expected a mapping of names to declarations or a list of names,"
            f" found {functions!r}",
            module=module,
        )
    for name in functions:
        if functions.count(name) > 1:
            raise ExportError(f"{module}: function {name!r}: listed twice", module=module)
    return tuple(_Reader(module, name, entry).packed() for name in functions)


class _Reader:
    """The parser of one function's declaration."""

    def __init__(self, module: str, name: str, entry: str | None) -> None:
        self.module = module
        self.name = name
        self.where = f"function {name!r}"
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            self.refuse("not a symbol name, expected letters, digits, '_', '.' and '$'")
        if name in _OWN_NAMES or name.startswith(_OWN_PREFIXES):
            self.refuse("the name is reserved: loaders look for a symbol of this name")
        if name in _LIBC_NAMES:
            self.refuse("the name is reserved: every wrapper calls this function of the C library")
        if name == "main" and entry != "main":
            self.refuse("the name is reserved for the entry function; rename it or make it entry")

    def refuse(self, what: str) -> NoReturn:
        raise ExportError(f"{self.module}: {self.where}: {what}", module=self.module)

    def packed(self) -> Declaration:
        return Declaration(self.name, abi="packed_c")

    def declaration(self, given: str | FunctionDeclaration) -> Declaration:
        whole = FunctionDeclaration(given) if isinstance(given, str) else given
        if not isinstance(whole, FunctionDeclaration) or not isinstance(whole.declaration, str):
            self.refuse(f"expected a C function type like 'int64_t(int64_t n)', found {given!r}")
        self.check_wording(whole)
        text = " ".join(whole.declaration.split())
        node = self.parsed(text)
        result_text, result = self.result(node.type)
        parameters = tuple(self.parameters(node))
        self.check_implicit_int(text, [result_text, *(p.type_text for p in parameters)])
        return Declaration(self.name, text, parameters, result, result_text, whole.doc, whole.gil)

    def check_implicit_int(self, text: str, types: list[str]) -> None:
        """Refuse a missing type: the parser inserts int, as C89 did."""
        if " ".join(types).split().count("int") > len(re.findall(r"\bint\b", text)):
            self.where = f"function {self.name!r}"
            self.refuse(f"a type is missing or unknown, found {text!r}")

    def check_wording(self, given: FunctionDeclaration) -> None:
        """Refuse text that cannot be stored in the library."""
        if not given.declaration.isascii():
            self.refuse(f"expected a declaration in ASCII, found {given.declaration!r}")
        if given.gil not in ("release", "keep"):
            self.refuse(f"gil, expected 'release' or 'keep', found {given.gil!r}")
        if not isinstance(given.doc, str) or not re.fullmatch(r"[^\0\ud800-\udfff]*", given.doc):
            self.refuse(f"doc, expected text without NUL and surrogates, found {given.doc!r}")

    def parsed(self, text: str) -> c_ast.FuncDecl:
        from pycparser import c_ast, c_parser

        head, _, rest = text.partition("(")
        if re.search(rf"\b{re.escape(self.name)}$", head.rstrip()):
            self.refuse(f"expected a C function type without the name, found {text!r}")
        # The name ends a separate line, so that columns in messages are those of the user's text.
        source = f'{_PREAMBLE}\n# 1 ""\n{head} f\n{" " * len(head)}{text[len(head) :]};'
        try:
            node, *more = c_parser.CParser().parse(source).ext[len(TYPEDEFS) :]
        except c_parser.ParseError as error:
            self.check_type_names(head, rest)
            place = re.sub(r"^.*?:\d+:(\d+): ", r"at column \1, ", str(error)).lstrip(": ")
            self.refuse(f"not a C function type, {place}, found {text!r}")
        except RecursionError:
            self.refuse("not a C function type, nested too deep")
        plain = isinstance(node, c_ast.Decl) and not node.storage and not node.funcspec
        if more or not plain or not isinstance(node.type, c_ast.FuncDecl):
            self.refuse(f"expected one plain C function type, found {text!r}")
        return node.type

    def check_type_names(self, head: str, rest: str) -> None:
        """Report an unknown type, which is the usual reason of a syntax error."""
        places = [("result", head + " f")]
        places += [(f"parameter {i}", text) for i, text in enumerate(rest.split(","), 1)]
        for place, text in places:
            for word in re.findall(r"(?<!struct )\b([A-Za-z_]\w*)(?=\s*\*|\s+[A-Za-z_])", text):
                if word not in _C_WORDS | {"struct", "union", "enum"}:
                    self.refuse(f"{place}: unknown type {word!r}, found {text.strip(' );')!r}")

    def parameters(self, node: c_ast.FuncDecl) -> Iterator[Parameter]:
        given = list(node.args.params) if node.args else []
        if len(given) == 1 and _is_void(given[0]):
            return
        for index, parameter in enumerate(given):
            name = getattr(parameter, "name", None) or f"arg{index}"
            self.where = f"function {self.name!r}: parameter {index + 1} {name!r}"
            yield Parameter(name, *self.parameter_type(parameter))

    def parameter_type(self, node: c_ast.Node) -> tuple[str, str]:
        from pycparser import c_ast

        if isinstance(node, c_ast.EllipsisParam):
            self.refuse("a variable number of arguments, expected a fixed number")
        if isinstance(node, c_ast.ID):
            self.refuse(f"unknown type {node.name!r}")
        if getattr(node, "storage", None) or getattr(node, "funcspec", None):
            self.refuse("a storage class, expected a type and a name")
        if isinstance(node.type, (c_ast.PtrDecl, c_ast.ArrayDecl)):
            return self.pointer(node.type.type)
        text, code = self.scalar(node.type)
        if code == "void":
            self.refuse("a parameter of type void, expected a value or void *")
        if code == "status":
            self.refuse("dso_status is only a result type, expected int")
        return text, code

    def result(self, node: c_ast.Node) -> tuple[str, str]:
        from pycparser import c_ast

        self.where = f"function {self.name!r}: result"
        if not isinstance(node, c_ast.PtrDecl):
            return self.scalar(node)
        text, code = self.pointer(node.type)
        if code != "str":
            self.refuse(
                f"expected void, bool, a number, const char * or dso_status, found {text!r}"
            )
        return text, code

    def scalar(self, node: c_ast.Node) -> tuple[str, str]:
        text, code = self.named(node)
        if code == "char":
            self.refuse("plain char is signed on some machines only, expected int8_t or uint8_t")
        if code == "tensor":
            self.refuse("a struct by value, expected DLTensor *")
        return text, code

    def pointer(self, node: c_ast.Node) -> tuple[str, str]:
        text, code = self.named(node)
        if code == "status":
            self.refuse("dso_status is only a result type, expected int *")
        if "const" in node.quals:
            text, code = f"const {text} *", {"char": "str", "tensor": code}.get(code, "&" + code)
        else:
            text, code = f"{text} *", code if code == "tensor" else "*" + code
        if code == "*char":
            self.refuse("char * is neither text nor numbers, expected const char * or int8_t *")
        return text, code

    def named(self, node: c_ast.Node) -> tuple[str, str]:
        """Return the words and the code of a type that is no pointer, array or function."""
        from pycparser import c_ast

        for node_type, what in _COMPOUND.items():
            if isinstance(node, getattr(c_ast, node_type)):
                self.refuse(f"{what}, expected a scalar or a pointer to scalars")
        if not isinstance(node.type, c_ast.IdentifierType):
            word = type(node.type).__name__.lower()
            self.refuse(f"{word} {node.type.name}, expected a scalar, its pointer or DLTensor *")
        text = " ".join(node.type.names)
        code = _CODES.get(tuple(sorted(node.type.names)))
        if code is None or not {"const", "restrict"}.issuperset(node.quals):
            quals = " ".join([*node.quals, text])
            self.refuse(f"type {quals!r} is not supported; see the table of types")
        return text, code


# Types that `named` refuses. A parameter that is a function means a pointer to one.
_COMPOUND = {
    "FuncDecl": "a function pointer",
    "PtrDecl": "a pointer to a pointer",
    "ArrayDecl": "an array of arrays or pointers",
}


def _is_void(node: c_ast.Node) -> bool:
    """Return True if this is the only and nameless ``void`` of an empty parameter list."""
    names = getattr(getattr(getattr(node, "type", None), "type", None), "names", None)
    return names == ["void"] and node.name is None

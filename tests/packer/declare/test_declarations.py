"""C declarations: the accepted ones, and the refused ones."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from packer.declare.c_type import parse_functions
from packer.declare.declaration import FunctionDeclaration, Parameter
from packer.declare.facts import dump_facts
from packer.declare.redeclaration import redeclarations
from packer.modules.llvm import IRType, ir_type
from runtime.error import ExportError

from ...support.wrapped_library import glue_source, parse

SPELLINGS = {
    "i8": "signed char, int8_t, char signed",
    "i16": "short, short int, signed short, int16_t",
    "i32": "int, signed, signed int, int32_t, const int",
    "i64": "long, long int, long long, long long int, long signed long, int64_t, ptrdiff_t,"
    " intptr_t",
    "u8": "unsigned char, uint8_t",
    "u16": "unsigned short, short unsigned int, uint16_t",
    "u32": "unsigned, unsigned int, uint32_t",
    "u64": "unsigned long, long unsigned, unsigned long long, uint64_t, size_t, uintptr_t",
    "bool": "bool, _Bool",
    "f32": "float",
    "f64": "double",
}
SCALARS = [(spelling, code) for code, words in SPELLINGS.items() for spelling in words.split(", ")]


@pytest.mark.parametrize(("spelling", "code"), SCALARS)
def test_a_scalar_type_has_its_code_as_value_pointer_and_result(spelling: str, code: str) -> None:
    """Every C spelling of a number means the same in all three places."""
    declaration = parse(f"{spelling}({spelling} a, {spelling} *b, const {spelling} *c)")
    codes = [parameter.code for parameter in declaration.parameters]
    written = f"&{code}" if "const" in spelling else f"*{code}"
    assert (declaration.result, codes) == (code, [code, written, f"&{code}"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("const char *s", Parameter("s", "const char *", "str")),
        ("char const *s", Parameter("s", "const char *", "str")),
        ("DLTensor *t", Parameter("t", "DLTensor *", "tensor")),
        ("const DLTensor *t", Parameter("t", "const DLTensor *", "tensor")),
        ("void *p", Parameter("p", "void *", "*void")),
        ("const void *p", Parameter("p", "const void *", "&void")),
        ("float x[]", Parameter("x", "float *", "*f32")),
        ("const float x[3]", Parameter("x", "const float [3]", "&f32[3]")),
        ("double x[static 4]", Parameter("x", "double [static 4]", "*f64[4]")),
        ("float x[2][3]", Parameter("x", "float [2][3]", "*f32[2][3]")),
        ("float x[][3]", Parameter("x", "float (*)[3]", "*f32[][3]")),
        ("volatile float *x", Parameter("x", "volatile float *", "*f32")),
        ("char c", Parameter("c", "char", "char")),
        ("char *s", Parameter("s", "char *", "*char")),
        ("const char s[8]", Parameter("s", "const char [8]", "&char[8]")),
        ("const char **s", Parameter("s", "const char **", "strs")),
        ("char *const *s", Parameter("s", "char *const *", "strs")),
        ("ssize_t n", Parameter("n", "ssize_t", "i64")),
        ("wchar_t c", Parameter("c", "wchar_t", "i32")),
        ("_Float16 x", Parameter("x", "_Float16", "f16")),
        ("__bf16 *x", Parameter("x", "__bf16 *", "*bf16")),
        ("double _Complex z", Parameter("z", "double _Complex", "c128")),
        ("float complex *z", Parameter("z", "float _Complex *", "*c64")),
        ("foo *x", Parameter("x", "foo *", "@foo")),
        ("const struct foo *x", Parameter("x", "const struct foo *", "@foo")),
        ("union u *x", Parameter("x", "union u *", "@u")),
        ("float *restrict const x", Parameter("x", "float *", "*f32")),
        ("float*", Parameter("arg0", "float *", "*f32")),
        ("int", Parameter("arg0", "int", "i32")),
        ("long  long\n n", Parameter("n", "long long", "i64")),
    ],
)
def test_a_parameter_keeps_its_name_and_const(text: str, expected: Parameter) -> None:
    """The metadata keeps pointers, arrays and nameless parameters."""
    assert parse(f"void({text})").parameters == (expected,)


def test_a_declaration_keeps_the_words_of_the_user() -> None:
    """White space is normalised, nothing else; doc and gil are beside the declaration."""
    given = FunctionDeclaration(
        "int64_t (const float*x,\n\t int n)", doc="Sum.\n\nAll.", gil="keep"
    )
    declaration = parse(given, "total")
    assert declaration.text == "int64_t (const float*x, int n)"
    assert declaration.prototype == "int64_t total(const float*x, int n)"
    assert (declaration.doc, declaration.gil) == ("Sum.\n\nAll.", "keep")


@pytest.mark.parametrize("text", ["void()", "void(void)", "void (void)"])
def test_a_function_may_have_no_parameters(text: str) -> None:
    """An empty list and a lone void both say: none."""
    assert parse(text).parameters == ()


def test_metadata_is_the_stored_lines() -> None:
    """The text of __packer_fn_<name>, key by key, the doc last."""
    given = FunctionDeclaration("void(const float *x, float *, int64_t n)", doc="One.\nTwo.")
    assert dump_facts(parse(given)) == (
        "packer-function 1\nabi safe_call\ngil release\n"
        "type void(const float *x, float *, int64_t n)\n"
        "params x:&f32 arg1:*f32 n:i64\nresult void\ndoc One.\nTwo.\n"
    )


def test_names_alone_are_packed_functions() -> None:
    """A plain list makes metadata, no wrapper, and no redeclaration."""
    declarations = parse_functions(["f", "g"], module="c")
    assert [d.abi for d in declarations] == ["packed_c", "packed_c"]
    assert dump_facts(declarations[0]) == "packer-function 1\nabi packed_c\ngil release\n"
    assert "__tvm_ffi_" not in glue_source(declarations)
    assert "extern" not in redeclarations(declarations, "c")


def test_no_functions_is_none() -> None:
    """A module may have no declaration."""
    assert parse_functions(None, module="c") == parse_functions({}, module="c") == ()


def test_pycparser_is_imported_only_to_parse() -> None:
    """A packer that parses nothing does not pay for the parser."""
    code = (
        "import sys; from packer.declare import c_type as c; c.parse_functions(['f'], module='c');"
        "print('pycparser' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"


def test_the_ir_type_lists_equivalent_types() -> None:
    """A bool is i1 or i8; every pointer is ptr."""
    declaration = parse(
        "bool(int8_t a, bool b, float c, double d, void *e, const char *s, DLTensor *t)"
    )
    assert ir_type(declaration) == IRType(
        ("i1", "i8"),
        (("i8",), ("i1", "i8"), ("float",), ("double",), ("ptr",), ("ptr",), ("ptr",)),
    )
    assert ir_type(parse("const char *()")) == IRType(("ptr",), ())


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("void(int a", r"'f': not a C function type, .*found 'void\(int a'"),
        ("void(int a;)", r"'f': not a C function type, at column 11, before: ;, found"),
        ("", r"'f': .*C function type"),
        ("int", r"'f': expected one plain C function type, found 'int'"),
        ("void f(int a)", r"'f': expected a C function type without the name"),
        ("void(int a); void g(int b)", r"'f': expected one plain C function type"),
        ("static void(int a)", r"'f': expected one plain C function type"),
        ("void(int a) {}", r"'f': (expected one plain|not a) C function type"),
        ("void(" + "(" * 10000, r"'f': not a C function type"),
        (
            "void(struct point p)",
            r"1 'p': a struct by value: struct point is incomplete, expected 'const",
        ),
        (
            "void(int a, union u p)",
            r"2 'p': a union by value: union u is incomplete, expected 'const",
        ),
        ("void(enum e x)", r"parameter 1 'x': unknown type 'enum e', expected 'int x'"),
        ("struct point(int a)", r"result: a struct by value: struct point is incomplete"),
        ("void(DLTensor t)", r"parameter 1 't': a struct by value, expected 'DLTensor \*t'"),
        ("void(int n, ...)", r"parameter 2 'arg1': a variable number of arguments"),
        ("void(void (*call)(union u))", r"1 'call': a callback's parameter 'arg0': a union by"),
        ("void(void call(int, ...))", r"parameter 1 'call': a callback with a variable number"),
        ("void(int n, float x[n * 2])", r"parameter 2 'x': extent 'n \* 2' is neither a positive"),
        ("void(float n, float x[n])", r"parameter 2 'x': extent 'n' is not an integer, expected"),
        ("void(float x[n])", r"parameter 1 'x': extent 'n' is not a parameter, expected"),
        ("void(float x[0])", r"parameter 1 'x': extent '0' is neither a positive number"),
        ("void(int n, int n)", r"parameter 2 'n': a name that another parameter has"),
        ("void(DLTensor **x)", r"parameter 1 'x': a pointer to a pointer"),
        ("void(int n, foo_t x)", r"parameter 2 'x': unknown type 'foo_t', expected 'int x'"),
        ("void(foo_t)", r"parameter 1 'arg0': unknown type 'foo_t'"),
        ("uint8(int n)", r"result: unknown type 'uint8'"),
        ("void(const foo_t)", r"parameter 1 'arg0': unknown type 'foo_t'"),
        ("const (int n)", r"'f': a type is missing"),
        ("void(static int n)", r"parameter 1 'n': a storage class"),
        ("void(inline int n)", r"parameter 1 'n': a storage class"),
        ("void(_Float128 x)", r"parameter 1 'x': _Float128 is not supported; let the compiler"),
        ("void(__int128 x)", r"parameter 1 'x': __int128 is not supported; let the compiler"),
        ("void(int n, void v)", r"parameter 2 'v': a parameter of type void"),
        ("void(void v)", r"parameter 1 'v': a parameter of type void"),
        ("DLTensor *(int n)", r"result: a pointer to data of unknown size, expected 'void \*'"),
        ("void (*)(int n)", r"'f': not a C function type"),
        ("int(int)(int)", r"'f': expected one plain C function type"),
        ("void(float \xe9)", r"expected a declaration in ASCII"),
        (FunctionDeclaration("void()", gil="hold"), r"gil, expected 'release' or 'keep', found"),
        (FunctionDeclaration("void()", doc="a\0b"), r"doc, expected text without NUL"),
        (FunctionDeclaration("void()", doc="\ud800"), r"doc, expected text without NUL"),
        (FunctionDeclaration(3), r"expected a C function type like .*found"),  # type: ignore[arg-type]
        (3, r"expected a C function type like .*, found 3"),
    ],
)
def test_a_declaration_is_refused_by_function_and_parameter(text: Any, match: str) -> None:
    """A declaration that cannot be wrapped is refused with the function and the parameter."""
    with pytest.raises(ExportError, match=r"^c: function 'f': ") as caught:
        parse(text)
    assert caught.value.module == "c"
    caught.match(match)


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("", "not a symbol name"),
        ("1a", "not a symbol name"),
        ("a-b", "not a symbol name"),
        ("f\n", "not a symbol name"),
        ("\xe9", "not a symbol name"),
        ("$a", "not a symbol name"),
        (".", "not a symbol name"),
        (".Lx", "not a symbol name"),
        (3, "not a symbol name"),
        ("main", "reserved for the entry function"),
        ("_library_bin", "reserved: loaders look for a symbol"),
        ("_library_ctx", "reserved: loaders look for a symbol"),
        ("_metadata_f", "reserved: loaders look for a symbol"),
        ("_doc_f", "reserved: loaders look for a symbol"),
        ("__tvm_ffi_f", "reserved: loaders look for a symbol"),
        ("__packer_manifest", "reserved: loaders look for a symbol"),
        ("__TVMFuncCall", "reserved: loaders look for a symbol"),
        ("TVMFFIErrorSetRaised", "reserved: loaders look for a symbol"),
        ("memcpy", "reserved: every wrapper calls"),
        ("strerror", "reserved: every wrapper calls"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_name_is_refused(name: Any, match: str, packed: bool) -> None:
    """Names that are not symbols, or reserved symbols, never reach the linker."""
    with pytest.raises(ExportError, match=match):
        parse_functions([name] if packed else {name: "void()"}, module="c", entry="f")


@pytest.mark.parametrize(
    "text",
    [
        f"void(int {'*' * 5000}x)",
        f"void(int x{'[1]' * 5000})",
        f"void(int {'(' * 5000}x{')' * 5000})",
        f"void({'int (*f)(' * 500}int{')' * 500})",
        f"void({'struct s { ' * 500}int a;{' } x;' * 500})",
    ],
    ids=["pointers", "arrays", "parentheses", "functions", "structs"],
)
def test_a_type_that_is_nested_too_deep_is_refused(text: str) -> None:
    """No input exhausts the stack."""
    with pytest.raises(ExportError, match="'f': (not a|expected one plain) C function type"):
        parse(text)


@pytest.mark.parametrize("functions", ["f", b"f", 3, {"f"}])
def test_functions_are_a_mapping_or_a_list(functions: Any) -> None:
    """A lone name is not taken for a list of its letters."""
    with pytest.raises(ExportError, match=r"^c: functions, expected a mapping of names"):
        parse_functions(functions, module="c")


def test_a_name_twice_is_refused() -> None:
    """Two metadata records under one symbol would break the link."""
    with pytest.raises(ExportError, match="function 'f': listed twice"):
        parse_functions(["f", "g", "f"], module="c")

"""C declarations: what is read, what is refused, and how the wrappers made of them behave."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from ctypes import c_double, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

import pytest

import packer
import runtime
from packer.declare.c_type import parse_functions
from packer.declare.declaration import Declaration, FunctionDeclaration, Parameter
from packer.declare.facts import dump_facts
from packer.declare.redeclaration import redeclarations
from packer.declare.wrapper import glue_source
from packer.modules.llvm import IRType, ir_type
from runtime.error import ExportError

INCLUDE = [
    f"-I{Path(runtime.__file__).parent / 'include'}",
    f"-I{Path(packer.__file__).parent / 'templates'}",
]
WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror"]


def parse(text: str | FunctionDeclaration, name: str = "f") -> Declaration:
    """The declaration of one function."""
    (declaration,) = parse_functions({name: text}, module="c")
    return declaration


def gcc(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the compiler in the C locale, whatever comes of it."""
    command = ["gcc", "-O2", "-fPIC", *INCLUDE, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"})


def build(
    folder: Path, code: str, functions: dict[str, Any], *options: str, entry: str | None = None
) -> Path:
    """Make a library as an export does: the user's unit with redeclarations, and glue.c."""
    declarations = parse_functions(functions, module="c", entry=entry)
    user, glue, library = folder / "user.c", folder / "glue.c", folder / "lib.so"
    user.write_text(code + redeclarations(declarations, "c"))
    glue.write_text(glue_source(declarations, entry))
    for source, flags in ((user, []), (glue, WARNINGS)):
        made = gcc("-c", source, "-o", source.with_suffix(".o"), *flags, *options)
        assert made.returncode == 0, made.stderr
    objects = (folder / "user.o", folder / "glue.o")
    made = gcc("-shared", "-Wl,-Bsymbolic", *objects, "-o", library, *options)
    assert made.returncode == 0, made.stderr
    return library


# ---- Reading declarations --------------------------------------------------------------------

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
        ("const float x[3]", Parameter("x", "const float *", "&f32")),
        ("double x[static 4]", Parameter("x", "double *", "*f64")),
        ("float *restrict const x", Parameter("x", "float *", "*f32")),
        ("float*", Parameter("arg0", "float *", "*f32")),
        ("int", Parameter("arg0", "int", "i32")),
        ("long  long\n n", Parameter("n", "long long", "i64")),
    ],
)
def test_a_parameter_keeps_its_name_and_const(text: str, expected: Parameter) -> None:
    """Pointers, arrays and nameless parameters come out as the facts say."""
    assert parse(f"void({text})").parameters == (expected,)


def test_a_declaration_keeps_the_words_of_the_user() -> None:
    """White space is normalised, nothing else; doc and gil stand beside."""
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


def test_facts_are_the_lines_that_travel() -> None:
    """The text of __packer_fn_<name>, key by key, the doc last."""
    given = FunctionDeclaration("void(const float *x, float *, int64_t n)", doc="One.\nTwo.")
    assert dump_facts(parse(given)) == (
        "packer-function 1\nabi safe_call\ngil release\n"
        "type void(const float *x, float *, int64_t n)\n"
        "params x:&f32 arg1:*f32 n:i64\nresult void\ndoc One.\nTwo.\n"
    )


def test_names_alone_are_packed_functions() -> None:
    """A plain list makes facts, no wrapper, and no redeclaration."""
    declarations = parse_functions(["f", "g"], module="c")
    assert [d.abi for d in declarations] == ["packed_c", "packed_c"]
    assert dump_facts(declarations[0]) == "packer-function 1\nabi packed_c\ngil release\n"
    assert "__tvm_ffi_" not in glue_source(declarations)
    assert "extern" not in redeclarations(declarations, "c")


def test_no_functions_is_none() -> None:
    """A module need not declare anything."""
    assert parse_functions(None, module="c") == parse_functions({}, module="c") == ()


def test_pycparser_is_imported_only_to_parse() -> None:
    """A packer that parses nothing does not pay for the parser."""
    code = (
        "import sys; from packer.declare import c_type as c; c.parse_functions(['f'], module='c');"
        "print('pycparser' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"


def test_the_ir_type_lists_what_is_as_good() -> None:
    """A bool is i1 or i8; every pointer is ptr."""
    declaration = parse(
        "bool(int8_t a, bool b, float c, double d, void *e, const char *s, DLTensor *t)"
    )
    assert ir_type(declaration) == IRType(
        ("i1", "i8"),
        (("i8",), ("i1", "i8"), ("float",), ("double",), ("ptr",), ("ptr",), ("ptr",)),
    )
    assert ir_type(parse("const char *()")) == IRType(("ptr",), ())


# ---- Refusing declarations -------------------------------------------------------------------


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
        ("void(struct point p)", r"parameter 1 'p': struct point, expected a scalar"),
        ("void(int a, union u *p)", r"parameter 2 'p': union u, expected a scalar"),
        ("void(enum e x)", r"parameter 1 'x': enum e, expected"),
        ("struct point(int a)", r"result: struct point, expected"),
        ("void(DLTensor t)", r"parameter 1 't': a struct by value, expected DLTensor \*"),
        ("void(int n, ...)", r"parameter 2 'arg1': a variable number of arguments"),
        ("void(void (*callback)(int))", r"parameter 1 'callback': a function pointer"),
        ("void(int callback(int))", r"parameter 1 'callback': a function pointer"),
        ("void(float x[2][3])", r"parameter 1 'x': an array of arrays"),
        ("void(float *x[2])", r"parameter 1 'x': a pointer to a pointer"),
        ("void(float **x)", r"parameter 1 'x': a pointer to a pointer"),
        ("void(const char **x)", r"parameter 1 'x': a pointer to a pointer"),
        ("void(DLTensor **x)", r"parameter 1 'x': a pointer to a pointer"),
        ("void(int n, foo_t x)", r"parameter 2: unknown type 'foo_t', found 'foo_t x'"),
        ("void(const foo_t *x)", r"parameter 1: unknown type 'foo_t'"),
        ("void(foo_t)", r"parameter 1 'foo_t': unknown type 'foo_t'"),
        ("uint8(int n)", r"result: unknown type 'uint8'"),
        ("void(const foo_t)", r"'f': a type is missing or not known, found 'void\(const foo_t\)'"),
        ("const (int n)", r"'f': a type is missing"),
        ("void(static int n)", r"parameter 1 'n': a storage class"),
        ("void(inline int n)", r"parameter 1 'n': a storage class"),
        ("void(long double x)", r"parameter 1 'x': type 'long double' is not supported"),
        ("void(double _Complex x)", r"parameter 1 'x': type 'double _Complex' is not"),
        ("void(volatile float *x)", r"parameter 1 'x': type 'volatile float' is not"),
        ("void(int n, void v)", r"parameter 2 'v': a parameter of type void"),
        ("void(void v)", r"parameter 1 'v': a parameter of type void"),
        ("void(char *s)", r"parameter 1 's': char \* is neither.*const char \* or int8_t \*"),
        ("void(char c)", r"parameter 1 'c': plain char.*int8_t or uint8_t"),
        ("char(int n)", r"result: plain char"),
        (
            "float *(int n)",
            r"result: expected void, bool, a number, const char \* or dso_status, found",
        ),
        ("DLTensor *(int n)", r"result: expected void, bool"),
        ("int **(int n)", r"result: a pointer to a pointer"),
        ("void (*)(int n)", r"'f': not a C function type"),
        ("int(int)(int)", r"result: a function pointer"),
        ("void(float \xe9)", r"expected a declaration in ASCII"),
        (FunctionDeclaration("void()", gil="hold"), r"gil, expected 'release' or 'keep', found"),
        (FunctionDeclaration("void()", doc="a\0b"), r"doc, expected text without NUL"),
        (FunctionDeclaration("void()", doc="\ud800"), r"doc, expected text without NUL"),
        (FunctionDeclaration(3), r"expected a C function type like .*found"),  # type: ignore[arg-type]
        (3, r"expected a C function type like .*, found 3"),
    ],
)
def test_a_declaration_is_refused_by_function_and_parameter(text: Any, match: str) -> None:
    """What cannot be wrapped is refused in words that name the place."""
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
        ("_library_bin", "reserved, since it makes a symbol"),
        ("_library_ctx", "reserved, since it makes a symbol"),
        ("_metadata_f", "reserved, since it makes a symbol"),
        ("_doc_f", "reserved, since it makes a symbol"),
        ("__tvm_ffi_f", "reserved, since it makes a symbol"),
        ("__packer_manifest", "reserved, since it makes a symbol"),
        ("__TVMFuncCall", "reserved, since it makes a symbol"),
        ("TVMFFIErrorSetRaised", "reserved, since it makes a symbol"),
        ("memcpy", "reserved, since every wrapper calls"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_name_is_refused(name: Any, match: str, packed: bool) -> None:
    """Names that are no symbols, or symbols of ours, never reach the linker."""
    with pytest.raises(ExportError, match=match):
        parse_functions([name] if packed else {name: "void()"}, module="c", entry="f")


@pytest.mark.parametrize("functions", ["f", b"f", 3, {"f"}])
def test_functions_are_a_mapping_or_a_list(functions: Any) -> None:
    """A lone name is not taken for a list of its letters."""
    with pytest.raises(ExportError, match=r"^c: functions, expected a mapping of names"):
        parse_functions(functions, module="c")


def test_a_name_twice_is_refused() -> None:
    """Two facts under one symbol would break the link."""
    with pytest.raises(ExportError, match="function 'f': named twice"):
        parse_functions(["f", "g", "f"], module="c")


# ---- Redeclarations and linking --------------------------------------------------------------

USER_CODE = """
#include "dso_packer.h"
#include <stdbool.h>
#include <stddef.h>
long total(const int64_t *x, long n) { long s = 0; while (n--) s += *x++; return s; }
bool flip(bool b, DLTensor *t, const char *s, size_t n) { return !b && t && s && n; }
"""
USER_FUNCTIONS = {
    "total": "int64_t(const long *x, ptrdiff_t n)",
    "flip": "_Bool(bool b, DLTensor *t, const char *s, unsigned long n)",
}


def compile_user(
    folder: Path, code: str, functions: dict[str, str], language: str
) -> subprocess.CompletedProcess[str]:
    """Compile a user's unit with its redeclarations."""
    source = folder / f"user.{language}"
    source.write_text(code + redeclarations(parse_functions(functions, module="c"), language))
    return gcc("-c", source, "-o", folder / "user.o", *WARNINGS)


def test_a_right_declaration_compiles_in_c(tmp_path: Path) -> None:
    """Types that the compiler holds for the same are the same."""
    assert compile_user(tmp_path, USER_CODE, USER_FUNCTIONS, "c").stderr == ""


def test_a_right_declaration_compiles_in_cpp(tmp_path: Path) -> None:
    """C++ code is declared in extern "C"."""
    code = USER_CODE.replace("long total", 'extern "C" long total')
    code = code.replace("bool flip", 'extern "C" bool flip')
    assert compile_user(tmp_path, code, USER_FUNCTIONS, "cc").stderr == ""


@pytest.mark.parametrize(
    ("code", "language"),
    [
        ("long total(const float *x, long n) { return x && n; }", "c"),
        ("int total(const long *x, long n) { return x && n; }", "c"),
        ('extern "C" long total(const float *x, long n) { return x && n; }', "cc"),
        ("long total(const long *x, long n) { return x && n; }", "cc"),
        ("int total;", "c"),
        ("#define nothing \\", "c"),
    ],
)
def test_a_wrong_declaration_is_a_compile_error(tmp_path: Path, code: str, language: str) -> None:
    """The compiler refuses it, and its text names the function and both places."""
    functions = {"total": "int64_t(const int64_t *x, int64_t n)"}
    if "nothing" in code:
        code = "long total(void) { return 0; }\n" + code  # a line splice swallows no declaration
    made = compile_user(tmp_path, code, functions, language)
    assert made.returncode != 0
    assert "total" in made.stderr
    assert "<function declarations>:" in made.stderr


def test_a_name_that_is_none_in_c_cannot_be_redeclared() -> None:
    """Dots are for LLVM names."""
    with pytest.raises(ExportError, match=r"'a.b': the name has a '.'"):
        redeclarations([parse("void()", "a.b")], "c")


@pytest.mark.parametrize("code", ["", "static long f(long n) { return n; }", "long f(long n);"])
@pytest.mark.parametrize("linker", ["bfd", "gold"])
def test_a_function_that_the_library_lacks_is_a_link_error(
    tmp_path: Path, code: str, linker: str
) -> None:
    """A declared function that no module defines is found before anything is loaded."""
    declarations = parse_functions({"f": "long(long n)"}, module="c")
    user, glue = tmp_path / "user.c", tmp_path / "glue.c"
    user.write_text(code + (redeclarations(declarations, "c") if code else ""))
    glue.write_text(glue_source(declarations))
    options = ["-shared", f"-fuse-ld={linker}", "-Wno-unused-function"]
    made = gcc(user, glue, *options, "-o", tmp_path / "lib.so")
    assert made.returncode != 0
    assert "symbol" in made.stderr
    assert "f" in made.stderr


def test_the_glue_text_is_the_same_every_time() -> None:
    """Nothing of it depends on anything but the declarations."""
    functions = {"f": "void(int a)", "g": "const char *(DLTensor *t)"}
    texts = {glue_source(parse_functions(functions, module="c"), "f") for _ in range(3)}
    assert len(texts) == 1


def test_the_glue_without_functions_compiles(tmp_path: Path) -> None:
    """A library without declared functions still has the context pointer."""
    (tmp_path / "glue.c").write_text(glue_source(()))
    assert gcc("-shared", tmp_path / "glue.c", *WARNINGS, "-o", tmp_path / "lib.so").stderr == ""
    names = subprocess.check_output(["nm", "-D", tmp_path / "lib.so"], text=True)
    assert " B __TVMFFIErrorSetRaisedFromCStr\n" in names


# ---- Calling wrappers, through structs of our own ---------------------------------------------


class Any16(ctypes.Structure):
    """TVMFFIAny."""

    _fields_ = (("type_index", c_int32), ("small_len", c_uint32), ("v_int64", c_int64))

    @property
    def v_float64(self) -> float:
        """The value as a double."""
        return c_double.from_buffer_copy(self, 8).value


class DLTensor(ctypes.Structure):
    """DLPack's tensor."""

    _fields_ = (
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", ctypes.POINTER(c_int64)),
        ("strides", ctypes.POINTER(c_int64)),
        ("byte_offset", c_uint64),
    )


class TensorObject(ctypes.Structure):
    """A Tensor object: the 24-byte header, then the DLTensor."""

    _fields_ = (("header", c_uint8 * 24), ("tensor", DLTensor))


class StringObject(ctypes.Structure):
    """A Str object: the header, then the byte array."""

    _fields_ = (
        ("combined_ref_count", c_uint64),
        ("type_index", c_int32),
        ("padding", c_uint32),
        ("deleter", ctypes.CFUNCTYPE(None, c_void_p, ctypes.c_int)),
        ("data", c_void_p),
        ("size", c_uint64),
    )


SET_RAISED = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p)
UNSIGNED = 1
BOOL_DTYPE, FLOAT32 = (6, 8, 1), (2, 32, 1)


class Library:
    """A library under test, with this process as its loader."""

    def __init__(self, path: Path) -> None:
        self.dll = ctypes.CDLL(str(path))
        self.raised: list[tuple[str, str]] = []
        self.setter = SET_RAISED(
            lambda *texts: self.raised.append(tuple(t.decode() for t in texts))
        )
        slot = c_void_p.in_dll(self.dll, "__TVMFFIErrorSetRaisedFromCStr")
        assert slot.value is None
        slot.value = ctypes.cast(self.setter, c_void_p).value

    def run(self, name: str, *values: Any16) -> tuple[int, Any16]:
        """Call a wrapper; give its return code and the result it wrote."""
        result = Any16()
        function = getattr(self.dll, f"__tvm_ffi_{name}")
        code = function(None, (Any16 * len(values))(*values), len(values), ctypes.byref(result))
        return code, result

    def call(self, name: str, *values: Any16) -> Any16:
        """Call a wrapper that must succeed."""
        code, result = self.run(name, *values)
        assert (code, self.raised) == (0, [])
        return result

    def refusal(self, name: str, *values: Any16) -> tuple[str, str]:
        """Call a wrapper that must raise; give the kind and the message."""
        code, result = self.run(name, *values)
        assert (code, result.type_index, len(self.raised)) == (-1, 0, 1)
        return self.raised.pop()


def integer(value: int) -> Any16:
    """An int as a caller passes it; beyond int64 by the bits."""
    beyond = value >= 2**63
    return Any16(1, UNSIGNED if beyond else 0, value - 2**64 if beyond else value)


def boolean(value: int) -> Any16:
    """A bool."""
    return Any16(2, 0, value)


def floating(value: float) -> Any16:
    """A float."""
    return Any16.from_buffer_copy(bytes(Any16(3))[:8] + bytes(c_double(value)))


def small(text: bytes, length: int | None = None) -> Any16:
    """A small string, of a length that may lie."""
    size = len(text) if length is None else length
    return Any16(11, size, int.from_bytes(text.ljust(8, b"\0"), "little", signed=True))


def pointer(type_index: int, target: Any) -> Any16:
    """A value that points to a ctypes object, and keeps it alive."""
    value = Any16(type_index, 0, ctypes.addressof(target))
    value.target = target
    return value


def heap(text: bytes, size: int | None = None) -> Any16:
    """A Str object over bytes with a NUL behind them."""
    data = ctypes.create_string_buffer(text)
    string = StringObject(data=ctypes.addressof(data), size=len(text) if size is None else size)
    string.buffer = data
    return pointer(65, string)


def tensor(
    shape: tuple[int, ...] = (3,),
    dtype: tuple[int, int, int] = FLOAT32,
    *,
    strides: tuple[int, ...] | None = None,
    device: tuple[int, int] = (1, 0),
    offset: int = 0,
    data: int | None = 4096,
    as_object: bool = False,
) -> Any16:
    """A tensor argument; nobody looks behind its data pointer."""
    dims = [None if d is None else (c_int64 * max(len(d), 1))(*d) for d in (shape, strides)]
    made = DLTensor(data, *device, len(shape), *dtype, *dims, offset)
    made.dims = dims
    if not as_object:
        return pointer(7, made)
    whole = TensorObject(tensor=made)
    whole.dims = dims
    return pointer(70, whole)


NONE = Any16()
ELEMENTS = {
    **{f"int{n}_t": (0, n, 1) for n in (8, 16, 32, 64)},
    **{f"uint{n}_t": (1, n, 1) for n in (8, 16, 32, 64)},
    "bool": BOOL_DTYPE,
    "float": FLOAT32,
    "double": (2, 64, 1),
}
INTEGERS = {
    "int8_t": (-(2**7), 2**7 - 1),
    "int16_t": (-(2**15), 2**15 - 1),
    "int": (-(2**31), 2**31 - 1),
    "int64_t": (-(2**63), 2**63 - 1),
    "uint8_t": (0, 2**8 - 1),
    "unsigned_short": (0, 2**16 - 1),
    "uint32_t": (0, 2**32 - 1),
    "size_t": (0, 2**64 - 1),
}
CODE = """
#include "dso_packer.h"
#include <stdbool.h>
#include <stddef.h>
typedef unsigned short unsigned_short;
bool flip(bool b) { return !b; }
float half(float x) { return x / 2; }
double twice(double x) { return x * 2; }
double sum(int8_t a, double b, uint16_t c, float d, int64_t e) { return a + b + c + d + (double)e; }
static int touched;
void touch(void) { touched++; }
int touches(void) { return touched; }
int ndim(DLTensor *t) { return t->ndim; }
int64_t length(const char *s) { int64_t n = 0; while (s[n]) n++; return n; }
const char *echo(const char *s) { return s; }
const char *letters(int n) {
  static char text[2000];
  for (size_t i = 0; i < sizeof text; i++) text[i] = 'a';
  if (n >= 0) text[n] = 0;
  return n < 0 ? NULL : text;
}
uintptr_t any(const void *p) { return (uintptr_t)p; }
int64_t gamma(int64_t a) { return a + 1; }
int64_t index(const float *x, int64_t n) { return x ? n : -n; }
int64_t read(int64_t a) { return a + 3; }
"""
FUNCTIONS: dict[str, Any] = {
    "flip": "bool(bool b)",
    "half": "float(float x)",
    "twice": "double(double x)",
    "sum": "double(int8_t a, double b, uint16_t c, float d, int64_t e)",
    "touch": "void()",
    "touches": "int(void)",
    "ndim": "int(DLTensor *t)",
    "length": "int64_t(const char *s)",
    "echo": "const char *(const char *s)",
    "letters": "const char *(int n)",
    "any": "uintptr_t(const void *p)",
    "gamma": "int64_t(int64_t a)",
    "index": FunctionDeclaration("int64_t(const float *x, int64_t n)", doc='Says "n"??/\n\xe9\\'),
    "read": "int64_t(int64_t a)",
}
for _type in INTEGERS:
    CODE += f"{_type} same_{_type}({_type} x) {{ return x; }}\n"
    FUNCTIONS[f"same_{_type}"] = f"{_type}({_type} x)".replace("unsigned_short", "unsigned short")
for _type in ELEMENTS:
    CODE += f"uintptr_t at_{_type}({_type} *x) {{ return (uintptr_t)x; }}\n"
    CODE += f"uintptr_t in_{_type}(const {_type} *x) {{ return (uintptr_t)x; }}\n"
    FUNCTIONS[f"at_{_type}"] = f"uintptr_t({_type} *x)"
    FUNCTIONS[f"in_{_type}"] = f"uintptr_t(const {_type} *x)"
SANITIZE = ("-fsanitize=undefined", "-fno-sanitize-recover=undefined")


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One library with every row of the table."""
    return build(tmp_path_factory.mktemp("product"), CODE, FUNCTIONS, "-w", entry="index")


@pytest.fixture(scope="module", params=[("-std=c11",), SANITIZE], ids=["c11", "ubsan"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Library:
    """The same library for this process, as it is and with undefined behaviour trapped."""
    options = ("-Wno-builtin-declaration-mismatch", *request.param)
    return Library(build(tmp_path_factory.mktemp("glue"), CODE, FUNCTIONS, *options, entry="index"))


def test_the_glue_is_cpp_too(tmp_path: Path) -> None:
    """The very text compiles as C++17 without a warning."""
    (tmp_path / "glue.cc").write_text(glue_source(parse_functions(FUNCTIONS, module="c"), "index"))
    made = gcc("-std=c++17", "-c", tmp_path / "glue.cc", *WARNINGS, "-o", tmp_path / "glue.o")
    assert (made.returncode, made.stderr) == (0, "")


def test_the_symbols_of_a_library(product: Path) -> None:
    """Wrappers, facts and entry are exported; nothing private of the glue is."""
    names = subprocess.check_output(["nm", "-D", "--defined-only", product], text=True).split()[
        2::3
    ]
    for name in FUNCTIONS:
        assert {name, f"__tvm_ffi_{name}", f"__packer_fn_{name}"} <= set(names)
    assert {"__tvm_ffi_main", "__tvm_main__", "__TVMFFIErrorSetRaisedFromCStr"} <= set(names)
    assert not [name for name in names if name.startswith("dso_")]


def test_facts_in_the_library_are_the_text_and_a_nul(product: Path) -> None:
    """Quotes, trigraphs and UTF-8 survive; the symbol's size counts the NUL."""
    lines = subprocess.check_output(
        ["readelf", "--dyn-syms", "-W", product], text=True
    ).splitlines()
    (size,) = [int(line.split()[2]) for line in lines if line.endswith(" __packer_fn_index")]
    text = (ctypes.c_char * size).in_dll(ctypes.CDLL(str(product)), "__packer_fn_index").raw
    assert text == dump_facts(parse(FUNCTIONS["index"])).encode() + b"\0"
    assert text.endswith('doc Says "n"??/\n\xe9\\\n\0'.encode())


def test_names_of_libc_are_the_librarys_own(library: Library) -> None:
    """gamma, index and read are not libm's and libc's."""
    assert library.call("gamma", integer(1)).v_int64 == 2
    assert library.call("index", tensor(), integer(5)).v_int64 == 5
    assert library.call("read", integer(1)).v_int64 == 4


def test_the_entry_is_the_function_it_names(library: Library) -> None:
    """__tvm_ffi_main behaves as the wrapper; __tvm_main__ holds the name."""
    assert library.call("main", NONE, integer(5)).v_int64 == -5
    assert "index: expected 2 arguments, found 0" in library.refusal("main")[1]
    assert (ctypes.c_char * 6).in_dll(library.dll, "__tvm_main__").raw == b"index\0"


@pytest.mark.parametrize(("name", "bounds"), INTEGERS.items())
def test_an_integer_in_range_goes_through(
    library: Library, name: str, bounds: tuple[int, int]
) -> None:
    """Both ends, and a bool; a result beyond int64 is marked."""
    for value in (*bounds, 0, 1):
        result = library.call(f"same_{name}", integer(value))
        assert bytes(result) == bytes(integer(value))
    assert library.call(f"same_{name}", boolean(1)).v_int64 == 1


@pytest.mark.parametrize(("name", "bounds"), INTEGERS.items())
def test_an_integer_out_of_range_is_an_overflow(
    library: Library, name: str, bounds: tuple[int, int]
) -> None:
    """One beyond each end is refused with range and value."""
    low, high = bounds
    for value in (low - 1, high + 1):
        if -(2**63) <= value < 2**64:
            kind, message = library.refusal(f"same_{name}", integer(value))
            assert kind == "OverflowError"
            assert f"expected an int in {low} .. {high}, found {value}; declared as " in message


def test_a_bool_is_true_false_one_or_zero(library: Library) -> None:
    """Bool and int, in and out."""
    for value in (boolean(0), integer(0)):
        assert bytes(library.call("flip", value)) == bytes(boolean(1))
    for value in (boolean(1), integer(1)):
        assert bytes(library.call("flip", value)) == bytes(boolean(0))


def test_a_float_takes_every_number(library: Library) -> None:
    """Float, int, bool, and an int beyond int64."""
    assert library.call("half", floating(3)).v_float64 == 1.5
    assert library.call("twice", integer(-3)).v_float64 == -6
    assert library.call("twice", boolean(1)).v_float64 == 2
    assert library.call("twice", integer(2**63)).v_float64 == 2.0**64
    assert library.call("twice", floating(float("inf"))).type_index == 3


def test_arguments_arrive_in_their_places(library: Library) -> None:
    """Integers and floats of several widths beside each other."""
    values = integer(-1), floating(0.5), integer(60000), floating(0.25), integer(10)
    assert library.call("sum", *values).v_float64 == 60009.75


def test_void_gives_none(library: Library) -> None:
    """The function runs, and the result stays as it was."""
    before = library.call("touches").v_int64
    assert bytes(library.call("touch")) == bytes(16)
    assert library.call("touches").v_int64 == before + 1


@pytest.mark.parametrize("as_object", [False, True])
@pytest.mark.parametrize("way", ["at", "in"])
@pytest.mark.parametrize(("name", "dtype"), ELEMENTS.items())
def test_a_pointer_takes_the_data_of_its_dtype(
    library: Library, name: str, dtype: tuple[int, int, int], way: str, as_object: bool
) -> None:
    """A DLTensor or a Tensor object gives data + byte_offset; None gives NULL."""
    made = tensor((2, 3), dtype, offset=64, as_object=as_object)
    assert library.call(f"{way}_{name}", made).v_int64 == 4160
    assert library.call(f"{way}_{name}", NONE).v_int64 == 0


@pytest.mark.parametrize(
    "made",
    [
        tensor((2, 3), strides=(3, 1)),
        tensor((2, 1, 3), strides=(3, 77, 1)),
        tensor((1, 3), strides=(-5, 1)),
        tensor((0, 3), strides=(8, 8)),
        tensor((), strides=()),
        tensor((0,), data=None),
        tensor((3,), device=(3, 0)),
    ],
)
def test_a_layout_that_is_compact_is_taken(library: Library, made: Any16) -> None:
    """Strides of size-1 dimensions and of empty tensors mean nothing; cuda_host is CPU memory."""
    library.call("in_float", made)


def test_a_bool_pointer_takes_both_bool_dtypes(library: Library) -> None:
    """DLPack's bool, and that of legacy TVM."""
    assert library.call("in_bool", tensor(dtype=(1, 1, 1))).v_int64 == 4096
    assert "found uint8[3] on cpu" in library.refusal("in_bool", tensor(dtype=(1, 8, 1)))[1]


def test_a_void_pointer_takes_any_dtype(library: Library) -> None:
    """Elements of any kind at any address, but contiguous and on the CPU."""
    assert library.call("any", tensor(dtype=(4, 16, 1), offset=1)).v_int64 == 4097
    assert library.call("any", NONE).v_int64 == 0
    kind, message = library.refusal("any", tensor(dtype=(4, 16, 1), strides=(2,)))
    assert kind == "ValueError"
    assert "expected a contiguous CPU tensor, found bfloat16[3] on cpu with strides [2]" in message


def test_a_tensor_is_passed_as_it_is(library: Library) -> None:
    """Any device, dtype and layout."""
    wild = tensor((2, 3), (99, 32, 1), strides=(1, 2), device=(2, 1), as_object=True)
    assert library.call("ndim", wild).v_int64 == 2


RAW = pointer(8, ctypes.create_string_buffer(b"raw"))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (RAW, b"raw"),
        (small(b""), b""),
        (small(b"1234567"), b"1234567"),
        (heap(b""), b""),
        (heap(b"12345678"), b"12345678"),
        (heap("h\xe9".encode() * 500), "h\xe9".encode() * 500),
    ],
)
def test_text_arrives_as_a_c_string(library: Library, value: Any16, text: bytes) -> None:
    """Raw, small and heap strings."""
    assert library.call("length", value).v_int64 == len(text)
    result = library.call("echo", value)
    assert string_of(result) == text


def string_of(result: Any16) -> bytes:
    """Take a string result, and release it as its owner does."""
    if result.type_index == 11:
        return bytes(result)[8 : 8 + result.small_len]
    assert (result.type_index, result.small_len) == (65, 0)
    string = StringObject.from_address(result.v_int64)
    assert (string.combined_ref_count, string.type_index) == (1 | 1 << 32, 65)
    text = ctypes.string_at(string.data, string.size + 1)
    assert text[-1] == 0
    string.deleter(result.v_int64, 1)
    assert ctypes.string_at(string.data, string.size + 1) == text  # weak references live on
    string.deleter(result.v_int64, 2)
    return text[:-1]


@pytest.mark.parametrize(("count", "type_index"), [(0, 11), (3, 11), (7, 11), (8, 65), (1000, 65)])
def test_a_string_result_is_small_or_an_object(
    library: Library, count: int, type_index: int
) -> None:
    """Up to 7 bytes lie in the value, more on the heap."""
    result = library.call("letters", integer(count))
    assert result.type_index == type_index
    assert string_of(result) == b"a" * count


def test_a_null_string_result_is_none(library: Library) -> None:
    """NULL is None, not an empty text."""
    assert bytes(library.call("letters", integer(-1))) == bytes(16)


CPU_FLOAT = "expected a contiguous CPU tensor of float32"
DECLARED = "; declared as uintptr_t in_float(const float *x)"


@pytest.mark.parametrize(
    ("name", "value", "kind", "message"),
    [
        ("same_int", floating(1), "TypeError", "(int): expected an int, found float; declared as"),
        ("same_int", NONE, "TypeError", "expected an int, found None"),
        ("same_size_t", floating(1), "TypeError", "expected an int, found float"),
        ("same_int64_t", integer(2**64 - 1), "OverflowError", "found 18446744073709551615"),
        ("flip", integer(2), "OverflowError", "expected a bool in 0 .. 1, found 2"),
        ("flip", integer(-1), "OverflowError", "expected a bool in 0 .. 1, found -1"),
        ("flip", floating(1), "TypeError", "expected a bool, found float"),
        ("half", RAW, "TypeError", "half: argument 1 'x' (float): expected a float, found str"),
        ("half", NONE, "TypeError", "expected a float, found None"),
        ("twice", tensor(), "TypeError", "expected a float, found float32[3] on cpu"),
        ("ndim", NONE, "TypeError", "(DLTensor *): expected a tensor, found None"),
        ("ndim", integer(1), "TypeError", "expected a tensor, found int"),
        ("length", NONE, "TypeError", "(const char *): expected a str, found None"),
        ("length", Any16(4), "TypeError", "expected a str, found an opaque pointer"),
        ("length", Any16(5), "TypeError", "expected a str, found a dtype"),
        ("length", Any16(6), "TypeError", "expected a str, found a device"),
        ("length", Any16(8), "TypeError", "expected a str, found str"),
        ("length", Any16(9), "TypeError", "expected a str, found bytes"),
        ("length", Any16(12), "TypeError", "expected a str, found bytes"),
        ("length", Any16(66), "TypeError", "expected a str, found bytes"),
        ("length", Any16(67), "TypeError", "expected a str, found an error"),
        ("length", Any16(68), "TypeError", "expected a str, found a function"),
        ("length", Any16(69), "TypeError", "expected a str, found a shape"),
        ("length", Any16(73), "TypeError", "expected a str, found a module"),
        ("length", Any16(71), "TypeError", "expected a str, found a value of type index 71"),
        ("length", small(b"12345678", 8), "TypeError", "expected a str, found str"),
        ("length", small(b"a\0b"), "ValueError", "text without NUL, found one at byte 1"),
        ("length", small(b"abc", 2), "ValueError", "text that ends in NUL, found byte 0x63"),
        ("length", heap(b"long\0text"), "ValueError", "text without NUL, found one at byte 4"),
        ("length", heap(b"long text", 4), "ValueError", "text that ends in NUL, found byte 0x20"),
        ("in_float", integer(1), "TypeError", f"{CPU_FLOAT} or None, found int{DECLARED}"),
        ("in_float", tensor(dtype=(0, 64, 1)), "TypeError", "float32, found int64[3] on cpu;"),
        ("in_float", tensor(dtype=(2, 32, 4)), "TypeError", "found float32x4[3] on cpu;"),
        ("in_float", tensor(dtype=(99, 32, 1)), "TypeError", "found custom[99]32[3] on cpu;"),
        ("in_float", tensor(dtype=BOOL_DTYPE), "TypeError", "found bool[3] on cpu;"),
        ("in_float", tensor(dtype=(1, 1, 1)), "TypeError", "found bool[3] on cpu;"),
        ("in_float", tensor(dtype=(5, 64, 1)), "TypeError", "found complex64[3] on cpu;"),
        ("in_float", tensor(dtype=(3, 64, 1)), "TypeError", "found handle64[3] on cpu;"),
        ("in_float", tensor(device=(2, 0)), "ValueError", "found float32[3] on cuda:0;"),
        ("in_float", tensor(device=(4, 1)), "ValueError", "found float32[3] on opencl:1;"),
        ("in_float", tensor(device=(16, 0)), "ValueError", "found float32[3] on hexagon:0;"),
        ("in_float", tensor(device=(5, 2)), "ValueError", "found float32[3] on device[5]:2;"),
        ("in_float", tensor(device=(-1, 0)), "ValueError", "found float32[3] on device[-1]:0;"),
        ("in_float", tensor(strides=(2,)), "ValueError", "on cpu with strides [2];"),
        (
            "in_float",
            tensor((2, 3), strides=(1, 2)),
            "ValueError",
            "[2, 3] on cpu with strides [1, 2]",
        ),
        ("in_float", tensor((3,), strides=(0,)), "ValueError", "with strides [0]"),
        ("in_float", tensor((2**62, 8), strides=(9, 1)), "ValueError", "with strides [9, 1]"),
        ("in_float", tensor(offset=2), "ValueError", "aligned to 4 bytes, found address 0x1002 of"),
        (
            "in_float",
            tensor(data=None),
            "ValueError",
            "expected data, found NULL behind float32[3]",
        ),
        ("at_double", tensor(dtype=(2, 64, 1), offset=4), "ValueError", "aligned to 8 bytes"),
    ],
)
def test_a_wrong_argument_is_refused(
    library: Library, name: str, value: Any16, kind: str, message: str
) -> None:
    """The message names function, argument, type, what was expected and what was found."""
    found = library.refusal(name, value)
    assert found[0] == kind
    assert message in found[1]
    assert found[1].startswith(f"{name}: argument 1 '")


def test_the_whole_message(library: Library) -> None:
    """One refusal in full, of an argument that is not the first."""
    assert library.refusal("index", tensor(), floating(1)) == (
        "TypeError",
        "index: argument 2 'n' (int64_t): expected an int, found float;"
        " declared as int64_t index(const float *x, int64_t n)",
    )


@pytest.mark.parametrize(
    ("name", "count", "message"),
    [
        ("index", 1, "index: expected 2 arguments, found 1; declared as int64_t index("),
        ("index", 3, "index: expected 2 arguments, found 3"),
        ("half", 0, "half: expected 1 argument, found 0"),
        ("touch", 1, "touch: expected 0 arguments, found 1; declared as void touch()"),
    ],
)
def test_a_wrong_number_of_arguments_is_refused(
    library: Library, name: str, count: int, message: str
) -> None:
    """Before any argument is looked at."""
    kind, found = library.refusal(name, *[NONE] * count)
    assert kind == "TypeError"
    assert found.startswith(message)


def test_a_message_too_long_is_cut(tmp_path: Path) -> None:
    """A thousand parameters do not overrun the message."""
    types = ", ".join(["int64_t"] * 1000)
    made = build(
        tmp_path, f"#include <stdint.h>\nvoid f({types}) {{}}", {"f": f"void({types})"}, "-w"
    )
    kind, message = Library(made).refusal("f", *[NONE] * 1000)
    assert (kind, len(message)) == ("TypeError", 2047)
    assert message.startswith("f: argument 1 'arg0' (int64_t): expected an int, found None")


def test_a_dotted_name_of_llvm_is_wrapped(tmp_path: Path) -> None:
    """Names with "." and "$" are symbols, if not C names."""
    declarations = parse_functions({"a.b$c": "long(long n)", "rax": "long()"}, module="llvm")
    (tmp_path / "glue.c").write_text(glue_source(declarations))
    (tmp_path / "user.c").write_text(
        'long f(long n) __asm__("a.b$c"); long f(long n) { return n + 1; } long rax() { return 7; }'
    )
    output = tmp_path / "lib.so"
    made = gcc("-shared", tmp_path / "glue.c", tmp_path / "user.c", "-o", output)
    assert made.returncode == 0, made.stderr
    library = Library(output)
    assert library.call("a.b$c", integer(1)).v_int64 == 2
    assert library.call("rax").v_int64 == 7


def test_main_may_be_the_entry(tmp_path: Path) -> None:
    """Its wrapper is the entry itself."""
    path = build(tmp_path, "int main(void) { return 5; }", {"main": "int()"}, entry="main")
    assert Library(path).call("main").v_int64 == 5


def test_an_error_without_a_loader_is_a_plain_failure(tmp_path: Path) -> None:
    """With nobody to tell, a wrapper returns -1 and does not crash."""
    path = build(tmp_path, "void f(void) {}", {"f": "void()"})
    function = ctypes.CDLL(str(path))["__tvm_ffi_f"]
    assert function(None, None, 1, ctypes.byref(Any16())) == -1


# ---- The real TVM FFI -------------------------------------------------------------------------


def run_tvm_ffi(library: Path, code: str) -> str:
    """Run code against a library that the real tvm_ffi loads, in a process of its own."""
    start = "import sys, numpy as np, tvm_ffi\nm = tvm_ffi.load_module(sys.argv[1])\n"
    command = [sys.executable, "-c", start + code, str(library)]
    made = subprocess.run(command, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return made.stdout


def test_tvm_ffi_calls_with_numbers_and_arrays(product: Path) -> None:
    """NumPy arrays, numbers, bools and None go in; numbers come out."""
    code = """
x = np.arange(3, dtype="float32")
print(m["index"](x, 5), m["index"](None, 5), m["gamma"](1), m["read"](1), m["main"](x, 6))
print(m["in_float"](x) == x.ctypes.data, m["in_bool"](np.ones(2, bool)) > 0, m["ndim"](x))
print(m["flip"](True), m["half"](3), m["same_int8_t"](-128), m["touch"]())
"""
    assert run_tvm_ffi(product, code) == "5 -5 2 4 6\nTrue True 1\nFalse 1.5 -128 None\n"


def test_tvm_ffi_reads_string_results(product: Path) -> None:
    """Small ones, heap ones, None; thousands of them are released."""
    code = """
print(*(m["letters"](n) == "a" * n for n in (0, 3, 7, 8, 1000)), m["letters"](-1))
print(*(m["echo"](s) == s and m["length"](s) == len(s.encode()) for s in ("", "h\xe9", "x" * 900)))
for _ in range(2000): m["letters"](1999)
"""
    assert run_tvm_ffi(product, code) == "True True True True True None\nTrue True True\n"


def test_tvm_ffi_raises_what_a_wrapper_raises(product: Path) -> None:
    """Kind and message arrive as a Python exception, of the kinds that tvm_ffi is told of."""
    code = """
tvm_ffi.register_error("OverflowError", OverflowError)
for name, args in [("index", (np.zeros(3, "int64"), 1)), ("same_int8_t", (128,)),
                   ("in_float", (np.zeros((4, 4), "float32").T,)), ("half", ())]:
    try: m[name](*args)
    except Exception as error: print(type(error).__name__, str(error))
"""
    assert run_tvm_ffi(product, code).splitlines() == [
        "TypeError index: argument 1 'x' (const float *): expected a contiguous CPU tensor of"
        " float32, found int64[3] on cpu; declared as int64_t index(const float *x, int64_t n)",
        "OverflowError same_int8_t: argument 1 'x' (int8_t): expected an int in -128 .. 127,"
        " found 128; declared as int8_t same_int8_t(int8_t x)",
        "ValueError in_float: argument 1 'x' (const float *): expected a contiguous CPU tensor of"
        " float32, found float32[4, 4] on cpu with strides [1, 4]; declared as"
        " uintptr_t in_float(const float *x)",
        "TypeError half: expected 1 argument, found 0; declared as float half(float x)",
    ]

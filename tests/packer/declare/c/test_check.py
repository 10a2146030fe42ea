"""Declarations against a source: by what types are, and confirmed by the compiler."""

from __future__ import annotations

from pathlib import Path

import pytest

import packer
from packer.modules.c_source import CSourceModule
from packer.target import find_target

from ....support import needs
from ...read_source import compile_errors, read

SOURCE = """
#include <stdint.h>
#include <sys/types.h>
#include <time.h>
typedef enum { RED, GREEN = 5 } color;
enum sign { NEGATIVE = -1, POSITIVE };
typedef unsigned char byte;
typedef byte block[16];
typedef struct point { double x, y; int tag; char name[4]; float m[2][2]; } point;
typedef struct { point a, b; const float *data; } segment;
struct bits { int a : 3; };
typedef struct opaque *opaque_t;
long long twice(long long a) { return 2 * a; }
color paint(color c, enum sign s) { return s ? c : RED; }
byte sum(const byte *b, block x) { return b[0] + x[0]; }
time_t now(struct timespec *t, ssize_t n) { return t->tv_sec + n; }
float value;
float *data(int n) { return n ? &value : 0; }
double area(const point *p, segment *s, point q) { return p->x + s->a.x + q.x; }
int look(struct bits *b, opaque_t o) { return b && o; }
double apply(double (*f)(double, void *), void *u) { return f(1, u); }
double trace(int n, int m, const double a[n][m]) { return n && m ? a[0][0] : 0; }
"""


@pytest.mark.parametrize(
    ("name", "declaration"),
    [
        ("twice", "int64_t(int64_t a)"),
        ("twice", "long(long a)"),
        ("paint", "int(int c, int s)"),
        ("paint", "unsigned(unsigned c, int s)"),
        ("sum", "uint8_t(const uint8_t *b, unsigned char x[16])"),
        ("sum", "byte(const byte *b, block x)"),
        ("now", "long(struct timespec *t, long n)"),
        ("data", "void *(int n)"),
        ("area", "double(const point *p, segment *s, struct point q)"),
        ("area", "double(const void *p, void *s, point q)"),
        ("look", "int(struct bits *b, struct opaque *o)"),
        ("apply", "double(double (*f)(double x, void *user), void *u)"),
        ("trace", "double(int n, int m, const double a[n][m])"),
        ("trace", "double(int n, int m, const double *a)"),
    ],
)
def test_another_spelling_of_the_same_type_compiles(
    tmp_path: Path, name: str, declaration: str
) -> None:
    """Types are compared by size, sign and kind, not by their words."""
    module = CSourceModule(SOURCE, functions={name: declaration})
    assert compile_errors(module, tmp_path, "-Wall", "-Wextra", "-Werror") == ""


@pytest.mark.parametrize(
    ("name", "declaration"),
    [
        ("twice", "int(int a)"),
        ("twice", "uint64_t(uint64_t a)"),
        ("sum", "uint8_t(const int8_t *b, unsigned char x[16])"),
        ("area", "double(point *p, segment *s, point q)"),
        ("look", "int(struct opaque *b, struct opaque *o)"),
        ("trace", "double(int n, int m, double *a)"),
        ("nonesuch", "long(long a)"),
    ],
)
def test_another_type_is_a_compile_error(tmp_path: Path, name: str, declaration: str) -> None:
    """The compiler names the function; a function that is missing is found by the linker."""
    module = CSourceModule(SOURCE, functions={name: declaration})
    errors = compile_errors(module, tmp_path)
    assert name in errors or name == "nonesuch"
    assert "<function declarations>" in errors or name == "nonesuch"


def test_layouts_are_those_of_the_compiler() -> None:
    """Structs, enums and typedefs have codes; one with bit-fields is a handle."""
    found = read(SOURCE)
    area, paint, look = found["area"], found["paint"], found["look"]
    assert [p.code for p in area.parameters] == ["&{point}", "*{segment}", "{point}"]
    point, segment = area.structs
    assert (point.size, segment.size, segment.spelling) == (40, 88, "segment")
    assert [(f.name, f.code, f.offset) for f in point.fields] == [
        ("x", "f64", 0),
        ("y", "f64", 8),
        ("tag", "i32", 16),
        ("name", "char[4]", 20),
        ("m", "f32[2][2]", 24),
    ]
    assert (paint.result, [p.code for p in paint.parameters]) == ("u32", ["u32", "i32"])
    assert [p.code for p in look.parameters] == ["@bits", "@opaque"]
    assert [p.code for p in found["trace"].parameters] == ["i32", "i32", "&f64[n][m]"]
    (callback,) = found["apply"].callbacks
    assert (callback.result, [p.code for p in callback.parameters]) == ("f64", ["f64", "*void"])


@pytest.mark.parametrize(
    ("option", "code", "error"),
    [
        ("-fpack-struct=1", "struct p { char c; int n; };", "sizeof(struct p) == 8"),
        ("-fshort-enums", "enum e { A };\nstruct p { enum e a; };", "sizeof(struct p) == 4"),
    ],
)
def test_a_wrong_reading_is_a_compile_error(
    tmp_path: Path, option: str, code: str, error: str
) -> None:
    """The compiler has the last word on sizes; its error names the function."""
    code = f"{code}\nint f(struct p *x) {{ return !x; }}\n"
    module = CSourceModule(code, functions="auto", options=[option])
    errors = compile_errors(module, tmp_path)
    assert f"declaration of f: {error}" in errors


ALIGNED = """
struct tail { int c; int : 5; };
#pragma pack(push, 1)
struct tight { char c; int x; };
#pragma pack(pop)
struct loose { char c; int x; };
struct __attribute__((packed)) before { char c; int x; };
struct after { char c; int x; } __attribute__((packed));
#pragma pack(2)
struct two { char c; double x; struct loose inner; };
#pragma pack()
struct member { char c; int x __attribute__((aligned(16))); };
struct whole { char c; } __attribute__((aligned(16)));
typedef int wide __attribute__((aligned(16)));
struct indirect { char c; wide x; };
enum small { A, B = 200 } __attribute__((packed));
typedef float vector __attribute__((vector_size(16)));
__attribute__((deprecated("packed, aligned"))) int
       at_loose(struct loose *p) { return p->x; }
int at_tight(struct tight *p) { return p->x; }
int at_before(struct before *p) { return p->x; }
int at_after(struct after *p) { return p->x; }
int at_two(struct two *p) { return p->c; }
int at_member(struct member *p) { return p->x; }
int at_whole(struct whole *p) { return p->c; }
int at_indirect(struct indirect *p) { return p->x; }
int of_small(enum small s) { return s; }
int of_before(struct before p) { return p.x; }
int of_whole(struct whole p) { return p.c; }
int of_two(struct two p) { return p.c; }
vector of_vector(vector v) { return v; }
int of_tail(struct tail p) { return p.c; }
"""


def test_alignment_is_read_or_the_reason_is_named(tmp_path: Path) -> None:
    """Pragmas and attributes of packing are read; a struct with other ones is a handle."""
    module = CSourceModule(ALIGNED, functions="auto")
    layouts = {d.name: d.parameters[0].code for d in module.functions}
    layouts |= {d.name: tuple(d.structs[-1][2:4]) for d in module.functions if d.structs}
    assert layouts == {
        "at_loose": (8, 4),
        "at_tight": (5, 1),
        "at_before": (5, 1),
        "at_after": (5, 1),
        "at_two": (18, 2),
        "at_member": "@member",
        "at_whole": "@whole",
        "at_indirect": "@indirect",
        "of_small": "u8",
        "of_before": "={before}",
        "of_whole": "={whole}",
        "of_tail": "={tail}",
    }
    assert "a struct by value: struct two is placed by" in module.left_out["of_two"]
    assert "vector, a type that only the compiler reads" in module.left_out["of_vector"]
    assert compile_errors(module, tmp_path) == ""


def test_plain_char_is_that_of_the_target(tmp_path: Path) -> None:
    """It is signed on x86-64, and unsigned on AArch64; only the export knows the target."""
    code = "struct s { char c[2]; }; char up(const struct s *s, char by) { return s->c[0] + by; }"
    for target, char in (("x86_64-linux-gnu", b"i8"), ("aarch64-linux-gnu", b"u8")):
        needs.program(f"{target}-gcc")
        module = CSourceModule(code + "\n", functions="auto")
        made = packer.export_library(
            module, tmp_path / "char.so", build=packer.Build(target=target)
        ).read_bytes()
        assert (
            b"params s:&{s} by:%s\nresult %s\nstruct s 2 1 c:%s[2]@0\n" % (char, char, char) in made
        )


def test_an_eight_bit_integer_for_char_is_confirmed(tmp_path: Path) -> None:
    """The compiler compares the sign that a declaration gives to plain char."""
    code = "char up(char c) { return c; }\n"
    assert compile_errors(CSourceModule(code, functions={"up": "char(char c)"}), tmp_path) == ""
    char = find_target(None).machine.char
    for type_, sign in (("int8_t", "i8"), ("unsigned char", "u8")):
        module = CSourceModule(code, functions={"up": f"{type_}({type_} c)"})
        assert (compile_errors(module, tmp_path) == "") == (sign == char)


def test_a_plain_declaration_runs_no_preprocessor(monkeypatch: pytest.MonkeyPatch) -> None:
    """If all names are standard ones, the source is read as it is."""
    monkeypatch.setenv("CC", "/nonexistent")
    code = "#include <stdint.h>\nlong long twice(long long a) { return 2 * a; }\n"
    (twice,) = CSourceModule(code, functions={"twice": "int64_t(int64_t a)"}).functions
    assert (twice.text, twice.result) == ("int64_t(int64_t a)", "i64")

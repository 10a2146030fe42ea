"""Declarations against a source: by what types are, and confirmed by the compiler."""

from __future__ import annotations

from pathlib import Path

import pytest

from packer.modules.c_source import CSourceModule

from ....support.read_source import compile_errors, read

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
        ("name", "i8[4]", 20),
        ("m", "f32[2][2]", 24),
    ]
    assert (paint.result, [p.code for p in paint.parameters]) == ("u32", ["u32", "i32"])
    assert [p.code for p in look.parameters] == ["@bits", "@opaque"]
    assert [p.code for p in found["trace"].parameters] == ["i32", "i32", "&f64[n][m]"]
    (callback,) = found["apply"].callbacks
    assert (callback.result, [p.code for p in callback.parameters]) == ("f64", ["f64", "*void"])


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("#pragma pack(1)\nstruct p { char c; int n; };", "sizeof(struct p) == 8"),
        ("enum e { A } __attribute__((packed));\nstruct p { enum e a; };", "sizeof(struct p) == 4"),
    ],
)
def test_a_wrong_reading_is_a_compile_error(tmp_path: Path, code: str, error: str) -> None:
    """The compiler has the last word on sizes; its error names the function."""
    module = CSourceModule(f"{code}\nint f(struct p *x) {{ return !x; }}\n", functions="auto")
    errors = compile_errors(module, tmp_path)
    assert f"declaration of f: {error}" in errors


def test_a_plain_declaration_runs_no_preprocessor(monkeypatch: pytest.MonkeyPatch) -> None:
    """If all names are standard ones, the source is read as it is."""
    monkeypatch.setenv("CC", "/nonexistent")
    code = "#include <stdint.h>\nlong long twice(long long a) { return 2 * a; }\n"
    (twice,) = CSourceModule(code, functions={"twice": "int64_t(int64_t a)"}).functions
    assert (twice.text, twice.result) == ("int64_t(int64_t a)", "i64")

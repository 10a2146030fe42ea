"""One odd function costs one function, which is listed with the reason; the others work."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

import packer
import runtime

TYPES = """
struct opaque; union number { int i; double d; }; enum color { RED, BLUE = 4 };
struct point { double x, y; }; typedef struct point point, *pointp, points[2];
struct texts { char *n[4]; int *p[3]; double (*z)[2]; const char *const t[2]; };
struct held { void *reserved[6]; struct held *next; int (*call)(int); };
struct flags { unsigned a : 3; }; struct __attribute__((packed)) tight { char c; int i; };
struct aligned { _Alignas(16) int a; }; struct flexible { int n; double items[]; };
typedef const char *text; typedef void nothing; typedef int number_of(int);
typedef int (*call)(int);
typedef int wide __attribute__((vector_size(16)));
"""
# Functions, whose name is @.
ODD = """
int @(struct held *p); int @(struct held p); struct held *@(void); int @(struct texts *a);
int @(struct texts a); int @(char *n[4]); int @(int *p[3]); int @(double (*z)[2]);
int @(int n, int m, double a[n][m]); int @(int n, double a[n][2 * n]); int @(int a[BLUE][BLUE]);
int @(long n, char m, unsigned k, double a[n][m][k]); int @(const char *const t[2]);
int @(int (*a[3])[4]); int @(int *(*a)[4]); int @(void *const a[4]); int @(struct opaque **a[4]);
int @(char *const *const *a); int @(int (*cb[3])(int)); int (*@(int a))(int); int (*@(void))[3];
int @(int a[static 3], int b[const 3], int c[restrict]); int @(wide a, wide *b); wide @(int a);
int @(struct aligned *a, struct aligned b); int @(struct flexible *a, struct flexible b);
int @(struct local { int a; } x); int @(enum here { A } x); int @(struct { int a; } *x);
int @(struct never *a); int @(__typeof__(1) a); int @(__builtin_va_list a); int @(int a, ...);
int @(void (*cb)(const char *const t[2], int n, int c[n][n])); number_of @; int (@)(points a);
struct flags @(struct flags a, struct tight b); union number @(union number a, union number *b);
_Bool @(_Complex long double a, __int128 *b, _Float128 c); nothing @(text a, text b[3], text *c);
call @(call a, call *b); int @(pointp a, const pointp b, pointp *c, points *d, enum color *e);
int @(); int @(int a0, int result, int args, int class, int packer_0); int @(int a[0]);
int @(register int a); int @(int [3], char *[2], int (*)(int [2])); const text *@(void);
"""
NUMBERS = ("int", "unsigned char", "double", "char", "const char", "void", "_Bool", "long double")
NAMED = (
    "struct opaque",
    "point",
    "struct held",
    "union number",
    "enum color",
    "text",
    "struct texts",
)


def declared(name: str, random_: random.Random, depth: int) -> str:
    """A random declaration of a name, neither a function nor an array of unknown size."""
    base = random_.choice([*NUMBERS, *NAMED])
    is_pointer = base in ("void", "struct opaque")
    text = name
    for _ in range(depth):
        kind = random_.randrange(4)
        if kind == 0:
            text, is_pointer = f"{text}[{random_.randint(1, 4)}]", base in ("void", "struct opaque")
        elif kind == 3:
            text = f"(*{text})({random_parameters(random_, depth - 1)})"
            is_pointer = base == "struct opaque"
        else:
            inner = f"*{random_.choice(('', 'const ', 'volatile '))}{text}"
            text, is_pointer = (f"({inner})" if kind == 2 else inner), False
    return f"{base} {'*' if is_pointer else ''}{text}"


def random_parameters(random_: random.Random, depth: int) -> str:
    """Up to three random parameters."""
    count = random_.randrange(4)
    return ", ".join(declared(f"p{i}", random_, depth) for i in range(count)) or "void"


def is_c(text: str, folder: Path) -> bool:
    """Return True if a compiler accepts a declaration after the types."""
    from ...support.wrapped_library import gcc

    (folder / "one.c").write_text(f"{TYPES}\n{text}\n")
    return gcc("-fsyntax-only", "-w", folder / "one.c").returncode == 0


def check(functions: list[str], folder: Path, code: str = "") -> None:
    """Export a header, or code, of functions; each is in one of the two lists."""
    (folder / "odd.h").write_text("\n".join([TYPES, *functions, code or "int last(int a);"]))
    if code:
        module: packer.CSourceModule = packer.CSourceModule(
            (folder / "odd.h").read_text(), functions="auto", options=["-w"]
        )
    else:
        module = packer.from_header(folder / "odd.h", options=["-w"])
    packer.export_library(module, folder / "odd.o")
    names, left_out = {d.name for d in module.functions}, set(module.left_out)
    assert names.isdisjoint(left_out)
    assert names | left_out == {*(f"f{i}" for i in range(len(functions))), "last"}
    assert "last" in names and all(module.left_out.values())


def odd_functions() -> list[str]:
    """The functions of the table, named f0, f1, ..."""
    texts = re.findall(r"[^;@]*@[^;]*?(?:\{[^}]*\}[^;]*)?;", ODD)
    return [text.strip().replace("@", f"f{i}") for i, text in enumerate(texts)]


def test_odd_functions_of_a_header(tmp_path: Path) -> None:
    """Every function of the table, in one header."""
    functions = odd_functions()
    assert len(functions) == 48
    check(functions, tmp_path)


def test_odd_functions_of_a_source(tmp_path: Path) -> None:
    """The same functions, which a source defines; a definition has names, and no star alone."""
    texts = [f"{text[:-1]} {{ __builtin_trap(); }}" for text in odd_functions()]
    defined = [text for text in texts if is_c(text, tmp_path)]
    named = [re.sub(r"\bf\d+\b", f"f{i}", text, count=1) for i, text in enumerate(defined)]
    assert len(named) == 47
    check(named, tmp_path, "int last(int a) { return a; }")


@pytest.mark.parametrize("seed", range(3))
def test_random_declarators_of_a_header(tmp_path: Path, seed: int) -> None:
    """Every function that a compiler accepts is in one of the two lists."""
    random_ = random.Random(seed)
    functions: list[str] = []
    while len(functions) < 40:
        parameters = random_parameters(random_, random_.randrange(5))
        text = f"{random_.choice(('int', 'void', 'point *', 'text'))} @({parameters});"
        if is_c(text.replace("@", "f"), tmp_path):
            functions.append(text.replace("@", f"f{len(functions)}"))
    check(functions, tmp_path)


def test_a_function_that_the_compiler_refuses_costs_no_other(tmp_path: Path) -> None:
    """The reason is the compiler's. A function is called past a macro that does not take a call."""
    (tmp_path / "macros.h").write_text("#define sum(a) ({ _Static_assert(0, #a); a; })\n")
    (tmp_path / "x.h").write_text(
        'typedef struct { _Alignas(char) char a; _Static_assert(1, ""); int b; } odd;\n'
        "#define gone(a) gone_at_all(a)\nint gone(int a);\n"
        "int old(int a);\n#pragma GCC poison old\n"
        "static inline int last(int a) { return a; }\n"
        "static inline int twice(int a, int b) { return 2 * a + b; }\n"
        "static inline int sum(int a) { return a; }\n"
        '#define twice(a) twice(a, 1)\n#include "macros.h"\n'
    )
    module = packer.from_header(tmp_path / "x.h")
    options = ["-Wl,--defsym=gone_at_all=0"]
    model = runtime.load(packer.export_library(module, tmp_path / "x.so", options=options))
    assert (model["last"](3), model["twice"](3, 4), model["sum"](5)) == (3, 10, 5)
    assert module.left_out["old"].startswith("the compiler refuses its call: ")

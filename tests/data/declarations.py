"""Everyday C declarations, and what Python passes and gets: the rows of docs/declarations.md.

`tests/test_declarations.py` exports and calls each of them, and compares the result with cffi's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

# Shared by the functions of all rows.
TYPES = """\
typedef int32_t sample;
typedef double real;
typedef const double *vector;
enum color { RED, GREEN, BLUE };
typedef enum { LOW = -1, HIGH = 1 } level;
struct point { double x, y; };
struct line { struct point a, b; };
typedef struct { int32_t id; float weight; } item;
struct label { char name[8]; double value[2]; };
struct flags { unsigned low : 3; unsigned high : 5; };
union number { int32_t i; float f; };
struct shape { double side; double (*area)(double); };
typedef struct counter counter;
typedef int (*visit)(const char *name, int value);
typedef double (*real_function)(double);
"""
PRELUDE = (
    """\
#include <complex.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include "dso_packer.h"

"""
    + TYPES
    + """
struct counter { int value, step; };
#define SQUARE(x) ((x) * (x))
static double square_of(double side) { return side * side; }
static inline int cube(int x) { return x * x * x; }
"""
)


class Row(NamedTuple):
    """One declaration.

    Attributes
    ----------
    prototype : str
        The function as C has it, without the semicolon.
    body : str
        Its body; empty for a function of another row, a macro or a library function.
    python : str
        Statements, separated by ``; ``; the last one is an expression.
    result : str
        An expression for the value of that one; ``raises <kind>: <text>`` if it raises.
    cffi : str
        The same for cffi: ``lib``, ``ffi``, and the names that the statements of `python` made;
        empty if cffi has no such type, or no such check.
    options : mapping
        What is declared beside the prototype; ``declaration`` if it is another type.
    refused : str
        Words of the refusal of the prototype, if `options` is how to declare it instead.
    cdef : str
        The prototype for cffi, if it is another one.
    compiler : str
        C code without which the compiler cannot compile the row.
    """

    prototype: str
    body: str
    python: str
    result: str
    cffi: str = ""
    options: Mapping[str, Any] = {}
    refused: str = ""
    cdef: str = ""
    compiler: str = ""

    @property
    def name(self) -> str:
        """The name of the function: the last word before the parameters."""
        head = self.prototype.partition("(")[0]
        return head.replace("*", " ").split()[-1]

    @property
    def type(self) -> str:
        """The prototype without the name, as a declaration."""
        head, _, rest = self.prototype.partition("(")
        return f"{head.rstrip().removesuffix(self.name).rstrip()}({rest}"


NUMBERS = [
    Row("int add(int a, int b)", "return a + b;", "add(40, 2)", "42", "lib.add(40, 2)"),
    Row("long scaled(long n)", "return 10 * n;", "scaled(-7)", "-70", "lib.scaled(-7)"),
    Row(
        "long long doubled(long long n)",
        "return 2 * n;",
        "doubled(2**40)",
        "2**41",
        "lib.doubled(2**40)",
    ),
    Row("int64_t negated(int64_t n)", "return -n;", "negated(5)", "-5", "lib.negated(5)"),
    Row("uint64_t top(void)", "return UINT64_MAX;", "top()", "2**64 - 1", "lib.top()"),
    Row(
        "size_t twice(size_t n)",
        "return 2 * n;",
        "twice(-1)",
        "raises OverflowError: argument 1 'n'",
    ),
    Row("ssize_t before(ssize_t n)", "return n - 1;", "before(0)", "-1", "lib.before(0)"),
    Row(
        "time_t next_day(time_t t)",
        "return t + 86400;",
        "next_day(1)",
        "86401",
        "lib.next_day(1)",
        cdef="long next_day(long t)",
    ),
    Row("short halved(short n)", "return n / 2;", "halved(-9)", "-4", "lib.halved(-9)"),
    Row(
        "int8_t absolute(int8_t n)",
        "return n < 0 ? -n : n;",
        "absolute(200)",
        "raises OverflowError: expected an int in -128 .. 127, found 200",
    ),
    Row(
        "unsigned char wrapped(unsigned char c)",
        "return (unsigned char)(c + 1);",
        "wrapped(255)",
        "0",
        "lib.wrapped(255)",
    ),
    Row(
        "char upper(char c)",
        "return (char)(c - 32);",
        "upper(ord('a'))",
        "ord('A')",
        "ord(lib.upper(b'a'))",
    ),
    Row("bool is_even(int n)", "return n % 2 == 0;", "is_even(4)", "True", "lib.is_even(4)"),
    Row("_Bool toggled(_Bool on)", "return !on;", "toggled(True)", "False", "lib.toggled(True)"),
    Row("float half(float x)", "return x / 2;", "half(5)", "2.5", "lib.half(5)"),
    Row(
        "float third(float x)",
        "return x / 3;",
        "third(1e300)",
        "raises OverflowError: argument 1 'x'",
    ),
    Row("float same(float x)", "return x;", "same(float('inf'))", "np.inf", "lib.same(np.inf)"),
    Row(
        "double length(double x, double y)",
        "return sqrt(x * x + y * y);",
        "length(x=3, y=4)",
        "5.0",
        "lib.length(3, 4)",
    ),
    Row(
        "sample louder(sample s)",
        "return 2 * s;",
        "louder(21)",
        "42",
        "lib.louder(21)",
    ),
    Row("real squared(real x)", "return x * x;", "squared(1.5)", "2.25", "lib.squared(1.5)"),
    Row(
        "enum color next_color(enum color c)",
        "return c == BLUE ? RED : (enum color)(c + 1);",
        "next_color(1)",
        "2",
        "lib.next_color(1)",
    ),
    Row("level opposite(level l)", "return (level)-l;", "opposite(1)", "-1", "lib.opposite(1)"),
    Row(
        "double _Complex rotated(double _Complex z)",
        "return z * I;",
        "rotated(1 + 2j)",
        "-2 + 1j",
        "lib.rotated(1 + 2j)",
    ),
    Row(
        "float _Complex conjugate(float _Complex z)",
        "return conjf(z);",
        "conjugate(1 + 2j)",
        "1 - 2j",
        "lib.conjugate(1 + 2j)",
    ),
    Row(
        "_Float16 small(_Float16 x)",
        "return x;",
        "small(0.1)",
        "float(np.float16(0.1))",
        compiler="_Float16 x;",
    ),
    Row("__bf16 brief(__bf16 x)", "return x;", "brief(1.5)", "1.5", compiler="__bf16 x;"),
    Row("void rest(void)", "", "rest()", "None", "lib.rest()"),
    Row("int answer()", "return 42;", "answer()", "42", "lib.answer()", cdef="int answer(void)"),
    Row(
        "long double root(long double x)",
        "return sqrtl(x);",
        "root(2.25)",
        "1.5",
        "float(lib.root(2.25))",
    ),
    Row(
        "__int128 wide(__int128 n)",
        "return n + 1;",
        "wide(41)",
        "42",
        "",
        {"symbol": "wide", "declaration": "int64_t(int64_t n)"},
        refused="__int128",
    ),
]

ARRAYS = [
    Row(
        "double total(const double *x, long n)",
        "double sum = 0; for (long i = 0; i < n; ++i) sum += x[i]; return sum;",
        "x = np.arange(4.0); total(x, x.size)",
        "6.0",
        "lib.total(ffi.from_buffer('double[]', x), 4)",
    ),
    Row(
        "void scale(double *x, long n, double by)",
        "for (long i = 0; i < n; ++i) x[i] *= by;",
        "x = np.arange(3.0); scale(x, 3, 2); x.tolist()",
        "[0, 2, 4]",
        "y = ffi.new('double[]', [0, 1, 2]); lib.scale(y, 3, 2); list(y)",
    ),
    Row(
        "void shift(double *x, long n, double by)",
        "for (long i = 0; i < n; ++i) x[i] += by;",
        "x = np.zeros(2); shift(x, 2); x.tolist()",
        "[1, 1]",
        "y = ffi.new('double[2]'); lib.shift(y, 2, 1); list(y)",
        {"defaults": {"by": 1.0}},
    ),
    Row(
        "long long largest(const long long *x, int n)",
        "long long m = x[0]; for (int i = 1; i < n; ++i) if (x[i] > m) m = x[i]; return m;",
        "x = np.array([3, 9, 4]); largest(x, 3)",
        "9",
        "lib.largest(ffi.from_buffer('long long[]', x), 3)",
    ),
    Row(
        "sample peak(const sample *x, size_t n)",
        "sample m = 0; for (size_t i = 0; i < n; ++i) if (x[i] > m) m = x[i]; return m;",
        "x = np.array([1, 7, 2], np.int32); peak(x, 3)",
        "7",
        "lib.peak(ffi.from_buffer('sample[]', x), 3)",
    ),
    Row(
        "int count(const bool *flags, int n)",
        "int sum = 0; for (int i = 0; i < n; ++i) sum += flags[i]; return sum;",
        "flags = np.array([True, False, True]); count(flags, 3)",
        "2",
        "lib.count(ffi.from_buffer('bool[]', flags), 3)",
    ),
    Row(
        "double first(vector v)",
        "return v[0];",
        "first(np.array([2.5]))",
        "2.5",
        "lib.first(ffi.new('double[]', [2.5]))",
    ),
    Row(
        "int is_null(const int *p)",
        "return p == NULL;",
        "is_null(None)",
        "1",
        "lib.is_null(ffi.NULL)",
    ),
    Row(
        "double sum4(const double x[4])",
        "return x[0] + x[1] + x[2] + x[3];",
        "sum4(np.ones(4))",
        "4.0",
        "lib.sum4([1, 1, 1, 1])",
    ),
    Row(
        "double last4(const double x[static 4])",
        "return x[3];",
        "last4(np.ones(3))",
        "raises ValueError: argument 1 'x'",
        cdef="double last4(const double x[4])",
    ),
    Row(
        "double trace(int n, const double a[n][n])",
        "double sum = 0; for (int i = 0; i < n; ++i) sum += a[i][i]; return sum;",
        "trace(2, np.eye(2))",
        "2.0",
        "lib.trace(2, [1, 0, 0, 1])",
        cdef="double trace(int n, const double *a)",
    ),
    Row(
        "double sum_n(int n, const double x[n])",
        "double sum = 0; for (int i = 0; i < n; ++i) sum += x[i]; return sum;",
        "sum_n(5, np.ones(4))",
        "raises ValueError: argument 2 'x'",
        cdef="double sum_n(int n, const double *x)",
    ),
    Row(
        "double _Complex sum_z(const double _Complex *z, int n)",
        "double _Complex sum = 0; for (int i = 0; i < n; ++i) sum += z[i]; return sum;",
        "sum_z(np.array([1j, 2]), 2)",
        "2 + 1j",
    ),
    Row(
        "size_t ones(const void *data, size_t n)",
        "size_t sum = 0; for (size_t i = 0; i < n; ++i) sum += ((const char *)data)[i] == 1;"
        " return sum;",
        r"ones(b'\1\0\1', 3)",
        "2",
        r"lib.ones(b'\1\0\1', 3)",
    ),
    Row(
        "void clear(void *data, size_t n)",
        "memset(data, 0, n);",
        "a = np.ones(2, 'i4,f8'); clear(a, a.nbytes); a.tolist()",
        "[(0, 0.0), (0, 0.0)]",
        "b = np.ones(2, 'i4,f8'); lib.clear(ffi.from_buffer(b), b.nbytes); b.tolist()",
    ),
    Row(
        "unsigned checksum(const unsigned char *data, size_t n)",
        "unsigned sum = 0; for (size_t i = 0; i < n; ++i) sum += data[i]; return sum;",
        "checksum(b'abc', 3)",
        "294",
        "lib.checksum(b'abc', 3)",
    ),
    Row(
        "void invert(unsigned char *pixels, int n)",
        "for (int i = 0; i < n; ++i) pixels[i] = 255 - pixels[i];",
        "pixels = bytearray([0, 200]); invert(pixels, 2); list(pixels)",
        "[255, 55]",
        "y = bytearray([0, 200]); lib.invert(ffi.from_buffer(y), 2); list(y)",
    ),
    Row(
        "int negatives(const signed char *x, int n)",
        "int sum = 0; for (int i = 0; i < n; ++i) sum += x[i] < 0; return sum;",
        "x = np.array([-1, 1], np.int8); negatives(x, 2)",
        "1",
        "lib.negatives(ffi.from_buffer('signed char[]', x), 2)",
    ),
    Row(
        "double column(const DLTensor *a, int64_t j)",
        "double sum = 0; const double *x = (const double *)a->data;"
        " for (int64_t i = 0; i < a->shape[0]; ++i)"
        " sum += x[i * (a->strides ? a->strides[0] : a->shape[1])"
        " + j * (a->strides ? a->strides[1] : 1)]; return sum;",
        "a = np.arange(6.0).reshape(2, 3); column(a[:, ::2], 1)",
        "7.0",
    ),
]

TEXT = [
    Row(
        "int num_letters(const char *text)",
        "return (int)strlen(text);",
        "num_letters('abc')",
        "3",
        "lib.num_letters(b'abc')",
    ),
    Row(
        "int wide_length(const wchar_t *text)",
        "int n = 0; while (text[n]) n++; return n;",
        "wide_length('grün')",
        "4",
        "lib.wide_length('grün')",
    ),
    Row(
        "const char *color_name(enum color c)",
        'return c == RED ? "red" : NULL;',
        "[color_name(0), color_name(1)]",
        "['red', None]",
        "[ffi.string(lib.color_name(0)).decode(), lib.color_name(1) or None]",
    ),
    Row(
        "int greet(char *buffer, size_t size, const char *name)",
        'return snprintf(buffer, size, "Hello %s", name);',
        "text = bytearray(10); n = greet(text, 10, 'you'); bytes(text[:n])",
        "b'Hello you'",
        "y = ffi.new('char[10]'); lib.greet(y, 10, b'you'); ffi.string(y)",
    ),
    Row(
        "char *joined(const char *a, const char *b)",
        "char *text = malloc(strlen(a) + strlen(b) + 1); strcpy(text, a); return strcat(text, b);",
        "joined('ab', 'cd')",
        "'abcd'",
        "p = lib.joined(b'ab', b'cd'); ffi.string(p).decode()",
        {"free": "free"},
    ),
    Row(
        "int longest(const char *const *words, int n)",
        "int m = 0; for (int i = 0; i < n; ++i)"
        " if ((int)strlen(words[i]) > m) m = (int)strlen(words[i]); return m;",
        "longest(['one', 'three'], 2)",
        "5",
        "w = [ffi.new('char[]', b'one'), ffi.new('char[]', b'three')]; lib.longest(w, 2)",
    ),
    Row(
        "int num_words(char **words)",
        "int n = 0; while (words[n]) ++n; return n;",
        "num_words(['a', 'b', 'c'])",
        "3",
        "w = [ffi.new('char[]', b'a')] * 3; lib.num_words([*w, ffi.NULL])",
    ),
    Row(
        "int describe(int code, const char **text)",
        'if (code) return -1; *text = "fine"; return 0;',
        "describe(0)",
        "(0, 'fine')",
        "p = ffi.new('const char **'); r = lib.describe(0, p); (r, ffi.string(p[0]).decode())",
        {"out": ["text"]},
    ),
]

OUT = [
    Row(
        "int stats(const double *x, long n, double *mean, double *largest)",
        "if (n == 0) return -1; *mean = 0; *largest = x[0];"
        " for (long i = 0; i < n; ++i) { *mean += x[i] / (double)n;"
        " if (x[i] > *largest) *largest = x[i]; } return 0;",
        "stats(np.array([1.0, 3.0]), 2)",
        "(0, 2.0, 3.0)",
        "m, l = ffi.new('double *'), ffi.new('double *');"
        " r = lib.stats([1, 3], 2, m, l); (r, m[0], l[0])",
        {"out": ["mean", "largest"]},
    ),
    Row(
        "void divide(int a, int b, int *quotient, int *rest)",
        "*quotient = a / b; *rest = a % b;",
        "divide(17, 5)",
        "(3, 2)",
        "q, s = ffi.new('int *'), ffi.new('int *'); lib.divide(17, 5, q, s); (q[0], s[0])",
        {"out": ["quotient", "rest"]},
    ),
    Row(
        "void parse(const char *text, long *value)",
        "*value = strtol(text, NULL, 10);",
        "parse('42')",
        "42",
        "v = ffi.new('long *'); lib.parse(b'42', v); v[0]",
        {"out": ["value"]},
    ),
    Row(
        "void centre(const double *x, int n, struct point *c)",
        "c->x = c->y = 0; for (int i = 0; i < n; ++i) { c->x += x[2 * i] / n;"
        " c->y += x[2 * i + 1] / n; }",
        "centre(np.array([0.0, 0.0, 2.0, 4.0]), 2)",
        "(1.0, 2.0)",
        "c = ffi.new('struct point *'); lib.centre([0, 0, 2, 4], 2, c); (c.x, c.y)",
        {"out": ["c"]},
    ),
    Row(
        "int open_file(const char *path)",
        "(void)path; errno = ENOENT; return -1;",
        "open_file('no such file')",
        "raises FileNotFoundError: No such file or directory",
        options={"errno": True},
    ),
    Row(
        "int set_pair(int **pair)",
        "static int values[] = {4, 2}; *pair = values; return 2;",
        "n, p = set_pair(); (n, p.array(2)[:] if p else [])",
        "(2, [4, 2])",
        "p = ffi.new('int **'); n = lib.set_pair(p); (n, ffi.unpack(p[0], n))",
        {"out": ["pair"]},
    ),
    Row(
        "double diagonal(double **rows, int n)",
        "double sum = 0; for (int i = 0; i < n; i++) sum += rows[i][i]; return sum;",
        "diagonal([np.array([1.0, 2.0]), np.array([3.0, 4.0])], 2)",
        "5.0",
        "rows = [ffi.new('double[]', r) for r in ([1, 2], [3, 4])]; lib.diagonal(rows, 2)",
    ),
    Row(
        "long sum_at(_Atomic(long) *p, int n)",
        "long sum = 0; while (n--) sum += p[n]; return sum;",
        "sum_at(np.array([40, 2]), 2)",
        "42",
    ),
]

STRUCTS = [
    Row(
        "double norm(const struct point *p)",
        "return sqrt(p->x * p->x + p->y * p->y);",
        "norm({'x': 3, 'y': 4})",
        "5.0",
        "lib.norm(ffi.new('struct point *', {'x': 3, 'y': 4}))",
    ),
    Row(
        "void move(struct point *p, double dx)",
        "p->x += dx;",
        "p = np.zeros(1, [('x', 'f8'), ('y', 'f8')]); move(p, 2); p.tolist()",
        "[(2.0, 0.0)]",
        "q = ffi.new('struct point *'); lib.move(q, 2); [(q.x, q.y)]",
    ),
    Row(
        "struct point mirrored(struct point p)",
        "struct point q = {p.y, p.x}; return q;",
        "q = mirrored((1, 2)); (q.x, q.y)",
        "(2.0, 1.0)",
        "q = lib.mirrored({'x': 1, 'y': 2}); (q.x, q.y)",
    ),
    Row(
        "item heavier(item a, item b)",
        "return a.weight > b.weight ? a : b;",
        "heavier((1, 0.5), {'id': 2, 'weight': 1.5})",
        "(2, 1.5)",
        "i = lib.heavier((1, 0.5), (2, 1.5)); (i.id, i.weight)",
    ),
    Row(
        "double span(struct line l)",
        "return l.b.x - l.a.x;",
        "span(((1, 0), (5, 0)))",
        "4.0",
        "lib.span(((1, 0), (5, 0)))",
    ),
    Row(
        "double product(const struct label *l)",
        "return l->value[0] * l->value[1];",
        "product({'name': b'pair', 'value': [6, 7]})",
        "42.0",
        "lib.product(ffi.new('struct label *', {'name': b'pair', 'value': [6, 7]}))",
    ),
    Row(
        "double weight(const item *items, int n)",
        "double sum = 0; for (int i = 0; i < n; ++i) sum += items[i].weight; return sum;",
        "items = np.array([(1, 0.5), (2, 1.5)], [('id', 'i4'), ('weight', 'f4')]);"
        " weight(items, 2)",
        "2.0",
        "lib.weight(ffi.new('item[]', [(1, 0.5), (2, 1.5)]), 2)",
    ),
    Row(
        "int as_int(union number u)",
        "return u.i;",
        "as_int({'f': 1.0})",
        "0x3f800000",
        "lib.as_int({'f': 1.0})",
    ),
    Row(
        "union number number_of(float f)",
        "return (union number){.f = f};",
        "number_of(1.0).i",
        "0x3f800000",
        "lib.number_of(1.0).i",
    ),
    Row(
        "unsigned low(struct flags f)",
        "return f.low;",
        "low({'low': 5, 'high': 1})",
        "5",
        "lib.low({'low': 5, 'high': 1})",
    ),
    Row(
        "long double mean(const long double *x, int n)",
        "long double sum = 0; for (int i = 0; i < n; ++i) sum += x[i]; return sum / n;",
        "mean(np.array([1, 2], np.longdouble), 2)",
        "1.5",
        "float(lib.mean(ffi.new('long double[]', [1, 2]), 2))",
    ),
    Row(
        "double area(struct shape s)",
        "return s.area(s.side);",
        "area((3, squares()))",
        "9.0",
        "lib.area(ffi.new('struct shape *', (3, lib.squares()))[0])",
    ),
    Row(
        "real_function squares(void)",
        "return square_of;",
        "squares()(3)",
        "9.0",
        "lib.squares()(3)",
    ),
]

HANDLES = [
    Row(
        "counter *counter_new(int start)",
        "counter *c = malloc(sizeof *c); c->value = start; c->step = 1; return c;",
        "c = counter_new(5); (counter_next(c), counter_next(c))",
        "(6, 7)",
        "c = lib.counter_new(5); (lib.counter_next(c), lib.counter_next(c))",
        {"free": "counter_free"},
    ),
    Row(
        "void counter_free(counter *c)",
        "free(c);",
        "c = counter_new(1); counter_free(c); counter_next(c)",
        "raises ValueError: argument 1 'c'",
    ),
    Row(
        "int counter_next(counter *c)",
        "return c ? c->value += c->step : -1;",
        "counter_next(None)",
        "-1",
        "lib.counter_next(ffi.NULL)",
    ),
    Row(
        "int counter_open(int start, counter **out)",
        "*out = counter_new(start); return 0;",
        "status, c = counter_open(5); (status, counter_next(c))",
        "(0, 6)",
        "p = ffi.new('counter **'); r = lib.counter_open(5, p); (r, lib.counter_next(p[0]))",
        {"out": ["out"], "free": "counter_free"},
    ),
    Row(
        "counter *counter_self(counter *c)",
        "return c;",
        "c = counter_self(counter_new(5)); counter_next(c)",
        "6",
        "c = lib.counter_self(lib.counter_new(5)); lib.counter_next(c)",
        {"lifetime": "c"},
    ),
    Row(
        "int *counter_value(counter *c)",
        "return &c->value;",
        "c = counter_new(5); v = counter_value(c); counter_next(c); v[0]",
        "6",
        "c = lib.counter_new(5); v = lib.counter_value(c); lib.counter_next(c); v[0]",
        {"lifetime": "c"},
    ),
    Row(
        "int counter_value_at(void *value)",
        "return *(int *)value;",
        "counter_value_at(np.array([4], np.int32))",
        "4",
        "lib.counter_value_at(ffi.new('int *', 4))",
    ),
    Row(
        "int file_number(FILE *file)",
        "return file ? fileno(file) : -1;",
        "file_number(standard_error())",
        "2",
        "lib.file_number(lib.standard_error())",
    ),
    Row(
        "FILE *standard_error(void)",
        "return stderr;",
        "num_letters(standard_error())",
        "raises TypeError: argument 1 'text'",
    ),
]

CALLBACKS = [
    Row(
        "double integral(double (*f)(double), double a, double b)",
        "double sum = 0; for (int i = 0; i < 100; ++i)"
        " sum += f(a + (b - a) * (i + 0.5) / 100) * (b - a) / 100; return sum;",
        "round(integral(lambda x: x * x, 0, 3), 2)",
        "9.0",
        "f = ffi.callback('double(double)', lambda x: x * x); round(lib.integral(f, 0, 3), 2)",
    ),
    Row(
        "double integral_of(double (*f)(double, void *), void *data, double a, double b)",
        "double sum = 0; for (int i = 0; i < 100; ++i)"
        " sum += f(a + (b - a) * (i + 0.5) / 100, data) * (b - a) / 100; return sum;",
        "round(integral_of(lambda x, data: 2 * x, None, 0, 3), 2)",
        "9.0",
        "f = ffi.callback('double(double, void *)', lambda x, data: 2 * x);"
        " round(lib.integral_of(f, ffi.NULL, 0, 3), 2)",
    ),
    Row(
        "int each(visit f)",
        'return f("one", 1) + f("two", 2);',
        "seen = []; each(lambda name, value: seen.append(name) or value); seen",
        "['one', 'two']",
        "s = []; f = ffi.callback('int(*)(const char *, int)',"
        " lambda n, v: s.append(ffi.string(n).decode()) or v); lib.each(f); s",
    ),
    Row(
        "double largest_of(double (*f)(const double *x, int n), int n)",
        "double x[] = {1, 5, 2}; return f(x, n);",
        "largest_of(lambda x, n: n, 3)",
        "3.0",
        "f = ffi.callback('double(*)(const double *, int)', lambda x, n: n); lib.largest_of(f, 3)",
    ),
    Row(
        "int call_once(int (*f)(void))",
        "return f();",
        "call_once(lambda: 1 // 0)",
        "raises ZeroDivisionError: integer division",
    ),
    Row(
        "int call_if(int (*f)(int), int n)",
        "return f ? f(n) : -1;",
        "call_if(None, 3)",
        "-1",
        "lib.call_if(ffi.NULL, 3)",
    ),
]

NAMES = [
    Row(
        "int sum_of(int n, ...)",
        "va_list l; va_start(l, n); int sum = 0; while (n--) sum += va_arg(l, int);"
        " va_end(l); return sum;",
        "sum_of(2, 40, 2)",
        "42",
        "lib.sum_of(2, ffi.cast('int', 40), ffi.cast('int', 2))",
        {"symbol": "sum_of", "declaration": "int(int n, int a, int b)"},
        refused="a variable number of arguments",
    ),
    Row(
        "int snprintf(char *buffer, size_t size, const char *format, ...)",
        "",
        "text = bytearray(9); n = snprintf_double(text, 9, '%.2f', 1.5); bytes(text[:n])",
        "b'1.50'",
        "y = ffi.new('char[9]'); lib.snprintf(y, 9, b'%.2f', ffi.cast('double', 1.5));"
        " ffi.string(y)",
        {
            "symbol": "snprintf",
            "declaration": "int(char *buffer, size_t size, const char *format, double value)",
            "name": "snprintf_double",
        },
        refused="a variable number of arguments",
    ),
    Row(
        "int SQUARE(int x)",
        "",
        "square(5)",
        "25",
        "",
        {"symbol": "SQUARE", "declaration": "int(int x)", "name": "square"},
    ),
    Row(
        "static inline int cube(int x)",
        "",
        "cube(3)",
        "27",
        "",
        {"symbol": "cube", "declaration": "int(int x)"},
    ),
]

SECTIONS = {
    "Numbers": NUMBERS,
    "Arrays and buffers": ARRAYS,
    "Text": TEXT,
    "Results through pointers, errno": OUT,
    "Structs": STRUCTS,
    "Handles": HANDLES,
    "Callbacks": CALLBACKS,
    "Other names": NAMES,
}
ROWS = [row for rows in SECTIONS.values() for row in rows]
SOURCE = (
    PRELUDE
    + "".join(
        f"\n{row.prototype} {{ {row.body} }}"
        for row in ROWS
        if (row.body or row.name == "rest") and not row.compiler
    )
    + "\n"
)
# The same for cffi, which needs no body, and no compiler's own types.
CDEF = TYPES + "".join(
    f"{row.cdef or row.prototype};\n"
    for row in ROWS
    if not row.compiler and "DLTensor" not in row.prototype and "128" not in row.prototype
).replace("int SQUARE(int x);\n", "").replace("static inline int cube(int x);\n", "")

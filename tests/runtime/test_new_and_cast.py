"""Memory of C from Python: `runtime.new` with values, `runtime.cast`, addresses of members."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packer
import runtime

SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uchar.h>
#include <wchar.h>
typedef struct { int type; } event;
typedef struct { int type; double at[2]; } key_event;
typedef struct { unsigned n : 8; double x[]; } packet;
typedef struct { float x __attribute__((aligned(64))); } wide;
int freed;
event *next_event(void) { static key_event e = {3, {1, 2.5}}; return (event *)&e; }
double at(const key_event *e, int i) { return e->at[i]; }
double sum(const packet *p) {
  double s = 0;
  for (unsigned i = 0; i < p->n; i++) s += p->x[i];
  return s;
}
int total(const int *x, int n) { int s = 0; while (n--) s += *x++; return s; }
void set(int *x) { *x = 9; }
size_t length(const char *text) { return strlen(text); }
double *make(int n) { return calloc(n, sizeof(double)); }
void release(void *p) { freed++, free(p); }
void sort(void *x, size_t n, int (*order)(const void *a, const void *b)) { qsort(x, n, 4, order); }
const wchar_t *greeting(void) { return L"h\\u00e9"; }
const unsigned char *raw(void) { return (const unsigned char *)"abc"; }
size_t characters(const wchar_t *text) { return wcslen(text); }
int first(const char16_t *text) { return text[0]; }
int last(int n, const char32_t *, int (*f)(int, int), const unsigned *x);
int last(int n, const char32_t *a, int (*f)(int, int), const unsigned *x) {
  return (int)a[n] + f(1, 2) + (x ? 1 : 0);
}
int put(FILE *f, const char *text) { return fputs(text, f); }
int words(char **text) { int n = 0; while (*text++) n++; return n; }
int promote(event *e, int n) {
  for (int i = 0; i < n; i++) e[i].type++;
  return e[n - 1].type;
}
int types(const event e[], int n) { return n ? e[n - 1].type : 0; }
wide *widest(void) { static wide w = {4}; return &w; }
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The library of the source."""
    functions = {"*": "auto", "make": {"free": "release"}}
    host = packer.CSourceModule(SOURCE, functions=functions)
    return runtime.load(packer.export_library(host, tmp_path_factory.mktemp("n") / "n.so"))


def test_memory_begins_with_values(model: Any) -> None:
    """Numbers, items, text, structs in arrays, and a last member of unknown length."""
    new = runtime.new
    assert model["total"](new(model, "int", 7), 1) == model["total"](
        new(model, "int[2]", [3, 4]), 2
    )
    assert [list(row) for row in new(model, "short[2][2]", [[1, 2], [3, 4]])] == [[1, 2], [3, 4]]
    assert model["length"](new(model, "char[8]", "abc")) == 3
    assert new(model, "event[2]", [(1,), {"type": 2}])[1].type == 2
    assert model["sum"](new(model, "packet", n=3, x=[1, 2, 4])) == 7.0
    assert model["sum"]({"n": 2, "x": [1, 2.5]}) == 3.5
    for name in (
        "unsigned long int",
        "long long",
        "signed char",
        "_Bool",
        "long double",
        "ssize_t",
    ):
        assert memoryview(new(model, name)).nbytes in (1, 8, 16)
    items = new(model, "int[4]", [1, 2, 3, 4])
    items[1:3] = [7, 8]
    assert list(items) == [1, 7, 8, 4]


def test_pointers_keep_what_they_begin_with(model: Any) -> None:
    """Each as long as its memory, also if others have the same type."""
    texts = [runtime.new(model, "char *", letter * 99) for letter in "abc"]
    events = [runtime.new(model, "event *", runtime.new(model, "event", type=i)) for i in (1, 2)]
    gc.collect()
    others = [runtime.new(model, "event", type=9) for _ in range(99)]
    assert [text[0] for text in texts] == [letter * 99 for letter in "abc"]
    assert [event[0].type for event in events] == [1, 2]
    del others


def test_a_cast_names_the_type(model: Any) -> None:
    """Of what a handle or an address points to; the object stays alive with it."""
    event = model["next_event"]()
    key = runtime.cast(model, "key_event", event)
    assert (event.type, key.at[1], model["at"](key, 1)) == (3, 2.5, 2.5)
    assert runtime.cast(model, "double[2]", key.at.address)[0] == 1.0
    assert runtime.cast(model, "int", 0) is None
    x, cast = np.array([3, 1, 2], np.int32), runtime.cast
    model["sort"](x, 3, lambda a, b: cast(model, "int", a)[0] - cast(model, "int", b)[0])
    assert x.tolist() == [1, 2, 3]
    owner = model["make"](2)
    part = cast(model, "long", owner)
    del owner
    gc.collect()
    assert (part[0], model.globals.freed) == (0, 0)
    del part
    gc.collect()
    assert model.globals.freed == 1


def test_a_member_has_an_address(model: Any) -> None:
    """A function writes through it."""
    event = runtime.new(model, "event")
    model["set"](event.pointer("type"))
    assert event.type == 9


@pytest.mark.parametrize(
    ("run", "error", "text"),
    [
        (lambda m: runtime.cast(m, "int", 1.5), TypeError, "expected a handle or an address"),
        (lambda m: runtime.cast(m, "int", -1), TypeError, "expected a handle or an address"),
        (
            lambda m: runtime.cast(m, "evnt", 1),
            ValueError,
            "found 'evnt'; near names: 'event', 'key_event'; for a typedef of a number",
        ),
        (lambda m: runtime.cast(None, "int", 1), TypeError, "expected a loaded library"),
        (lambda m: runtime.new(m, "int[2]", [1]), ValueError, "expected 2 items, found 1"),
        (lambda m: runtime.new(m, "int", "x"), TypeError, "expected a value of type i32"),
        (lambda m: runtime.new(m, "void"), ValueError, "expected a type of known size"),
        (lambda m: runtime.new(m, "char[2]", "abc"), ValueError, "expected 2 items, found 3"),
        (lambda m: runtime.new(m, "wide"), ValueError, "aligned to 64 bytes, expected at most 16"),
        (lambda m: runtime.new(m, "int[9999999999999999]"), ValueError, "expected less than"),
        (lambda m: m["length"](runtime.new(m, "char[2]", "ab")), TypeError, "expected a str"),
    ],
)
def test_wrong_uses_are_refused(model: Any, run: Any, error: type[Exception], text: str) -> None:
    """Nothing is read or written."""
    with pytest.raises(error, match=text):
        run(model)


def test_a_closed_handle_is_not_cast(model: Any, tmp_path: Path) -> None:
    """Its object is gone."""
    made = model["make"](1)
    made.close()
    with pytest.raises(ValueError, match="cast: expected an open handle"):
        runtime.cast(model, "int", made)
    assert model["widest"]().x == 4.0


def test_text_ends_before_the_first_zero(model: Any) -> None:
    """Of bytes and of wide characters, also in an array that has none."""
    assert bytes(model["raw"]().array(None)) == b"abc"
    assert "".join(map(chr, model["greeting"]().array(None))) == "h\u00e9"
    assert runtime.new(model, "short[2]", [1, 2]).array(None)[:] == [1, 2]


def test_wide_text_is_allocated(model: Any) -> None:
    """Zeros follow it; text that does not fit, or has no such encoding, is refused."""
    assert model["characters"](runtime.new(model, "wchar_t[4]", "h\u00e9")) == 2
    assert model["first"](runtime.new(model, "char16_t[2]", "\u00e9")) == 0xE9
    for text, expected in (
        ("abc", "expected 2 items, found 3"),
        ("\ud800", "UTF-32-LE can encode"),
    ):
        with pytest.raises(ValueError, match=f"member 'wchar_t\\[2\\]': .*{expected}"):
            runtime.new(model, "wchar_t[2]", text)


def test_text_is_passed_to_pointers_to_wide_characters(model: Any) -> None:
    """In the encoding of each, with a zero at its end; other pointers refuse text."""
    assert model["characters"]("h\u00e9\U0001f600") == 3 and model["characters"]("") == 0
    assert model["first"]("\U0001f600") == 0xD83D
    assert model["last"](1, "a\U0001f600", lambda a, b: a + b, None) == 0x1F600 + 3
    for text, error in (("a\0b", "without NUL"), ("\ud800", "that UTF-8 can encode")):
        with pytest.raises(ValueError, match=f"argument 1 'text': expected a str {error}"):
            model["characters"](text)
    for x in ("a", b"a"):
        with pytest.raises(TypeError, match="argument 4 'x'.* found (str|bytes)"):
            model["last"](1, "ab", lambda a, b: a, x)


def test_memory_that_a_call_cannot_take_is_refused(model: Any) -> None:
    """A FILE has no fields, and the wrapper frees the array that it makes of a list of text."""
    with pytest.raises(
        TypeError, match="put: argument 1 'f': expected a handle '_IO_FILE' or None"
    ):
        model["put"]({"_flags": 0}, "text")
    texts = runtime.new(model, "char *[2]", ["a", None])
    with pytest.raises(
        TypeError, match=r"expected a list of str, found .*'void \*text' for memory"
    ):
        model["words"](texts)
    assert model["words"](["a", "b"]) == 2


def test_a_list_is_an_array_of_structs(model: Any) -> None:
    """Its mappings are updated if C may write them; each item is checked."""
    events = [{"type": 1}, {"type": 5}]
    assert (model["promote"](events, 2), events) == (6, [{"type": 2}, {"type": 6}])
    assert model["types"]([{"type": 1}, (4,)], 2) == 4
    with pytest.raises(TypeError, match=r"argument 1 'e': field '\[1\]': expected a mapping or a"):
        model["types"]([{"type": 1}, 3], 2)
    with pytest.raises(TypeError, match="argument 1 'e': unsupported type, expected .* found list"):
        model["types"]([], 0)

"""Names of headers: macros for functions, typedefs that callers allocate, members and macros."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import packer
import runtime

# As in gmp.h, and in libxml's globals.h.
HEADER = """
typedef struct { int size; double *limbs; } __num_struct;
typedef __num_struct num_t[1];
typedef __num_struct *num_ptr;
typedef struct { union { int i; double d; } seed; } state;
typedef state state_t[1];
typedef struct box *box_t;
struct settings { char first; int level; };
int *__level(void);
#define level (*(__level()))
#define num_set __num_set
#define state_seed __state_seed
int num_set(num_ptr n, int size);
int state_seed(state_t s, int seed);
int boxes(box_t boxes[], int n);
int tune(struct settings *s);
"""
SOURCE = """
#include "num.h"
static int value;
int *__level(void) { return &value; }
int num_set(num_ptr n, int size) { return n->size = size; }
int state_seed(state_t s, int seed) { return s->seed.i += seed; }
int boxes(box_t boxes[], int n) { boxes[0] = (box_t)&value; return n; }
#undef level
int tune(struct settings *s) { return ++s->level; }
"""


@pytest.fixture
def export(tmp_path: Path) -> Any:
    """Export the header with options, and load the library."""
    (tmp_path / "num.h").write_text(HEADER)
    source = packer.CSourceModule(SOURCE, include=[tmp_path])

    def made(**options: Any) -> Any:
        header = packer.from_header(tmp_path / "num.h", **options)
        header.import_module(source)
        return runtime.load(packer.export_library(header, tmp_path / "num_c.so"))

    return made


def test_a_macro_is_the_name_of_a_reserved_function(export: Any) -> None:
    """Also where the user names functions; typedefs of one struct are names of memory."""
    model = export()
    number = runtime.new(model, "num_t")
    assert (model["num_set"](number, 3), number.size) == (3, 3)
    assert runtime.new(model, "num_ptr").array(1)[0] is None
    state = runtime.new(model, "state_t")
    assert (model["state_seed"](state, 2), model["state_seed"](state, 3)) == (2, 5)
    with pytest.raises(runtime.FunctionNotFoundError):
        model["__num_set"]
    chosen = export(only=["num_set"], functions={"state_seed": {"doc": "Seed."}})
    assert [chosen[name].name for name in ("num_set", "state_seed")] == ["num_set", "state_seed"]


def test_pointers_to_an_opaque_type_are_allocated(export: Any) -> None:
    """By the name of the type and by a typedef; a wrong name is refused."""
    model = export()
    for name in ("struct box *", "box_t"):
        cell = runtime.new(model, name)
        assert (cell[0], model["boxes"](cell, 1), cell[0].kind) == (None, 1, "box")
    with pytest.raises(ValueError, match="new: expected a type of known size, found 'struct box'"):
        runtime.new(model, "struct box")
    with pytest.raises(ValueError, match=r"found 'struct bix \*'; near names: 'box'"):
        runtime.new(model, "struct bix *")


def test_a_member_may_have_the_name_of_a_macro(export: Any) -> None:
    """The compiler cannot compare its offset by that name; the function is exported."""
    settings = {"level": 4}
    assert (export()["tune"](settings), settings["level"]) == (5, 5)

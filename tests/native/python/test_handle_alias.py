"""Handles of one object: the function that releases the object closes all of them."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest

import packer
import runtime

CODE = r"""
#include <stdlib.h>

typedef struct box { int value, references; } box;
typedef struct shelf { box *last; } shelf;
static int freed;
static shelf one;

box *box_new(int value) {
  box *made = malloc(sizeof *made);
  return made->value = value, made->references = 1, one.last = made;
}
box *box_plain(int value) { return box_new(value); }
void box_out(box **made) { *made = box_new(8); }
box *box_self(box *b) { return b; }
void *box_pointer(box *b) { return b; }
shelf *shelf_new(void) { return &one; }
void shelf_free(shelf *s) { (void)s; }
box *shelf_last(shelf *s) { return s->last; }
int box_value(box *b) { return b->value; }
int box_sum(box *a, box *b) { return a->value + b->value; }
int box_run(box *b, int (*f)(int)) { return f(b->value) + b->value; }
void box_free(box *b) { b->value = -1, freed++, free(b); }
box *box_ref(box *b) { return b->references++, b; }
void box_unref(box *b) { if (--b->references == 0) box_free(b); }
int count(void) { return freed; }
"""
FUNCTIONS: dict[str, Any] = {
    "*": "auto",
    "box_new": {"free": "box_free"},
    "shelf_new": {"free": "shelf_free"},
    "shelf_last": {"lifetime": "s"},
}
COUNTED = FUNCTIONS | {"box_new": {"free": "box_unref"}, "box_ref": {"free": "box_unref"}}


def load(folder: Path, functions: dict[str, Any]) -> runtime.Module:
    """The library with these options."""
    module = packer.CSourceModule(CODE, functions=functions)
    return runtime.load(packer.export_library(module, folder / "boxes.so"))


@pytest.fixture(scope="module")
def boxes(tmp_path_factory: pytest.TempPathFactory) -> runtime.Module:
    """Boxes that have one owner."""
    return load(tmp_path_factory.mktemp("boxes"), FUNCTIONS)


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> runtime.Module:
    """Boxes whose references are counted."""
    return load(tmp_path_factory.mktemp("counted"), COUNTED)


def refused(model: runtime.Module, *handles: runtime.Handle) -> None:
    """No function takes any of the handles."""
    for handle in handles:
        assert handle.closed
        with pytest.raises(ValueError, match="expected an open handle"):
            model["box_value"](handle)


@pytest.mark.parametrize("maker", ["box_plain", "box_out", "shelf_last", "box_self"])
def test_the_function_closes_every_handle_that_it_is_given(
    boxes: runtime.Module, maker: str
) -> None:
    """Also one whose maker declares no `free`: a result, an out-parameter, a child, an alias."""
    kept = boxes["box_new"](1)
    values = {"box_plain": (3,), "box_out": (), "shelf_last": (boxes["shelf_new"](),)}
    handle = boxes[maker](*values.get(maker, (kept,)))
    before = boxes["count"]()
    boxes["box_free"](handle)
    refused(boxes, handle)
    with pytest.raises(ValueError, match="box_free: argument 1 'b': expected an open handle"):
        boxes["box_free"](handle)
    assert boxes["count"]() == before + 1
    assert kept.closed == (maker in ("shelf_last", "box_self"))


def test_a_library_that_was_loaded_first_for_its_free_function(tmp_path: Path) -> None:
    """No maker was looked up before."""
    model = load(tmp_path, FUNCTIONS)
    box = model["box_plain"](3)
    model["box_free"](box)
    refused(model, box)


@pytest.mark.parametrize("end", ["call", "close"])
def test_every_handle_of_the_object_is_closed(boxes: runtime.Module, end: str) -> None:
    """By the function, by close(); also one without a kind. Another object is not touched."""
    box, other = boxes["box_new"](1), boxes["box_new"](2)
    same, pointer = boxes["box_self"](box), boxes["box_pointer"](box)
    before = boxes["count"]()
    if end == "call":
        boxes["box_free"](pointer)
    else:
        box.close()
    refused(boxes, box, same, pointer)
    assert boxes["box_value"](other) == 2
    del box, same, pointer
    gc.collect()
    assert boxes["count"]() == before + 1


def test_a_handle_without_free_leaves_the_object_alone(boxes: runtime.Module) -> None:
    """Its close() and its end release nothing."""
    box = boxes["box_new"](1)
    boxes["box_self"](box).close()
    assert boxes["box_value"](box) == 1


def test_the_last_handle_releases_the_object(boxes: runtime.Module) -> None:
    """A function may return its argument: the object is not freed before that handle's end."""
    before = boxes["count"]()
    box = boxes["box_self"](boxes["box_self"](boxes["box_new"](4)))
    assert (boxes["box_value"](box), boxes["count"]()) == (4, before)
    del box
    assert boxes["count"]() == before + 1


def test_an_object_is_not_released_while_a_call_uses_another_handle(
    boxes: runtime.Module,
) -> None:
    """Neither by the function, nor by close(), nor at the end of a handle."""
    before = boxes["count"]()
    box = boxes["box_new"](5)
    same = boxes["box_self"](box)

    def end(value: int) -> int:
        nonlocal box
        with pytest.raises(ValueError, match="in use by a call; close it after the call"):
            box.close()
        with pytest.raises(ValueError, match="in use; release it after that call"):
            boxes["box_free"](box)
        del box
        gc.collect()
        return value

    assert boxes["box_run"](same, end) == 10
    assert boxes["count"]() == before
    same.close()
    assert boxes["count"]() == before + 1


def test_counted_references_are_released_one_by_one(counted: runtime.Module) -> None:
    """Each handle of a function with `free` owns a reference."""
    before = counted["count"]()
    box = counted["box_new"](6)
    second, borrowed = counted["box_ref"](box), counted["box_self"](box)
    counted["box_unref"](box)
    assert box.closed and counted["box_sum"](second, borrowed) == 12
    assert counted["count"]() == before
    second.close()
    refused(counted, second, borrowed)
    assert counted["count"]() == before + 1


def test_many_handles(boxes: runtime.Module) -> None:
    """The table of handles grows; each end finds its own."""
    before = boxes["count"]()
    made = [boxes["box_new"](i) for i in range(5000)]
    same = [boxes["box_self"](box) for box in made]
    for box in made[::2]:
        boxes["box_free"](box)
    assert [box.closed for box in same] == [True, False] * 2500
    del made, same
    assert boxes["count"]() == before + 5000

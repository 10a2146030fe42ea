"""Structs with function pointers, and typedefs of pointers to structs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import packer
import runtime

CODE = """
typedef struct stream { int level; int (*read)(void *data, int n); void *data; } stream;
typedef stream *stream_p;
typedef const struct stream *stream_in;
static int two(void *data, int n) { return data ? 0 : 2 * n; }
int run(struct stream *s) { s->level++; return s->read ? s->read(s->data, 4) : -1; }
int typed(stream_p s) { return run(s); }
int level(stream_in s) { return s->level; }
void fill(stream *s) { s->read = two; }
typedef int (*reader)(void *data, int n);
reader find(void) { return two; }
int by_value(stream s) { return run(&s); }
stream *self(stream *s) { return s; }
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> runtime.Module:
    """The functions of the source."""
    folder: Path = tmp_path_factory.mktemp("streams")
    return runtime.load(
        packer.export_library(packer.CSourceModule(CODE, functions="auto"), folder / "s.so")
    )


@pytest.mark.parametrize("name", ["run", "typed"])
def test_a_mapping_gives_the_other_members(model: runtime.Module, name: str) -> None:
    """A function pointer that is omitted is NULL; C may set it, and it is passed on."""
    value = {"level": 3}
    assert model[name](value) == -1
    assert value["level"] == 4
    model["fill"](value)
    assert isinstance(value["read"], runtime.Handle) and value["read"].kind == "function"
    assert model[name](value) == 8
    assert model[name]({"level": 1, "read": value["read"]}) == 8
    assert model["level"](value) == 5


def test_a_function_of_a_known_type_fits_a_member(model: runtime.Module) -> None:
    """In a mapping and in a struct by value; a handle of something else does not."""
    found, other = model["find"](), model["self"](runtime.new(model, "stream"))
    assert (found(None, 3), model["run"]({"read": found})) == (6, 8)
    assert model["by_value"]((1, found, None)) == 8
    with pytest.raises(TypeError, match="field 'read': expected a value of type @function"):
        model["run"]({"read": other})
    with pytest.raises(TypeError, match="field 'read': expected a handle 'function'"):
        model["by_value"]((1, other, None))


@pytest.mark.parametrize("code", [len, b"\xc3", 5])
def test_a_member_that_is_code_takes_no_data(model: runtime.Module, code: object) -> None:
    """A callable would end with the call, but C may keep it."""
    text = f"run: argument 1 's': field 'read': expected a handle (@function), found {code!r}"
    with pytest.raises(TypeError, match=re.escape(text)):
        model["run"]({"level": 1, "read": code})

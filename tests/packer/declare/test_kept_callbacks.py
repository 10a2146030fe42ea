"""Callbacks and user data that C code keeps after the call: lifetimes, threads, errors."""

from __future__ import annotations

import gc
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest

import packer
import runtime

from ...support.command_line import Packer, done, refused

CODE = """
#include <pthread.h>
#include <stdlib.h>
struct event { int code; const char *name; };
typedef struct loop { void (*on)(const struct event *, void *); void *data; } loop;
static int (*hook)(int);
loop *loop_new(void) { return calloc(1, sizeof(loop)); }
void loop_free(loop *l) { free(l); }
loop *loop_static(void) { static loop l; return &l; }
void loop_on(loop *l, void (*on)(const struct event *e, void *data), void *data) {
  l->on = on, l->data = data;
}
void *loop_data(loop *l) { return l->data; }
void loop_fire(loop *l, int kind) { struct event e = {kind, "fired"}; l->on(&e, l->data); }
static void *run(void *l) { loop_fire(l, 9); return 0; }
void loop_thread(loop *l) { pthread_t t; pthread_create(&t, 0, run, l); pthread_join(t, 0); }
static loop saved;
void loop_save(loop *l) { saved = *l; }
void fire_saved(void) { loop_fire(&saved, 1); }
void set_hook(int (*f)(int)) { hook = f; }
int call_hook(int n) { int first = hook(n); return first + hook(n); }
int call_with(int (*f)(int, void *data), void *data) { return f(3, data); }
int nothing(void) { return 7; }
"""
FUNCTIONS = {
    "*": "auto",
    "loop_new": {"free": "loop_free"},
    "loop_on": {"kept": "l"},
    "set_hook": {"kept": "forever"},
    "call_with": {"kept": {"data": "call"}},
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The library of the tests."""
    host = packer.CSourceModule(CODE, functions=FUNCTIONS)
    path = tmp_path_factory.mktemp("kept") / "loops.so"
    return runtime.load(packer.export_library(host, path, options=["-pthread"]))


class Data:
    """User data."""


def test_a_callback_lives_as_long_as_its_handle(model: Any) -> None:
    """C calls the callback in later calls, with the Python object as its user data."""
    loop, data, seen = model["loop_new"](), Data(), []
    model["loop_on"](loop, lambda event, given: seen.append((event.code, event.name, given)), data)
    gc.collect()
    model["loop_fire"](loop, 3)
    model["loop_thread"](loop)
    assert seen == [(3, "fired", data), (9, "fired", data)]
    assert model["loop_data"](loop) is data
    gone = weakref.ref(data)
    del data, seen[:]
    loop.close()
    gc.collect()
    assert gone() is None


def test_a_struct_of_a_callback_ends_with_it(model: Any) -> None:
    """The handle of an event has members during the callback, and is closed after it."""
    loop, events = model["loop_new"](), []
    model["loop_on"](loop, lambda event, _: events.append(event), None)
    model["loop_fire"](loop, 3)
    with pytest.raises(ValueError, match="expected an open handle"):
        events[0].name  # noqa: B018
    model["loop_on"](loop, lambda event, _: setattr(event, "code", 4), None)
    with pytest.raises(TypeError, match="expected a writable struct, found a const one"):
        model["loop_fire"](loop, 3)


def test_errors_are_raised_by_the_running_call(model: Any) -> None:
    """An exception, or a wrong result, is raised by the call during which C called back."""
    loop = model["loop_new"]()
    model["loop_on"](loop, lambda event, _: 1 // 0, None)
    with pytest.raises(ZeroDivisionError):
        model["loop_fire"](loop, 3)
    calls = []
    model["set_hook"](lambda n: calls.append(n) or "text")
    with pytest.raises(TypeError, match=r"result of callback 'f' \(int\): expected an int"):
        model["call_hook"](1)
    assert (calls, model["nothing"]()) == ([1], 7)  # after the first error C gets 0


def test_errors_without_a_call_are_unraisable(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a thread of C no call can raise the error: sys.unraisablehook gets it."""
    loop, seen = model["loop_new"](), []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: seen.append(found.exc_type))
    model["loop_on"](loop, lambda event, _: 1 // 0, None)
    model["loop_thread"](loop)
    assert (seen, model["nothing"]()) == ([ZeroDivisionError], 7)


def test_callbacks_for_ever(model: Any) -> None:
    """A callback for ever, and one of an object that C owns, are never dropped."""
    model["set_hook"](lambda n: n + 1)
    seen = []
    model["loop_on"](model["loop_static"](), lambda event, _: seen.append(event.code), None)
    gc.collect()
    model["loop_fire"](model["loop_static"](), 5)
    assert (model["call_hook"](4), seen) == (10, [5])


def test_user_data_of_one_call(model: Any) -> None:
    """An object is user data for the call alone; a callback that is not kept gets it."""
    data = Data()
    assert model["call_with"](lambda n, given: n if given is data else -1, data) == 3
    with pytest.raises(TypeError, match="argument 1 'l'"):
        model["loop_save"](data)


def test_a_callback_after_its_handle_does_nothing(model: Any) -> None:
    """C that calls after the handle is closed gets 0, and the call says why."""
    loop, seen = model["loop_new"](), []
    model["loop_on"](loop, lambda event, _: seen.append(event), None)
    model["loop_save"](loop)
    loop.close()
    with pytest.raises(RuntimeError, match="loop_on: callback 'on' was called after the handle"):
        model["fire_saved"]()
    assert (seen, model["nothing"]()) == ([], 7)


def test_cycles_through_kept_callbacks_are_collected(model: Any) -> None:
    """An object whose methods its own handle keeps is freed; a method is kept once."""

    class Owner:
        def __init__(self) -> None:
            self.loop = model["loop_new"]()
            for _ in range(300):
                model["loop_on"](self.loop, self.on, self)

        def on(self, event: Any, data: Any) -> None:
            assert data is self

    owner = Owner()
    model["loop_fire"](owner.loop, 1)
    gone = weakref.ref(owner)
    del owner
    gc.collect()
    assert gone() is None


def test_too_many_callbacks_are_refused(model: Any) -> None:
    """The error says how to get a free place."""
    loop = model["loop_new"]()

    def fill() -> None:
        for _ in range(200):
            model["loop_on"](loop, lambda event, _: None, None)

    with pytest.raises(RuntimeError, match="callback 'on': 128 functions are kept"):
        fill()
    loop.close()
    other = model["loop_new"]()
    model["loop_on"](other, lambda event, _: None, None)


@pytest.mark.parametrize(
    ("kept", "text"),
    [
        ("m", "kept 'on': expected 'l' or 'forever', found 'm'"),
        ({"of": "l"}, "kept 'of': no such parameter; it has: 'data', 'l', 'on'"),
        ({"l": "l"}, "kept 'l': expected a function pointer or void \\*"),
        ({"on": "data"}, "kept 'on': expected 'l' or 'forever', found 'data'"),
        (3, "kept, expected the name of a parameter, 'forever', or a table"),
        ({"on": 3}, "kept, expected the name of a parameter, 'forever', or a table"),
    ],
)
def test_wrong_lifetimes_are_refused(kept: Any, text: str) -> None:
    """A lifetime is that of a handle among the parameters."""
    with pytest.raises(runtime.ExportError, match=text):
        packer.CSourceModule(CODE, functions={"loop_on": {"kept": kept}})


def test_cpp_keeps_callbacks(tmp_path: Path) -> None:
    """The wrappers of C++ code have thunks too, and raise the first error."""
    code = """
    #include <stdexcept>
    static int (*hook)(int);
    extern "C" void set_hook(int (*f)(int)) { hook = f; }
    extern "C" int call_hook(int n) {
      if (hook(n) == 0) throw std::runtime_error("zero");
      return 1;
    }
    """
    functions = {"*": "auto", "set_hook": {"kept": "forever"}}
    host = packer.CSourceModule(code, fmt="cc", functions=functions)
    model = runtime.load(packer.export_library(host, tmp_path / "cpp.so"))
    model["set_hook"](lambda n: n)
    assert model["call_hook"](1) == 1
    with pytest.raises(RuntimeError, match="zero"):
        model["call_hook"](0)
    model["set_hook"](lambda n: 1 // n)
    with pytest.raises(ZeroDivisionError):
        model["call_hook"](0)


def test_kept_needs_something_to_keep() -> None:
    """A function without callbacks and void * has nothing to keep."""
    with pytest.raises(runtime.ExportError, match="neither a callback nor void"):
        packer.CSourceModule(CODE, functions={"loop_free": {"kept": "kept"}})


def test_the_command_line_keeps_callbacks(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """--callback names the function; wrong values are errors of usage."""
    run: Packer = request.getfixturevalue("packer")
    (tmp_path / "loops.c").write_text(CODE)
    source, output = str(tmp_path / "loops.c"), str(tmp_path / "cli.so")
    words = ("export", output, source, "--callback")
    done(run(*words, "loop_on=kept", "--callback", "set_hook=forever"))
    model = runtime.load(output)
    model["set_hook"](lambda n: n)
    assert model["call_hook"](2) == 4
    for wrong in ("loop_on", "=kept", "loop_on="):
        assert "--callback: expected NAME=UNTIL" in refused(run(*words, wrong), 2)
    text = refused(run(*words, "loop_on=m"))
    assert "expected 'l' or 'forever', found 'm'" in text

"""Callbacks that C code keeps: a call after their call raises at the next return."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import packer
import runtime

CODE = r"""
#include <pthread.h>
#include <stdlib.h>

typedef int (*call)(int x);
typedef void (*visit)(void *data, const char *name);
typedef struct box { int value; } box;
static call kept;
static visit visitor;
static void *visitor_data;

void keep(call f) {
  if (kept && !f) kept(5);
  kept = f;
}
int fire(int x) { return kept ? kept(x) : -1; }
int now(call f, int x) { return f(x); }
void watch(visit v, void *data) { visitor = v, visitor_data = data; }
void tell(const char *name) { visitor(visitor_data, name); }
box *box_new(int x) {
  box *made = malloc(sizeof *made);
  made->value = fire(x);
  return made;
}
void box_free(box *b) { free(b); }
static void *run(void *data) { return (void)kept(3), data; }
void elsewhere(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, run, NULL);
  pthread_join(thread, NULL);
}
int plus(int a, int b) { return a + b; }
__attribute__((destructor)) static void end(void) {
  if (kept) kept(9);
}
"""


def export(folder: Path, code: str = CODE, fmt: str = "c") -> str:
    """The library, with a maker of handles."""
    functions = {"*": "auto", "box_new": {"free": "box_free"}}
    module = packer.CSourceModule(code, functions=functions, fmt=fmt)
    return packer.export_library(module, folder / "kept.so")


@pytest.fixture(params=["c", "cc"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> runtime.Module:
    """The same functions of C and of C++, whose wrappers catch exceptions."""
    if request.param == "c":
        return runtime.load(export(tmp_path))
    code = f'extern "C" {{\n{CODE.replace("malloc", "(box *)malloc")}\n}}\n'
    return runtime.load(export(tmp_path, code, "cc"))


def refuse(function: str, parameter: str, call: Any, *values: Any) -> None:
    """The call raises the error that names the function and the parameter."""
    expected = (
        rf"^{function}: callback '{parameter}' was kept, and called after the call of '{function}'"
        rf" had ended, when it does nothing, expected calls during '{function}' alone; let C call"
        rf" it before '{function}' returns, or export with --callback {function}=kept; declared as "
    )
    with pytest.raises(RuntimeError, match=expected):
        call(*values)


def test_a_kept_callback_raises_where_it_is_called(model: runtime.Module) -> None:
    """The error is that of the function that called it, and comes once."""
    seen: list[int] = []
    model["keep"](seen.append)
    refuse("keep", "f", model["fire"], 21)
    refuse("keep", "f", model["box_new"], 21)
    assert (seen, model["plus"](1, 2)) == ([], 3)
    model["watch"](lambda data, name: seen.append(0), None)
    refuse("watch", "v", model["tell"], "a")
    assert (seen, model["now"](lambda x: x + 1, 4)) == ([], 5)


def test_a_kept_callback_raises_at_the_end_of_another_function_with_callbacks(
    model: runtime.Module,
) -> None:
    """The callback of the running call is called; that of an earlier call is not."""
    seen: list[int] = []
    model["keep"](seen.append)

    def inner(x: int) -> int:
        refuse("keep", "f", model["fire"], x)
        return 7

    assert model["now"](inner, 1) == 7
    refuse("keep", "f", model["keep"], None)
    assert (seen, model["fire"](1)) == ([], -1)


def test_a_kept_callback_of_another_thread_raises_at_the_next_return(
    model: runtime.Module,
) -> None:
    """The thread has no caller."""
    model["keep"](print)
    refuse("keep", "f", model["elsewhere"])
    assert model["plus"](1, 2) == 3


def test_a_kept_callback_is_harmless_at_the_end(tmp_path: Path) -> None:
    """Destructors call it when the library is closed, or at exit."""
    code = (
        "import runtime, sys\nfor close in (True, False):\n"
        "    model = runtime.load(sys.argv[1])\n    model['keep'](print)\n"
        "    if close: del model"
    )
    command = [sys.executable, "-c", code, export(tmp_path)]
    made = subprocess.run(command, capture_output=True, text=True)
    assert (made.returncode, made.stdout, made.stderr) == (0, "", "")


def test_an_initialiser_beside_callbacks_returns_zero(tmp_path: Path) -> None:
    """TVM's const_loader requires it."""
    code = "void __init_f(int *x) { *x = 1; } void run(void (*f)(void)) { f(); }"
    functions = {"__init_f": "void(int *x)", "run": "void(void (*f)(void))"}
    module = packer.CSourceModule(code, functions=functions)
    model = runtime.load(packer.export_library(module, tmp_path / "init.so"))
    assert model["__init_f"](runtime.empty((1,), "int32")) == 0

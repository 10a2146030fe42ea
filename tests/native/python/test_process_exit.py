"""The end of a process in any order is quiet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ...support.process import run_python

PREAMBLE = """
import atexit, builtins, gc, json, sys, threading, time
import runtime
probe, functions = runtime.load(sys.argv[1]), runtime.load(sys.argv[2])
add, apply = probe["add"], functions["apply"]
print(json.dumps(add(40, 2)), flush=True)
"""
EXITS = {
    "globals": "",
    "builtins": "builtins.kept = [probe, functions, add, apply]",
    "builtins and the loader": "builtins.kept = [sys.modules['runtime.load'], probe]",
    "sys": "sys.kept = [add, probe]; del probe, add",
    "cycle": "gc.disable(); cycle = [probe, add]; cycle.append(cycle)",
    "view": "builtins.view = probe._library.data('__packer_fn_add'); del probe, add",
    "atexit calls": "atexit.register(lambda: add(1, 2))",
    "atexit loads": """
atexit.register(lambda: runtime.load(sys.argv[1])["add"](1, 2))
del probe, add
""",
    "atexit calls back": "atexit.register(apply, lambda: 1)",
    "__del__ calls": """
class Late:
    def __init__(self, call): self.call = call
    def __del__(self): self.call(1, 2)
builtins.late = Late(add)
""",
    "__del__ calls back": """
class Late:
    def __init__(self, call): self.call = call
    def __del__(self):
        try: self.call(lambda: 1)
        except RuntimeError as error: assert "shutting down" in str(error)
builtins.late = Late(apply)
""",
    "__del__ loads": """
class Late:
    load = staticmethod(runtime.load)
    path = sys.argv[1]
    def __del__(self): self.load(self.path)['add'](1, 2)
late = Late(); late.me = late
del probe, add
""",
    "kept callback": "functions['keep'](lambda: 1)",
    "kept function": "functions['keep'](add)",
    "daemon thread calls": """
def run():
    while True: add(1, 2)
threading.Thread(target=run, daemon=True).start()
time.sleep(0.05)
""",
    "daemon thread calls back": """
def run():
    while True: apply(lambda: 1)
for _ in range(4): threading.Thread(target=run, daemon=True).start()
time.sleep(0.05)
""",
    "daemon thread loads": """
def run():
    while True: runtime._core.Library(sys.argv[1])
for _ in range(4): threading.Thread(target=run, daemon=True).start()
time.sleep(0.05)
""",
    "daemon thread waits in a call": """
threading.Thread(target=probe["wait"], args=(60000,), daemon=True).start()
while not probe["is_waiting"](): pass
""",
    "daemon thread waits, names deleted": """
threading.Thread(target=probe["wait"], args=(60000,), daemon=True).start()
while not probe["is_waiting"](): pass
del probe, add
""",
    "thread outlives main": """
def run():
    time.sleep(0.1)
    for _ in range(1000): add(1, 2)
threading.Thread(target=run).start()
""",
}
# A value that host code keeps, or that a thread holds when the process ends, is not freed.
LOSES = {"kept callback", "kept function", "daemon thread calls back"}


@pytest.mark.parametrize("order", EXITS)
def test_exit_is_quiet(
    order: str, probe_file: Path, functions_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process ends with 0 and no output, wherever a value is held, called or waited for."""
    if order in LOSES:
        monkeypatch.setenv("LSAN_OPTIONS", "detect_leaks=0")  # for make sanitize
    assert run_python(PREAMBLE + EXITS[order], str(probe_file), str(functions_file)) == 42


def test_destructor_at_exit_may_raise(compile_library: Callable[..., Path]) -> None:
    """A library that is never closed runs its destructor after the interpreter has ended."""
    path = compile_library("""
#include "dso_packer.h"
void (*__TVMFFIErrorSetRaisedFromCStr)(const char *, const char *);
__attribute__((destructor)) static void leave(void) { dso_raise("KeyError", "too late"); }
""")
    code = "import runtime, sys, builtins; builtins.kept = [runtime.load(sys.argv[1])]; print(1)"
    assert run_python(code, str(path)) == 1

"""The meaning of functions is that which Numba gives them, or they are refused with the line."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import packer
import runtime

_SCRIPT = """
import numpy as np
from numba import jit, njit, objmode, prange, types

TABLE = np.arange(6.0).reshape(2, 3)
EVERY_SECOND = np.arange(12.0)[::2]
VERBOSE = False


@njit("int64(int64)")
def recursive(n):
    return n if n < 2 else recursive(n - 1) + recursive(n - 2)


@njit
def down(n, x):
    return x if n == 0 else up(n - 1, x + 0.5)


@njit
def up(n, x):
    return x if n == 0 else down(n - 1, x * 2)


@njit("float64(int64, float64)")
def circle(n, x):
    return down(n, x)


@njit
def squares(n):
    for i in range(n):
        yield i * i


@njit("int64(int64)")
def sum_of_squares(n):
    total = 0
    for square in squares(n):
        total += square
    return total


@njit("float64(int64)")
def frozen(i):
    return TABLE[1, i] + EVERY_SECOND[i]


@njit("float64(float64[::1])", fastmath=True)
def fast(x):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i]
    return total


@njit("float64(float64[::1])")
def exact(x):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i]
    return total


@njit("float64(float64, float64)", error_model="numpy")
def numpy_division(x, y):
    return x / y


@njit("float64(float64, float64)")
def python_division(x, y):
    return x / y


@njit("float64(float64[::1], int64)", boundscheck=True)
def checked(x, i):
    return x[i]


@njit("int64(int64)", nogil=True)
def without_lock(x):
    return x


@njit("int64(int64, unicode_type)")
def caught(x, text):
    try:
        if x > 0:
            raise ValueError(text)
    except Exception:
        return 5
    return 1


@njit("unicode_type(unicode_type)")
def upper(text):
    return text.upper()


@njit("int64(int64)")
def never_prints(x):
    if VERBOSE:
        print(x)
    return x


@jit("float64(float64)", forceobj=True)
def object_mode(x):
    return x + 1


@njit("float64(float64)")
def object_block(x):
    with objmode(y="float64"):
        y = float(str(x))
    return y


@njit("(int64,)")
def generator(n):
    for i in range(n):
        yield i


@njit("(int64,)")
def of_a_generator(n):
    m = n + 1
    return squares(m)


@njit("int64(int64)")
def expression(n):
    m = n + 1
    return sum(i for i in range(m))


@njit("int64(int64)")
def prints(x):
    y = x + 1
    print("text", y)
    return y


@njit
def helper(x):
    print(x, x)
    return x


@njit("int64(int64)")
def calls_helper(x):
    return helper(x)


@njit("int64(int64)", parallel=True)
def prints_in_loop(n):
    for i in prange(n):
        print(i)
    return n


@njit
def endless(n):
    return endless(n)


@njit("int64(int64)")
def calls_endless(n):
    return endless(n)


@njit
def growing(n, x):
    return growing(n - 1, (x,)) if n > 0 else 1


@njit("int64(int64)")
def calls_growing(n):
    return growing(n, 1)


@njit("int64(int64)")
def unknown_name(x):
    return nothing_of_this_name + x


@njit("unicode_type(int64)")
def formats(x):
    return f"{x:05d}"


@njit("int64(int64)")
def global_list(i):
    return LIST[i]


@njit("float64(float64)")
def writes_global(x):
    TABLE[0, 0] = x
    return x


@njit("int64(int64, int64[:])")
def mutable_default(x, y=np.zeros(3, np.int64)):
    return x + y[0]


LIST = [1, 2]
"""
_COMPILED = _SCRIPT[: _SCRIPT.index('@njit("float64(float64)")\ndef object_block')]


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file."""
    path = tmp_path_factory.mktemp("semantics") / "script.py"
    path.write_text(_SCRIPT)
    return path


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The functions that Numba compiles without Python, as it runs them."""
    path = tmp_path_factory.mktemp("semantics") / "compiled.py"
    path.write_text(_COMPILED)
    spec = importlib.util.spec_from_file_location("compiled", path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def module(script: Path) -> Any:
    """The module: what it left out is refused."""
    return packer.from_numba(script)


@pytest.fixture(scope="module")
def library(module: Any, script: Path) -> Any:
    """The functions in a library."""
    return runtime.load(packer.export_library(module, script.with_suffix(".so")))


_MANY = np.random.default_rng(0).standard_normal(1001) * 1e8


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("recursive", (20,)),
        ("circle", (7, 1.0)),
        ("sum_of_squares", (10,)),
        ("frozen", (2,)),
        ("exact", (_MANY,)),
        ("numpy_division", (1.0, 0.0)),
        ("python_division", (1.0, 0.0)),
        ("checked", (np.arange(3.0), 2)),
        ("checked", (np.arange(3.0), 3)),
        ("checked", (np.arange(3.0), -4)),
        ("without_lock", (3,)),
        ("upper", ("straße ǆ",)),
        ("never_prints", (3,)),
        ("caught", (1, "text")),
        ("caught", (0, "text")),
    ],
)
def test_a_call_is_as_in_numba(
    library: Any, own: ModuleType, name: str, arguments: tuple[Any, ...]
) -> None:
    """Recursion, generators inside, frozen arrays, and the options of decorators."""
    answers = []
    for function in (getattr(own, name), library[name]):
        try:
            answers.append(repr(function(*arguments)))
        except Exception as error:
            answers.append(type(error).__name__)
    assert answers[0] == answers[1]


def test_fast_arithmetic_is_kept(library: Any) -> None:
    """The sum of many numbers is in another order, and nearly the same."""
    assert library["fast"](_MANY) == pytest.approx(library["exact"](_MANY), rel=1e-9)
    assert library["fast"](_MANY) != library["exact"](_MANY)


def test_a_function_without_the_lock_says_so(module: Any) -> None:
    """Others keep Python's lock, as in Numba."""
    found = {declaration.name: declaration.gil for declaration in module.functions}
    assert (found["without_lock"], found["exact"]) == ("release", "keep")


def test_global_arrays_are_named_as_frozen(module: Any) -> None:
    """With file and line of the function; Numba's own tables, as for text, are not."""
    notes = [note for note in module.notes if ": frozen: a global array" in note]
    assert len(notes) == len(module.notes) == 2
    assert all(note.startswith(f"script.py:{_line('def frozen') - 1}: ") for note in notes)


def _line(text: str) -> int:
    return 1 + next(i for i, line in enumerate(_SCRIPT.splitlines()) if text in line)


@pytest.mark.parametrize(
    ("name", "place", "text"),
    [
        ("object_mode", "forceobj", r"object mode \(forceobj\) needs Python; use @njit"),
        ("object_block", "with objmode", "a block of objmode needs Python; compute"),
        ("generator", "yield i", "yield makes it a generator, which needs Python; fill an array"),
        (
            "of_a_generator",
            "return squares(m)",
            "a result of type .*: it is a generator, which needs",
        ),
        (
            "expression",
            "sum(i for i",
            "a generator expression, or yield in an inner function; write",
        ),
        ("prints", 'print("text", y)', "print needs Python; return the value"),
        ("prints_in_loop", "print(i)", "print needs Python; return the value"),
        ("calls_endless", "return endless(n)", "runaway recursion"),
        ("calls_growing", '@njit("int64(int64)")', "cannot compile it: RecursionError"),
        ("unknown_name", "return nothing", "name 'nothing_of_this_name' is not defined"),
        ("formats", "return f", "format spec in f-strings"),
        ("global_list", "return LIST", "reflected list"),
        ("writes_global", "TABLE[0, 0] = x", "No implementation of function .*setitem"),
        ("mutable_default", "int64[:])", r"default y=array\(\[0, 0, 0\]\), expected a number"),
        ("squares", "yield i * i", "yield makes it a generator"),
        ("helper", "@njit", "no signature; name one"),
    ],
)
def test_what_needs_python_is_refused_with_its_line(
    module: Any, name: str, place: str, text: str
) -> None:
    """The line is that of the function, or the one in it that needs Python."""
    found = module.left_out[name]
    assert re.search(text, found), found
    first = _line(f"def {name}(")
    lines = range(first - 1, first + 4)
    assert not re.search("Py[A-Z]|numba[._]", found), found
    line = int(found.split(":")[1])
    assert found.startswith("script.py:") and line in lines, found
    assert place in _SCRIPT.splitlines()[line - 1], found


def test_a_construct_of_a_called_function_is_named_there(module: Any) -> None:
    """The line is that of the construct."""
    place = f"script.py:{_line('print(x, x)')}"
    assert module.left_out["calls_helper"] == f"{place}: print needs Python; return the value"

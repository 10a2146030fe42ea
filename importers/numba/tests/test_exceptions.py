"""Exceptions have their Python class, with text, function, file and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numba
import pytest

import packer
import runtime

from .conftest import EXAMPLES


def _line(text: str) -> int:
    lines = (EXAMPLES / "values.py").read_text().splitlines()
    return 1 + next(i for i, line in enumerate(lines) if text in line)


@pytest.mark.parametrize(
    ("value", "kind", "text", "place"),
    [
        (1, ValueError, "one", 'ValueError("one")'),
        (2, KeyError, "k", 'KeyError("k")'),
        (3, ValueError, "OwnError: own", 'OwnError("own")'),
        (4, IndexError, "", "raise IndexError"),
        (5, AssertionError, "no five", "assert x != 5"),
    ],
)
def test_an_exception_has_its_class_text_and_place(
    values: Any, value: int, kind: type[Exception], text: str, place: str
) -> None:
    """A class of the file is its nearest built-in one."""
    with pytest.raises(kind) as caught:
        values["fails"](value)
    told = f"raised by fails (values.py:{_line(place)})"
    assert caught.value.args == (f"{text}; {told}" if text else told,)
    assert values["fails"](0) == 0


def test_an_exception_of_numba_itself_names_the_exported_function(values: Any) -> None:
    """Numba has no place for it."""
    with pytest.raises(ZeroDivisionError, match="^integer division by zero; raised by fails$"):
        values["fails"](6)


def test_an_exception_of_a_called_function_names_that(values: Any) -> None:
    """The line is that of the raise."""
    with pytest.raises(ValueError, match=r"^negative; raised by helper \(values.py:\d+\)$"):
        values["root"](-1.0)


@pytest.mark.parametrize(
    ("value", "text"),
    [(1, "bad 1"), (2, "('bad', 2, 0.1, True)"), (3, "OwnError: é3")],
)
def test_a_message_has_the_values_of_the_run(values: Any, value: int, text: str) -> None:
    """Numbers, bools and text, formatted without Python."""
    with pytest.raises(ValueError, match="raised by tells") as caught:
        values["tells"](value, 0.1, True)
    assert caught.value.args[0].startswith(f"{text}; raised by tells (values.py:")


@pytest.mark.parametrize(
    "number", [0.0, -0.0, 1.0, 1e15, 1e16, 123456.789, 1e-4, 1e-5, 5e-324, 1.7976931348623157e308]
)
@pytest.mark.parametrize("sign", [1, -1])
def test_a_float_is_written_as_python_writes_it(values: Any, number: float, sign: int) -> None:
    """The shortest decimals."""
    with pytest.raises(ValueError, match="raised by tells") as caught:
        values["tells"](2, sign * number, False)
    assert caught.value.args[0].startswith(f"('bad', 2, {sign * number!r}, False);")


@numba.njit
def _from_a_number(x: int) -> int:
    if x < 0:
        raise ValueError(f"bad value {x} of something")
    return x


@numba.njit
def _from_an_argument(text: str) -> int:
    if len(text) > 3:
        raise ValueError(text, text)
    return 1


def test_texts_of_exceptions_are_released(tmp_path: Path) -> None:
    """Calls that raise do not grow, and a text is read before its memory is given back."""
    functions = {"number": _from_a_number, "argument": _from_an_argument}
    signatures = {"number": "int64(int64)", "argument": "int64(unicode_type)"}
    module = packer.NumbaModule(functions, signatures=signatures)
    library = runtime.load(packer.export_library(module, tmp_path / "raising.so"))
    long = "0123456789" * 40
    for call, given, told in (
        (library["number"], -5, "bad value -5 of something; "),
        (library["argument"], long, f"('{long}', '{long}'); "),
    ):
        before = 0
        for rounds in (2_000, 20_000):
            before = _resident()
            for _ in range(rounds):
                with pytest.raises(ValueError, match="raised by") as caught:
                    call(given)
        assert caught.value.args[0].startswith(told)
        assert _resident() - before < 1 << 20


def _resident() -> int:
    return 4096 * int(Path("/proc/self/statm").read_text().split()[1])


_MISSING = "nothing_of_this_name"


@numba.njit
def _lacks(x: float) -> Any:
    return getattr(x, _MISSING)


def test_code_that_the_process_compiled_before_is_not_used(tmp_path: Path) -> None:
    """An exception of it would be unpickled by Python."""
    with pytest.raises(AttributeError, match=_MISSING):
        _lacks(1.5)
    module = packer.from_numba(_lacks)
    library = runtime.load(packer.export_library(module, tmp_path / "lacks.so"))
    with pytest.raises(AttributeError, match=f"no attribute '{_MISSING}'; raised by impl"):
        library["_lacks"](1.5)
    with pytest.raises(AttributeError, match=_MISSING):
        _lacks(1.5)

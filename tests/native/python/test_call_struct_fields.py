"""Structs with pointers: their fields take arrays, text, structs and handles."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runtime

from ...support.paths import C_SOURCES
from .dlpack_producers import Probe

SOURCE = "declared.c"


def test_fields_with_pointers(probe: Probe) -> None:
    """They take arrays, text and handles, and are read back if C changed them."""
    counter, scale = probe("counter_new")(3), np.array([1, 2], "f4")
    record = {"x": 1.0, "scale": scale, "data": np.array([2, 3], "f4"), "name": "abc"}
    record["counter"] = counter
    assert probe("update")(record) == 3
    assert (record["x"], record["n"], record["name"]) == (3.0, 3, "renamed")
    assert record["scale"] is scale and scale.tolist() == [1.0, 0.5]
    assert record["counter"] is counter and probe("counter_next")(counter) == 103


@pytest.mark.parametrize(
    ("field", "value", "error", "expected"),
    [
        ("data", np.zeros(2), TypeError, "expected a contiguous array of f32, found format 'd'"),
        ("data", np.zeros(4, "f4")[::2], TypeError, "format 'f', not contiguous"),
        ("data", 3, TypeError, r"expected an array \(&f32\), found 3"),
        ("name", "a\0b", ValueError, "expected text without NUL"),
        ("name", 3, TypeError, "expected a str, found 3"),
        ("scale", [1.0], ValueError, "expected 2 items, found 1"),
        ("scale", 1.0, TypeError, "expected 2 items, found 1.0"),
        ("scale", np.zeros(()), TypeError, "expected 2 items, found array"),
        ("scale", {1, 2, 3}, ValueError, "expected 2 items, found 3"),
        ("name", "\udc80", ValueError, r"expected a str that UTF-8 can encode, found '\\udc80'"),
        ("counter", 3, TypeError, r"expected a handle \(@counter\), found 3"),
    ],
)
def test_field_refuses(
    probe: Probe, field: str, value: object, error: type[Exception], expected: str
) -> None:
    """The message names the field."""
    with pytest.raises(error, match=f"argument 1 'r': field '{field}': .*{expected}"):
        probe("update")({field: value})


def test_field_refuses_other_handles(probe: Probe) -> None:
    """As an argument does."""
    with pytest.raises(TypeError, match="field 'counter': expected a value of type @counter"):
        probe("update")({"counter": probe("other_new")()})
    counter = probe("counter_new")(3)
    counter.close()
    with pytest.raises(ValueError, match="field 'counter': expected an open handle"):
        probe("update")({"counter": counter})


def test_handle_in_a_field_is_in_use(probe: Probe) -> None:
    """It cannot be closed during the call, nor between the conversion and the call."""
    counter = probe("counter_new")(3)
    for _ in range(2):
        with pytest.raises(ValueError, match="in use by a call; close it after the call"):
            probe("update_during")({"counter": counter}, counter.close)
        assert not counter.closed

    class Closing(dict[str, Any]):
        """Its `get` closes the handle after the handle's field was read."""

        def get(self, name: str, default: Any = None) -> Any:
            value = super().get(name, default)
            return counter.close() or value if name == "counter" else value

    with pytest.raises(ValueError, match="update: argument 1 'r': field 'counter': expected an op"):
        probe("update")(Closing(counter=counter))


def test_handle_that_is_closed_while_a_struct_is_packed_is_refused(probe: Probe) -> None:
    """A later field's object may run any code."""
    counter = probe("counter_new")(3)

    class Closing:
        def __float__(self) -> float:
            counter.close()
            return 1.0

    last = ({"counter": counter}, {"counter": probe("counter_new")(3), "x": Closing()})
    with pytest.raises(ValueError, match=r"two: argument 1 'p': expected an open handle, found a"):
        probe("two")({"first": last[0], "second": last[1]})


def test_handle_of_another_library_in_a_field_is_refused(
    probe: Probe, compile_library, tmp_path: Path
) -> None:
    """As an argument is."""
    copy = shutil.copy(compile_library((C_SOURCES / SOURCE).read_text()), tmp_path / "copy.so")
    expected = "field 'counter': expected a handle of this library, found <Handle counter at .*>"
    with pytest.raises(ValueError, match=f"{expected} of another"):
        probe("update")({"counter": runtime.load(copy)["counter_new"](3)})

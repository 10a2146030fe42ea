"""Strings and objects as results, and who releases them."""

from __future__ import annotations

import pytest

from .dlpack_producers import Probe

SOURCE = "probe.c"
SMALL_STR, SMALL_BYTES, STR_OBJECT, BYTES_OBJECT, MAP_OBJECT = 11, 12, 65, 66, 72


@pytest.mark.parametrize("text", ["", "x", "seven77", "ä🐢"])
def test_small_string_result(probe: Probe, text: str) -> None:
    """Up to seven bytes are stored inside the result."""
    length = len(text.encode())
    assert probe("small")(SMALL_STR, text, length) == text
    assert probe("small")(SMALL_BYTES, text, length) == text.encode()


def test_small_string_longer_than_its_room_is_refused(probe: Probe) -> None:
    """The length of a small string is not believed beyond seven."""
    with pytest.raises(
        ValueError, match=r"^small: result: a small string, expected at most 7 bytes, found 8$"
    ):
        probe("small")(SMALL_STR, "abcdefgh", 8)


def test_object_result_is_released(probe: Probe) -> None:
    """A heap string is copied; one call of the deleter frees its only reference."""
    assert probe("object")(STR_OBJECT, "a longer text", 1, 1) == "a longer text"
    assert probe("deleter_flags")() == 3
    assert probe("object")(BYTES_OBJECT, "a longer text", 1, 1) == b"a longer text"
    assert probe("live_objects")() == 0


def test_object_result_with_weak_references(probe: Probe) -> None:
    """The last strong reference destroys, the weak ones keep the memory."""
    assert probe("object")(STR_OBJECT, "text", 1, 2) == "text"
    assert (probe("deleter_flags")(), probe("last_counts")()) == (1, 1 << 32)
    probe("free_last")()


def test_object_result_that_is_shared(probe: Probe) -> None:
    """Another strong reference keeps the object whole."""
    assert probe("object")(STR_OBJECT, "text", 2, 1) == "text"
    assert (probe("deleter_flags")(), probe("last_counts")()) == (0, 1 << 32 | 1)
    probe("free_last")()


def test_unsupported_result_is_released_and_named(probe: Probe) -> None:
    """A type that has no Python form is a TypeError, not a leak."""
    with pytest.raises(TypeError, match=r"^object: result: type index 72 is not supported$"):
        probe("object")(MAP_OBJECT, "", 1, 1)
    assert probe("live_objects")() == 0
    with pytest.raises(TypeError, match=r"^of_type: result: type index 7 is not supported$"):
        probe("of_type")(7)


def test_null_object_result_is_refused(probe: Probe) -> None:
    """An object type without an object is the function's mistake."""
    with pytest.raises(ValueError, match=r"^of_type: result: expected an object, found NULL$"):
        probe("of_type")(STR_OBJECT)


@pytest.mark.parametrize("name", ["not_utf8", "small_not_utf8"])
def test_result_that_is_not_utf8(probe: Probe, name: str) -> None:
    """A str result must be text."""
    with pytest.raises(ValueError, match=rf"^{name}: result: a str of \d bytes, expected UTF-8$"):
        probe(name)()
    assert probe("live_objects")() == 0

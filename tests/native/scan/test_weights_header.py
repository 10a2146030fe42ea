"""The scan of a weights header finds the end of its data, or leaves it to the parser."""

from __future__ import annotations

import pytest

from runtime._core import weights_data_nbytes

from ...support.weights_files import ONE, TWO


@pytest.mark.parametrize(
    ("header", "nbytes"),
    [
        (ONE, 4),
        (TWO, 4),
        ("{}", 0),
        (TWO.replace(":", " :\n ").replace(",", " , "), 4),
        ('{"a": {"dtype": "data_offsets", "data_offsets": [0, 3]}}', 3),
        ('{"data_offsets": {"data_offsets": [0, 9]}}', -1),
        (ONE.replace("data_offsets", "data\\u005foffsets"), -1),
        (ONE.replace("[0, 4]", "[0, 4.0]"), -1),
        (ONE.replace("4", "9" * 30), -1),
        ('{"a', -1),
        ("", 0),
    ],
)
def test_scan_finds_the_end_of_the_data_or_leaves_it_to_the_parser(
    header: str, nbytes: int
) -> None:
    """Only plain headers are scanned: nothing hides in strings, escapes or odd numbers."""
    assert weights_data_nbytes(header.encode()) == nbytes

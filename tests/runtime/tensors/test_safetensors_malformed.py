"""safetensors: malformed headers and data are refused."""

from __future__ import annotations

import pytest
import safetensors
import safetensors.numpy

import runtime

from ...support.weights_files import ONE, TWO, blob_of, file_of

DEEP = "[" * 100_000
MALFORMED = {
    "header beyond the file": (None, "a safetensors header of 99 bytes, expected at most 4 left"),
    "no header": ("", r"0x8: header '', expected to begin with '\{'"),
    "array": ("[]", r"header '\[\]', expected to begin with '\{'"),
    "space before": (" " + ONE, "expected to begin with"),
    "byte order mark": ("\ufeff" + ONE, "expected to begin with"),
    "cut": (ONE[:-1], "0x43: header is not JSON: expecting ',' delimiter"),
    "text after it": (ONE + "x", "0x44: header is not JSON: extra data"),
    "control character": ('{"a\n": 1}', "header is not JSON: invalid control character"),
    "NaN": (ONE.replace("4]}", '4], "x": NaN}'), "NaN, expected a finite number"),
    "deep": (
        ONE.replace("4]}", f'4], "x": {DEEP}}}'),
        "not JSON of this format: JSON of 100002 levels, expected at most 64",
    ),
    "long integer": (
        ONE.replace("[4]", f"[{'9' * 10**6}]"),
        "not JSON of this format: JSON of 1000000 digits in a number, expected at most 40",
    ),
    "name twice": (TWO.replace('"b"', '"a"'), "key 'a' occurs twice, expected once"),
    "key twice": (ONE.replace('"U8"', '"U8", "dtype": "U8"'), "key 'dtype' occurs twice"),
    "half a surrogate pair": (ONE.replace('"a"', r'"\ud800"'), r"a lone surrogate '\\ud800'"),
    "metadata of numbers": ('{"__metadata__": {"a": 1}}', "expected text by name"),
    "metadata of text": ('{"__metadata__": "a"}', "__metadata__ 'a', expected text by name"),
    "tensor of text": ('{"a": "b"}', "tensor 'a': entry, expected an object, found 'b'"),
    "no dtype": (ONE.replace("dtype", "d"), "tensor 'a': dtype, expected one of .*, found None"),
    "unknown dtype": (ONE.replace("U8", "U9"), "tensor 'a': dtype, expected one of .*found 'U9'"),
    "dtype of another type": (ONE.replace('"U8"', "[]"), r"dtype, expected .*, found \[\]"),
    "no shape": (ONE.replace("shape", "s"), "shape, expected at most 64 sizes .* found None"),
    "negative extent": (ONE.replace("[4]", "[-4]"), r"shape, expected .*, found \[-4\]"),
    "extent that is true": (ONE.replace("[4]", "[4, true]"), r"shape, .*found \[4, True\]"),
    "fractional extent": (ONE.replace("[4]", "[4.0]"), r"shape, expected .*, found \[4\.0\]"),
    "65 dimensions": (ONE.replace("[4]", str([1] * 64 + [4])), "shape, expected at most 64"),
    "overflow": (ONE.replace("[4]", str([1 << 32] * 2)), "shape, .* that can be addressed"),
    "overflow to 4": (ONE.replace("[4]", str([1 << 62, 4, 1])), "shape, .* can be addressed"),
    "overflow after 0": (ONE.replace("[4]", str([0, 1 << 62, 4])), "shape, .* can be addressed"),
    "no offsets": (ONE.replace("data_o", "o"), r"data_offsets, expected \[begin, end\]"),
    "one offset": (ONE.replace("[0, 4]", "[4]"), r"data_offsets, .*, found \[4\]"),
    "negative offset": (ONE.replace("[0, 4]", "[-4, 0]"), r"data_offsets, .*, found \[-4, 0\]"),
    "offset beyond a size": (ONE.replace("0, 4", f"{1 << 63}, 4"), r"data_offsets, expected \[b"),
    "offsets swapped": (ONE.replace("[0, 4]", "[4, 0]"), "data_offsets, expected 4 bytes of U8"),
    "another size": (ONE.replace("[4]", "[3]"), r"expected 3 bytes of U8 \[3\], found \[0, 4\]"),
    "half a byte": (ONE.replace("U8", "F4").replace("[4]", "[9]"), "expected whole bytes"),
    "begins later": (ONE.replace("[0, 4]", "[1, 5]"), r"expected 0 \(a hole\), found \[1, 5\]"),
    "hole": (TWO.replace("[2, 4]", "[3, 5]"), r"'b': .*expected 2 \(a hole\), found \[3, 5\]"),
    "overlap": (TWO.replace("[2, 4]", "[1, 3]"), r"'b': .*expected 2 \(an overlap\)"),
    "beyond the data": (ONE.replace("4", "5"), "tensor data of 5 bytes, expected at most 4 left"),
    "bytes after it": (ONE.replace("4", "3"), "1 bytes after the last tensor, expected none"),
}
# Inputs that the reference reads: it is laxer than its text, or than an array can be.
LAX = {"space before", "overflow after 0", "65 dimensions"}
NOT_LAX = set(MALFORMED) - LAX


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_file_is_refused(case: str) -> None:
    """One poke for each rule; the message has offset and problem; the reference refuses it too."""
    header, match = MALFORMED[case]
    file = file_of(header, b"1234") if header is not None else b"\x63" + bytes(7) + b"1234"
    with pytest.raises(runtime.BlobFormatError, match=match) as caught:
        runtime.SafetensorsModule(file)
    assert len(str(caught.value)) < 600
    assert caught.value.offset is not None
    if case in NOT_LAX:
        with pytest.raises(safetensors.SafetensorError):
            safetensors.deserialize(file)


def test_header_that_is_not_utf8_is_refused() -> None:
    """The offset in the error is that of the byte."""
    with pytest.raises(runtime.BlobFormatError, match="0xa: header is not UTF-8, expected JSON"):
        runtime.SafetensorsModule(file_of(b'{"\xff": 1}'))


def test_header_beyond_the_limit_is_refused() -> None:
    """The error is raised before any byte of the header is read."""
    data = (100_000_001).to_bytes(8, "little") + bytes(9)
    with pytest.raises(
        runtime.BlobFormatError, match="header of 100000001 bytes, expected at most 100000000"
    ):
        runtime.SafetensorsModule(data)


def test_header_at_the_limit_is_read() -> None:
    """The reference's limit is ours to the byte."""
    file = file_of(ONE.ljust(100_000_000), b"1234")
    assert bytes(runtime.SafetensorsModule(file).weights["a"].raw) == b"1234"
    assert len(safetensors.deserialize(file)) == 1


@pytest.mark.parametrize(
    ("at", "value", "match"),
    [
        (1, 16, r"a padding of \d+ bytes, expected less than 4096"),
        (1, 255, r"a padding of \d+ bytes, expected less than 4096"),
        (8, 1, "a padding that is not zero, expected zeros"),
    ],
)
def test_padding_is_checked(at: int, value: int, match: str) -> None:
    """The padding is less than a page, and zero."""
    blob = bytearray(
        runtime.serialize_module_to_bytes(runtime.SafetensorsModule(file_of(ONE, b"1234")))
    )
    start = blob.index(b"safetensors") + len("safetensors")
    assert blob[start] > 0
    blob[start + at] = value
    with pytest.raises(runtime.BlobFormatError, match=match):
        runtime.deserialize_module_from_bytes(blob)


def test_blob_cut_anywhere_is_refused() -> None:
    """A load raises our error."""
    blob = blob_of(runtime.SafetensorsModule(file_of(TWO, b"1234")))
    for nbytes in range(len(blob)):
        with pytest.raises(runtime.BlobFormatError):
            runtime.deserialize_module_from_bytes(blob[:nbytes])


def test_poked_blob_is_refused_or_a_tree() -> None:
    """Any byte of the payload changed: one of our errors, or weights that can be read."""
    blob = blob_of(runtime.SafetensorsModule(file_of(TWO, b"1234")))
    start = blob.index(b"safetensors")
    for at in range(start, len(blob)):
        for bit in range(8):
            poked = bytearray(blob)
            poked[at] ^= 1 << bit
            try:
                tensors = list(runtime.deserialize_module_from_bytes(poked).weights.values())
            except runtime.PackerError:
                continue
            assert all(len(tensor.raw) <= 4 for tensor in tensors)

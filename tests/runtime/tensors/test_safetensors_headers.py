"""safetensors: headers in unusual forms, and mutants of them, beside the reference package."""

from __future__ import annotations

import random

import pytest
import safetensors

import runtime

from ...support.weights_files import ONE, TWO, blob_of, file_of

# Accepted, with the end of the data.
FORMS = [
    (ONE, 4),
    ("{}", 0),
    (TWO.replace(":", " :\n ").replace(",", " , "), 4),
    (r'{"a\u0000b": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}}', 4),
    (r'{"\ud83d\ude00": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}}', 4),
    ('{"data_offsets": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}}', 4),
    (ONE.replace("data_offsets", "data_offs\\u0065ts"), 4),
    (ONE.replace("[0, 4]", '[0, 4], "more": [[[1]], "data_offsets"]'), 4),
    ('{"a":{"dtype":"F4","shape":[8],"data_offsets":[0,4]}}', 4),
    (
        '{"a": {"dtype": "U8", "shape": [0, 4], "data_offsets": [0, 0]}, '
        '"b": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}}',
        4,
    ),
]
REFUSED = {
    '{"__metadata__": {"\\udc00": "x"}, "a": 1}': r"a lone surrogate '\\udc00' in a name",
    '{"__metadata__": {"a": [1.5, {"b": null}]}}': r"__metadata__ {'a': \[1.5, {'b': None}\]}",
    ONE.replace('"U8"', "1e999"): "header is not JSON of this format: 1e999, expected a finite",
    ONE.replace("[4]", "[99999999999999999999, 0]"): "shape, expected a size that can be addressed",
    ONE.replace("[0, 4]", "[0, 4, 5]"): r"data_offsets, expected \[begin, end\]",
    ONE.replace("[0, 4]", "[0, 4.0]"): r"data_offsets, expected \[begin, end\], found \[0, 4.0\]",
    '{"a": ' + "[" * 64 + "]" * 64 + "}": "JSON of 65 levels, expected at most 64",
    '{"a": ' + "[" * 63 + "]" * 63 + "}": "tensor 'a': entry, expected an object, found",
    '{"é": 1, "ü"}': "header is not JSON: expecting ':' delimiter",
    "{" + "x" * 100: "0x9: header is not JSON: expecting property name",
}


def read(file: bytes) -> dict[str, tuple[list[int], bytes]]:
    """The shape and the bytes of each tensor."""
    weights = runtime.SafetensorsModule(file).weights
    return {name: (list(tensor.shape), bytes(tensor.raw)) for name, tensor in weights.items()}


def read_by_reference(file: bytes) -> dict[str, tuple[list[int], bytes]]:
    """The same of the reference package."""
    return {n: (t["shape"], bytes(t["data"])) for n, t in safetensors.deserialize(file)}


@pytest.mark.parametrize(("header", "nbytes"), FORMS)
def test_unusual_form_is_read_as_by_the_reference(header: str, nbytes: int) -> None:
    """Escapes, spaces, more members; and a blob continues after the last tensor."""
    file = file_of(header, b"1234"[:nbytes])
    assert read(file) == read_by_reference(file)
    modules = runtime.SafetensorsModule(file), runtime.SafetensorsModule(file_of(ONE, b"5678"))
    tree = runtime.deserialize_module_from_bytes(blob_of(*modules))
    assert bytes(tree.imported_modules[1].weights["a"].raw) == b"5678"


@pytest.mark.parametrize("header", REFUSED)
def test_wrong_value_is_shown(header: str) -> None:
    """The message has the value as Python shows it; the reference refuses most of them."""
    with pytest.raises(runtime.BlobFormatError, match=REFUSED[header]):
        runtime.SafetensorsModule(file_of(header, b"1234"))


def test_mutants_that_are_read_are_read_as_by_the_reference() -> None:
    """Changed and lost bytes of a header: refused, or the tensors of the reference."""
    rng, num_read = random.Random(17), 0
    for _ in range(10_000):
        header = bytearray(rng.choice(FORMS)[0].encode())
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(header) or 1)
            if rng.random() < 0.5 and header:
                header[at] = rng.choice(b'{}[]",:0123456789.e-\\utrfn \x80\xc3')
            else:
                del header[at : at + 1]
        file = file_of(bytes(header), b"1234")
        try:
            found = read(file)
        except runtime.BlobFormatError:
            continue
        assert found == read_by_reference(file), file
        num_read += 1
    assert num_read > 400

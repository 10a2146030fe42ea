"""Safetensors headers, read in C and in Python: the same tensors, the same errors."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from runtime.error import BlobFormatError
from runtime.reader import Reader
from runtime.tensors.safetensors_file import read_safetensors

from ...runtime.tensors.test_safetensors import ARRAYS
from ...runtime.tensors.test_safetensors_malformed import MALFORMED
from ...support.libdso import compile_program, run_program
from ...support.weights_files import ONE, TWO, file_of

DRIVER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/raised.h"
#include "blob/weights.h"

static void fail(void) {
  char *kind;
  const char *message;
  raised_take(0, &kind, &message);
  printf("%s: %s\n", kind, message);
  raised_free(kind);
}

static void print(const struct weights *weights, const struct weights_file *file) {
  for (size_t i = 0; i < weights->count; i++) {
    const struct weight *weight = &weights->items[i];
    const DLTensor *tensor = &weight->tensor;
    if (strlen(weight->name.data) == weight->name.size &&
        weights_find(weights, weight->name.data) != weight) abort();
    for (size_t j = 0; j < weight->name.size; j++)
      printf("%02x", (unsigned char)weight->name.data[j]);
    DLDataType dtype = tensor->dtype;
    printf(" %d,%d,%d %d (", dtype.code, dtype.bits, dtype.lanes, tensor->ndim);
    for (int32_t j = 0; j < tensor->ndim; j++) printf("%lld ", (long long)tensor->shape[j]);
    printf(") %lld %lld\n", (long long)((const char *)tensor->data - file->data.data),
           (long long)(weight->end - weight->begin));
  }
}

/* The files follow each other in one: u64 nbytes, bytes. */
int main(int argc, char **argv) {
  FILE *stream = fopen(argv[argc - 1], "rb");
  uint64_t nbytes;
  while (stream != NULL && fread(&nbytes, sizeof nbytes, 1, stream) == 1) {
    uint8_t *bytes = malloc(nbytes + 1);
    if (bytes == NULL || fread(bytes, 1, nbytes, stream) != nbytes) return 1;
    struct reader reader = {.bytes = bytes, .end = nbytes, .where = "safetensors"};
    struct weights_file file;
    struct weights *weights = NULL;
    if (weights_file_read(&reader, &file) != 0 ||
        (weights = weights_parse(&reader, &file)) == NULL) fail();
    else print(weights, &file);
    printf("---\n");
    free(weights);
    free(bytes);
  }
  return stream != NULL && fclose(stream) == 0 ? 0 : 2;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    """The driver, compiled."""
    return compile_program(DRIVER, tmp_path_factory.mktemp("weights") / "driver")


def in_c(program: Path, files: list[bytes], folder: Path) -> list[str]:
    """Return what the driver prints for each file."""
    path = folder / "files"
    path.write_bytes(b"".join(len(file).to_bytes(8, "little") + file for file in files))
    return run_program(program, path).split("---\n")[:-1]


def in_python(file: bytes) -> str:
    """The same of Python's reader."""
    try:
        read = read_safetensors(Reader(file, where="safetensors"))
        layouts = read.tensors._layouts
    except BlobFormatError as error:
        return f"BlobFormatError: {error.message}\n"
    return "".join(
        f"{name.encode().hex()} {','.join(map(str, dtype))} {len(shape)} "
        f"({''.join(f'{extent} ' for extent in shape)}) {begin} {end - begin}\n"
        for name, (begin, end, dtype, shape) in layouts.items()
    )


def assert_equal(program: Path, files: list[bytes], folder: Path) -> None:
    """Both read the files equally."""
    found = in_c(program, files, folder)
    expected = [in_python(file) for file in files]
    for file, one, other in zip(files, found, expected, strict=True):
        assert one == other, file[:2000]


def test_files_of_the_reference(program, tmp_path) -> None:
    """All its data types, names in Unicode, scalars and empty arrays."""
    many = {f"layer.{i}": np.zeros(i % 5, "f4") for i in range(2000)}
    files = [safetensors.numpy.save(arrays) for arrays in (ARRAYS, many, {})]
    assert_equal(program, files, tmp_path)
    assert in_python(files[0]).count("\n") == len(ARRAYS)


def test_malformed_files(program, tmp_path) -> None:
    """Each rule of the format: the same text, with the same offset."""
    files = [file_of(header, b"1234") for header, _ in MALFORMED.values() if header is not None]
    files += [b"\x63" + bytes(7) + b"1234", (100_000_001).to_bytes(8, "little") + bytes(9), b"123"]
    files += [file_of(b'{"\xff": 1}'), file_of(b'{"\xed\xa0\x80": 1}')]
    assert_equal(program, files, tmp_path)


ODD = [
    r'{"a\u0000b": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}}',
    r'{"\ud83d\ude00": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}}',
    r'{"a": {"dtype": "U8", "shape": [4], "data_offs\u0065ts": [0, 4]}}',
    r'{"a": {"dtype": "U8", "shape": [4], "data_offsets": [-0, 4]}}',
    r'{"__metadata__": {"a": "\udc00\ud800x"}}',
    r'{"__metadata__": {"\udc00": "x"}, "a": 1}',
    r'{"__metadata__": null}',
    r'{"__metadata__": {"a": [1.5, {"b": null, "c": [true, false, 1e22, -0.0, 1e-7]}]}}',
    r'{"a": {"dtype": "U8", "shape": {"b": 1, "c": [1, 2.50]}, "data_offsets": [0, 4]}}',
    r'{"a": {"dtype": 1e999, "shape": [4], "data_offsets": [0, 4]}}',
    r'{"a": {"dtype": "U8", "shape": [99999999999999999999, 0], "data_offsets": [0, 4]}}',
    r'{"it'
    "'s"
    r' \"q\"\n\t": {"dtype": "U8", "shape": [4], "data_offsets": [0, 3]}}',
    r'{"a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4, 5]}}',
    r'{"a": {"dtype": "U8", "shape": [0, 4], "data_offsets": [0, 0]}, "b": {"dtype": "F32", '
    r'"shape": [], "data_offsets": [0, 4]}}',
    '{"a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4], "more": [[[1]]]}}  ',
    '{"a":{"dtype":"F4","shape":[8],"data_offsets":[0,4]}}',
    '{"a": ' + "[" * 64 + "]" * 64 + "}",
    '{"a": ' + "[" * 63 + "]" * 63 + "}",
    '{"é": 1, "ü"}',
    "{" + "x" * 100,
]


def test_odd_headers(program, tmp_path) -> None:
    """Escapes, signs, nested values in messages, more members, depth."""
    assert_equal(program, [file_of(header, b"1234") for header in ODD], tmp_path)


def test_mutants(program, tmp_path) -> None:
    """Changed bytes of a header are read, or refused, equally."""
    files, rng = [], random.Random(17)
    for _ in range(4000):
        file = bytearray(file_of(rng.choice([ONE, TWO, *ODD[:-2]]), b"1234"))
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(8, len(file))
            if rng.random() < 0.5:
                file[at] = rng.choice(b'{}[]",:0123456789.e-\\utrfn \x80\xc3')
            else:
                del file[at]
                file[0:8] = (int.from_bytes(file[0:8], "little") - 1).to_bytes(8, "little")
        files.append(bytes(file))
    assert_equal(program, files, tmp_path)

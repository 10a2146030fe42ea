"""The payload of relax.VMExecutable: reader and writer (the fields are in vm.py)."""

from __future__ import annotations

from struct import Struct

from ..error import BlobFormatError
from ..tensors.ndarray import read_ndarray, write_ndarray
from ..tensors.tensor import Tensor
from .vm import (
    DATA_TYPE,
    FLOAT,
    INT,
    LEGACY_KEY,
    MAGIC,
    MAGIC_V1,
    SHAPE,
    STR,
    TAGS,
    TENSOR,
    VERSION,
    VMExecutable,
    VMFunction,
    VMLayout,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ..serial.stream import Reader, Writer
    from .vm import Constant

_F64 = Struct("<d")
_MAX_NDIM = 64
_UINT1, _BOOL = (1, 1, 1), (6, 8, 1)


def read(reader: Reader, type_key: str) -> VMExecutable:
    """Read a payload of any version, which the core accepted."""
    part = reader.read_sized() if (is_framed := _is_framed(reader)) else reader
    magic = part.read_u64()
    part.read_name()  # the version
    functions = part.read_vector(lambda: _read_function(part))
    scopes = dict(part.read_vector(lambda: _read_scope(part))) if magic == MAGIC else {}
    constants, tags = _read_constants(part, type_key, magic)
    offsets, words = _read_words(part), _read_words(part)
    layout = VMLayout(magic, tags, is_framed)
    executable = VMExecutable(functions, scopes, constants, offsets, words, layout)
    executable.type_key = type_key
    return executable


def _is_framed(reader: Reader) -> bool:
    """Return True if a length is before the magic: payloads had none around them."""
    if reader.dialect != "tvm":
        return False
    probe = reader.part(reader.offset, reader.offset + 8)
    return probe.read_u64() not in (MAGIC, MAGIC_V1)


def write(executable: VMExecutable, writer: Writer) -> None:
    """Write the payload as it was read; a length before the magic is of dialect tvm."""
    if executable.layout.is_framed and writer.dialect == "tvm":
        writer.write_sized(lambda inner: _write(executable, inner))
    else:
        _write(executable, writer)


def _write(executable: VMExecutable, writer: Writer) -> None:
    magic, tags, _ = executable.layout
    tag_of = {index: tag for tag, index in tags.items()}
    writer.write_u64(magic)
    writer.write_string(VERSION)
    writer.write_vector(executable.functions, lambda function: _write_function(writer, function))
    if magic == MAGIC:
        writer.write_u64(len(executable.memory_scopes))
        for index, scope in executable.memory_scopes.items():
            writer.write_i64(index)
            writer.write_string(scope)
    writer.write_vector(
        executable.bytecode_constants, lambda constant: _write_constant(writer, constant, tag_of)
    )
    for words in (executable.offsets, executable.words):
        writer.write_u64(len(words) // 8)
        writer.write_raw(words)


# ---- Each field: reader and writer


def _read_function(reader: Reader) -> VMFunction:
    kind, name = reader.read_i32(), reader.read_name()
    numbers = (reader.read_i64(), reader.read_i64(), reader.read_i64(), reader.read_i64())
    return VMFunction(kind, name, *numbers, tuple(reader.read_vector(reader.read_name)))


def _write_function(writer: Writer, function: VMFunction) -> None:
    writer.write_i32(function.kind)
    writer.write_string(function.name)
    for number in function[2:6]:
        writer.write_i64(number)
    writer.write_vector(function.param_names, writer.write_string)


def _read_scope(reader: Reader) -> tuple[int, str]:
    return reader.read_i64(), reader.read_name()


def _read_constants(
    reader: Reader, type_key: str, magic: int
) -> tuple[list[Constant], Mapping[int, int]]:
    """Read the constants with the first tags that fit all of them."""
    known = TAGS[:1] if magic == MAGIC else TAGS[2:] if type_key == LEGACY_KEY else TAGS
    start, refused = reader.offset, None
    for tags in known:
        reader.offset = start
        try:
            return reader.read_vector(lambda: _read_constant(reader, tags), 8), tags  # noqa: B023
        except BlobFormatError as error:
            refused = refused or error
    assert refused is not None
    raise refused


def _read_constant(reader: Reader, tags: Mapping[int, int]) -> Constant:
    start = reader.offset
    tag = reader.read_i32()
    readers: dict[int, Callable[[], Any]] = {
        INT: reader.read_i64,
        FLOAT: lambda: _F64.unpack(reader.read_raw(8, "a float"))[0],
        DATA_TYPE: reader.read_dtype,
        STR: reader.read_name,
        SHAPE: lambda: _read_shape(reader),
        TENSOR: lambda: read_ndarray(reader),
    }
    if tag not in tags:
        text = f"constant of type index {tag}, expected one of {sorted(tags)}"
        raise reader.error(text, start)
    return tags[tag], readers[tags[tag]]()


def _write_constant(writer: Writer, constant: Constant, tag_of: Mapping[int, int]) -> None:
    type_index, value = constant
    writers: dict[int, Callable[[Any], None]] = {
        INT: writer.write_i64,
        FLOAT: lambda number: writer.write_raw(_F64.pack(number)),
        DATA_TYPE: writer.write_dtype,
        STR: writer.write_string,
        SHAPE: lambda shape: writer.write_vector(shape, writer.write_i64),
        TENSOR: lambda array: write_ndarray(writer, array),
    }
    writer.write_i32(tag_of[type_index])
    writers[type_index](value)


def with_bool(constant: Constant) -> Constant:
    """Replace uint1, which has a byte for each element too, by bool."""
    type_index, value = constant
    if type_index == DATA_TYPE and value == _UINT1:
        return DATA_TYPE, _BOOL
    if type_index == TENSOR and value.dtype_code == _UINT1:
        return TENSOR, Tensor(value.raw, value.shape, _BOOL)
    return constant


def _read_shape(reader: Reader) -> tuple[int, ...]:
    start = reader.offset
    shape = tuple(reader.read_vector(reader.read_i64, 8))
    if len(shape) > _MAX_NDIM or any(extent < 0 for extent in shape):
        text = f"shape {shape[:8]}, expected at most {_MAX_NDIM} extents of at least 0"
        raise reader.error(text, start)
    return shape


def _read_words(reader: Reader) -> memoryview:
    return reader.read_raw(8 * reader.read_u64())

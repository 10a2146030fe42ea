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
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from ..serial.stream import Reader, Writer
    from .vm import Constant

_F64 = Struct("<d")
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
    writer.write_u64(magic)
    writer.write_string(VERSION)
    writer.write_vector(executable.functions, lambda function: _write_function(writer, function))
    if magic == MAGIC:
        writer.write_u64(len(executable.memory_scopes))
        for index, scope in executable.memory_scopes.items():
            writer.write_i64(index)
            writer.write_string(scope)
    _write_constants(writer, executable.bytecode_constants, tags)
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
    """Read the constants with the first tags that fit all of them, as the core did."""
    *others, last = TAGS[:1] if magic == MAGIC else TAGS[2:] if type_key == LEGACY_KEY else TAGS
    start = reader.offset
    for tags in others:
        try:
            return _read_with(reader, tags), tags
        except (BlobFormatError, KeyError):
            reader.offset = start
    return _read_with(reader, last), last


def _read_with(reader: Reader, tags: Mapping[int, int]) -> list[Constant]:
    readers: dict[int, Callable[[], Any]] = {
        INT: reader.read_i64,
        FLOAT: lambda: _F64.unpack(reader.read_raw(8, "a float"))[0],
        DATA_TYPE: reader.read_dtype,
        STR: reader.read_name,
        SHAPE: lambda: tuple(reader.read_vector(reader.read_i64, 8)),
        TENSOR: lambda: read_ndarray(reader),
    }

    def read_constant() -> Constant:
        type_index = tags[reader.read_i32()]
        return type_index, readers[type_index]()

    return reader.read_vector(read_constant, 8)


def _write_constants(
    writer: Writer, constants: Sequence[Constant], tags: Mapping[int, int]
) -> None:
    tag_of = {index: tag for tag, index in tags.items()}
    writers: dict[int, Callable[[Any], None]] = {
        INT: writer.write_i64,
        FLOAT: lambda number: writer.write_raw(_F64.pack(number)),
        DATA_TYPE: writer.write_dtype,
        STR: writer.write_string,
        SHAPE: lambda shape: writer.write_vector(shape, writer.write_i64),
        TENSOR: lambda array: write_ndarray(writer, array),
    }
    writer.write_u64(len(constants))
    for type_index, value in constants:
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


def _read_words(reader: Reader) -> memoryview:
    return reader.read_raw(8 * reader.read_u64())

"""Relax's bytecode of each version of TVM: the payload, read and written."""

from __future__ import annotations

import numpy as np
import pytest

import runtime
from runtime.blob import dump
from runtime.modules.vm import VMExecutable
from runtime.registry import find_loader
from runtime.serial.serializer import serialize
from runtime.serial.stream import Reader, Writer, read_chunk

from ...support.payloads import described
from ...support.vm_assembler import *
from ...support.vm_programs import Operators
from ..vm.test_vm_bytecode import make_program

KEY, OLD_KEY = "relax.VMExecutable", "relax.Executable"
UINT1 = (1, 1, 1)

# By version of TVM: the type key, the tags of constants, and whether a length is before the magic.
WRITTEN = {
    "0.19": (OLD_KEY, TAGS_0_19, True),
    "0.20": (KEY, TAGS_0_19, True),
    "0.21": (KEY, TAGS_0_21, True),
    "0.22": (KEY, TAGS_0_22, False),
}


def written(program: Program, version: str) -> tuple[str, bytes]:
    """The type key and the payload of a program."""
    if version == "0.23":
        return KEY, program.payload()
    key, tags, is_framed = WRITTEN[version]
    return key, program.version_one(tags, is_framed=is_framed).payload()


def read(program: Program, version: str) -> VMExecutable:
    """The module."""
    key, payload = written(program, version)
    return find_loader(key)(Reader(payload))


@pytest.mark.parametrize("version", WRITTEN)
def test_a_payload_is_written_again_in_a_blob(version: str) -> None:
    """Its type key, tags and length are kept."""
    key, payload = written(make_program(), version)
    module = find_loader(key)(Reader(payload))
    blob = b"".join(map(read_chunk, dump(serialize(module, export_dso=False))))
    assert key.encode() + payload in blob
    copy = runtime.deserialize_module_from_bytes(blob)
    assert (copy.type_key, copy.get_source()) == (key, read(make_program(), version).get_source())


@pytest.mark.parametrize("version", WRITTEN)
def test_constants_and_code_are_those_of_version_two(version: str) -> None:
    """Only the bytes differ."""
    new = find_loader(KEY)(Reader(make_program().payload()))
    old = read(make_program(), version)
    kinds = [type_index for type_index, _ in new.bytecode_constants]
    assert [type_index for type_index, _ in old.bytecode_constants] == kinds
    values = [str(value) for _, value in new.bytecode_constants]
    assert [str(value) for _, value in old.bytecode_constants] == values
    assert (old.functions, old.get_source()) == (new.functions, new.get_source())


@pytest.mark.parametrize("version", WRITTEN)
def test_a_model_runs(version: str) -> None:
    """With the result of version 2."""
    model = read(doubling(), version)
    model.import_module(Operators(twice=lambda x, y, _n: np.multiply(x.numpy(), 2, y.numpy())))
    assert model["main"](np.arange(4, dtype="float32")).numpy().tolist() == [0, 2, 4, 6]


def masking() -> Program:
    """A constant of nine bools, which old versions write as uint1 with a byte for each element."""
    mask = np.array([1, 0, 0, 1, 1, 0, 1, 0, 1], "bool")
    code = [
        call(1, 1, reg(0), imm(1), const(0), const(2)),
        call(1, 2, reg(0), const(1)),
        ret(1),
    ]
    functions = [
        Code("main", ["x"], code, 2),
        packed("vm.builtin.check_tensor_info"),
        packed("both"),
    ]
    return Program(functions, [(DATA_TYPE, UINT1), (TENSOR, mask), (65, "main")])


def as_uint1(payload: bytes) -> bytes:
    """The payload of `masking` with the data type of the array as old versions have it."""
    assert payload.count(b"\x01\0\0\0\x06\x08\x01\0") == 1
    return payload.replace(b"\x01\0\0\0\x06\x08\x01\0", b"\x01\0\0\0\x01\x01\x01\0")


@pytest.mark.parametrize("version", WRITTEN)
def test_bool_of_old_versions_is_bool(version: str) -> None:
    """As a data type and as a constant; the payload is still written unchanged."""
    key, payload = written(masking(), version)
    payload = as_uint1(payload)
    model = find_loader(key)(Reader(payload))
    model.import_module(
        Operators(both=lambda x, y: (str(y.dtype), tuple((x.numpy() & y.numpy()).tolist())))
    )
    found = model["main"](np.array([1] * 5 + [0] * 4, "bool"))
    assert found == ("bool", (True, False, False, True, True, False, False, False, False))
    assert [str(array.dtype) for array in model.own_weights.values()] == ["bool"]
    writer = Writer()
    model.save_to_binary(writer)
    assert b"".join(map(read_chunk, writer.finish())) == payload
    described(key, [payload])


@pytest.mark.parametrize("version", [*WRITTEN, "0.23"])
def test_a_payload_is_read_and_its_prefixes_are_refused(version: str) -> None:
    """A payload is read, and refused wherever it is cut."""
    key, payload = written(make_program(), version)
    shown = f"{key} {len(payload)}|main|helper|constant_0=2,32,1,2,3"
    assert described(key, [payload]) == [shown]
    said = described(key, [payload[:size] for size in range(len(payload))])
    assert all(text.startswith("BlobFormatError: payload at 0x") for text in said)


def test_tags_of_no_version_are_refused_as_those_of_the_newest() -> None:
    """In version 1 the tags are tried; the error names the newest."""
    program = make_program()
    program.constants.append((64, 0))
    payload = program.version_one({}).payload()
    text = "constant of type index 64, expected one of [1, 3, 5, 65, 69, 70]"
    assert all(text in said for said in described(KEY, [payload, payload]))


def test_a_length_before_the_magic_is_exact() -> None:
    """Bytes after the code are refused."""
    _, payload = written(make_program(), "0.19")
    longer = (len(payload) - 8 + 3).to_bytes(8, "little") + payload[8:] + b"abc"
    said = described(OLD_KEY, [longer])
    assert said[0].endswith("3 bytes after the code, expected none")
    assert "magic 0x" in described(OLD_KEY, [payload], dialect="tvm-ffi")[0]

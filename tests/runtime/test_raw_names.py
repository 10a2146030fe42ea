"""Names that are not UTF-8: TVM permits any bytes, which are kept and shown escaped."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import packer
import runtime
from packer.cli import main
from runtime.blob import dump
from runtime.modules.vm import load
from runtime.serial.serializer import serialize
from runtime.serial.stream import Reader, Writer, read_chunk

from ..support.dso_driver import shown_by_c, shown_by_python
from ..support.payloads import described
from ..support.vm_assembler import STR, Code, Program, call, const, packed, ret
from ..support.vm_programs import Operators

# Latin-1, a surrogate in UTF-8, a character that is cut, an overlong form, and a valid character.
RAW = b"caf\xe9 \xed\xa0\x80 \xe2\x82 \xc0\xaf \xc3\xa9"
NAME = RAW.decode("utf-8", "surrogateescape")
SHOWN = r"caf\udce9 \udced\udca0\udc80 \udce2\udc82 \udcc0\udcaf é"


def program() -> Program:
    """A function with such a name, a parameter, a string, and a host function."""
    code = [call(1, 1, const(0)), ret(1)]
    return Program([Code(NAME, [NAME + "x"], code, 2), packed(NAME + "host")], [(STR, NAME)])


def trees() -> dict[str, runtime.Module]:
    """One module of each type that has names."""
    array = {NAME: runtime.tensor(np.arange(3.0))}
    info = runtime.FunctionInfo(NAME, ["handle"], ["blockIdx.x"])
    return {
        "opencl": runtime.DeviceModule("opencl", "kernel", "cl", [info]),
        "metal": runtime.DeviceModule("metal", {NAME: NAME}, "metal", [info]),
        "const_loader": runtime.ConstLoaderModule(array, {NAME: [NAME]}),
        "GraphExecutorFactory": runtime.GraphExecutorFactory("{}", array, NAME),
        "dnnl_json": runtime.JSONRuntimeModule("dnnl_json", NAME, "{}", [NAME]),
        "c": runtime.CarriedSourceModule(f"/* {NAME} */", "c", [NAME], [NAME]),
        "static_library": runtime.CarriedStaticLibraryModule(b"!<arch>\n", [NAME]),
        "relax.VMExecutable": load(Reader(program().payload())),
    }


TREES = trees()


@pytest.mark.parametrize("dialect", ["tvm", "tvm-ffi"])
@pytest.mark.parametrize("key", TREES)
def test_names_are_read_and_written_byte_for_byte(key: str, dialect: str) -> None:
    """In both dialects; the names are the same text after it."""
    writer = Writer(dialect=dialect)
    TREES[key].save_to_binary(writer)
    payload = b"".join(map(read_chunk, writer.finish()))
    assert RAW in payload
    blob = b"".join(map(read_chunk, dump(serialize(TREES[key], export_dso=False, dialect=dialect))))
    module = packer_reads(blob, dialect)
    again = Writer(dialect=dialect)
    module.save_to_binary(again)
    assert b"".join(map(read_chunk, again.finish())) == payload
    assert module.function_names() == TREES[key].function_names()


def packer_reads(blob: bytes, dialect: str) -> runtime.Module:
    """The root of a blob."""
    from runtime.blob import build_tree, parse

    return build_tree(parse(blob, dialect))


@pytest.mark.parametrize("key", ["opencl", "const_loader", "relax.VMExecutable"])
def test_a_program_without_python_reads_them(key: str, tmp_path: Path) -> None:
    """Names, signatures and weights are those that Python shows."""
    path = packer.export_library(TREES[key], tmp_path / "m.so")
    text = shown_by_python(path)
    assert NAME in text
    assert shown_by_c(path) == text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def test_an_error_shows_the_name_escaped() -> None:
    """As Python's repr does."""
    twice = program()
    twice.functions[1].name = NAME
    said = described("relax.VMExecutable", [twice.payload()])
    assert f"function name '{SHOWN}', expected a unique one" in said[0]


def test_a_function_with_such_a_name_runs() -> None:
    """Its string, and a function of its imports with such a name."""
    model = load(Reader(program().payload()))
    model.import_module(Operators(**{NAME + "host": lambda text: len(text)}))
    with pytest.raises(ValueError, match="expected UTF-8"):
        model[NAME](0)  # a str of Python is UTF-8
    constant = Program([Code(NAME, [], [call(0, 1), ret(0)], 1), packed(NAME)])
    constant.functions[1].name += "y"
    model = load(Reader(constant.payload()))
    model.import_module(Operators(**{NAME + "y": lambda: 7}))
    assert model[NAME]() == 7


def test_the_command_line_shows_them_escaped(tmp_path: Path, capsys) -> None:
    """Inspect as text, JSON and HTML, check, extract."""
    path = tmp_path / "model.so"
    packer.export_library(load(Reader(program().payload())), path)
    assert main(["inspect", str(path)]) == 0
    assert SHOWN in capsys.readouterr().out
    assert main(["inspect", "--json", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)
    assert main(["inspect", "--html", str(tmp_path / "page.html"), str(path)]) == 0
    assert "udce9" in (tmp_path / "page.html").read_text()
    assert main(["check", str(path)]) == 0
    assert main(["extract", str(path), "-o", str(tmp_path / "parts")]) == 0
    assert RAW in (tmp_path / "parts" / "relax_vmexecutable.bin").read_bytes()


def test_modules_with_such_names_are_extracted(tmp_path: Path) -> None:
    """As bytes where packer.toml could not have the name; packed again byte for byte."""
    root = runtime.MetadataModule()
    for key in ("opencl", "const_loader", "dnnl_json"):
        root.import_module(TREES[key])
    packer.export_library(root, tmp_path / "model.so")
    assert main(["extract", str(tmp_path / "model.so"), "-o", str(tmp_path / "parts")]) == 0
    toml = str(tmp_path / "parts" / "packer.toml")
    assert main(["export", str(tmp_path / "again.so"), "--project", toml]) == 0
    for name in ("model.so", "again.so"):
        assert (tmp_path / name).read_bytes().count(RAW) == 8

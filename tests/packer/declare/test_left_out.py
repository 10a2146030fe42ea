"""The record of functions that an export left out: what it lists, its bounds, and its absence."""

from __future__ import annotations

from pathlib import Path

import packer
import runtime
from packer.declare.left_out import dump_left_out
from packer.inspect.meaning import meaning_of
from runtime.abi import CHECKSUMS, LEFT_OUT

from ...support.compile import compile_c


def record(path: Path) -> list[str]:
    """The lines of the record of a library."""
    data = runtime.load(path)._library.data(LEFT_OUT)
    assert data is not None and data[-1] == 0
    return str(data[:-1], "utf-8").splitlines()


def source(left_out: dict[str, str], types: dict[str, str] | None = None) -> packer.CSourceModule:
    """A module that left functions out."""
    module = packer.CSourceModule("int x;")
    module.left_out, module.left_out_types = left_out, types or {}
    return module


def test_each_function_of_a_source_has_its_declaration_and_the_reason(tmp_path) -> None:
    """Also one whose definition is of the old style; exported functions are not listed."""
    code = "int add(int a) { return a; }\nint say(const char *f, ...) { return 0; }\n"
    code += "typedef __int128 big;\nbig half(big x) { return x / 2; }\n"
    code += "int old(a) int a; { return a; }\n"
    module = packer.CSourceModule(code, functions="auto", options=["-std=gnu11"])
    path = packer.export_library(module, tmp_path / "a.so")
    first, *lines = record(path)
    assert first == "packer-left-out 1"
    starts = [
        "function say int say(const char *f, ...): parameter 2 'arg1': a variable number of",
        "function half big half(big x): parameter 1 'x': ",
        "function old int old(a) int a: an old-style definition, expected types inside",
    ]
    assert [line[: len(start)] for line, start in zip(lines, starts, strict=True)] == starts
    for line, reason in zip(lines, module.left_out.values(), strict=True):
        assert line.endswith(f": {reason}")


def test_checksums_list_the_record(tmp_path) -> None:
    """As the other texts of the project."""
    module = packer.CSourceModule("int f(int a, ...) { return a; }", functions="auto")
    library = runtime.load(packer.export_library(module, tmp_path / "a.so"))._library
    assert f" {LEFT_OUT}\n".encode() in bytes(library.data(CHECKSUMS) or b"")


def test_functions_of_a_header_are_listed_with_those_that_no_library_defines(tmp_path) -> None:
    """The second kind is found at the link."""
    compile_c("int there(int a) { return a + 1; }", tmp_path / "libhalf.so")
    text = "int there(int a);\nint absent(int a);\nint many(int a, ...);\n"
    (tmp_path / "half.h").write_text(text)
    module = packer.from_header(tmp_path / "half.h", libraries=["half"])
    options = [f"-L{tmp_path}", f"-Wl,-rpath,{tmp_path}"]
    path = packer.export_library(module, tmp_path / "a.so", options=options)
    _, many, absent = record(path)
    assert many.startswith("function many int many(int a, ...): parameter 2 ")
    reason = "no library that is linked defines it"
    assert absent == f"function absent int absent(int a): {reason}"


def test_library_without_such_functions_has_the_same_bytes(tmp_path) -> None:
    """With "auto" as with declarations; there is no such symbol."""
    code = "int add(int a) { return a; }\n"
    found = packer.CSourceModule(code, functions="auto")
    given = packer.CSourceModule(code, functions={"add": "int(int a)"})
    one, two = (
        packer.export_library(module, tmp_path / name)
        for module, name in ((found, "one.so"), (given, "two.so"))
    )
    assert one.read_bytes() == two.read_bytes()
    assert LEFT_OUT.encode() not in one.read_bytes()
    assert dump_left_out([found, given], {"add"}) == ""


def test_further_functions_are_counted() -> None:
    """256 are listed; or as many as 64 KiB hold."""
    many = dump_left_out([source({f"f{i}": "why" for i in range(300)})], ())
    lines = many.splitlines()
    assert (len(lines), lines[256], lines[-1]) == (258, "function f255 why", "more 44")
    long = dump_left_out([source({f"f{i}": "é" * 2000 for i in range(40)})], ())
    assert len(long.encode()) < 1 << 16
    lines = long.splitlines()
    assert 10 < len(lines) < 40 and lines[-1] == f"more {40 - (len(lines) - 2)}"


def test_text_is_one_line_without_control_characters() -> None:
    """Of a compiler, or with half a surrogate pair; a long one is cut."""
    reasons = {"f": "a\n  b\x1b[31m \udc80", "g": "y" * 9999}
    text = dump_left_out([source(reasons, {"f": "int f(int\n a)"})], ())
    _, first, second = text.splitlines()
    assert first == "function f int f(int a): a b?[31m ?"
    assert second == f"function g {'y' * 2048}..."


def test_function_that_another_module_defines_is_not_listed() -> None:
    """The library has it."""
    assert dump_left_out([source({"f": "why"})], {"f"}) == ""


def test_record_survives_a_later_link(tmp_path) -> None:
    """A tar of objects is linked later; the result has the same record."""
    module = packer.CSourceModule(
        "int add(int a) { return a; }\nint f(int a, ...) { return a; }", functions="auto"
    )
    whole = packer.export_library(module, tmp_path / "a.so")
    deferred = packer.export_library(module, tmp_path / "a.tar")
    assert record(packer.link_library([deferred], tmp_path / "b.so")) == record(whole)


def test_symbol_has_a_meaning() -> None:
    """As `packer inspect` prints it, also of a system library."""
    assert meaning_of(LEFT_OUT).startswith("the functions that the export left out")
    assert meaning_of(f"net1_{LEFT_OUT}").endswith("of system library 'net1_'")

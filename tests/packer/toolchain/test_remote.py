"""Exports whose compilers run in an executor: the same bytes, and errors that name the source."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import packer
import runtime
from packer.toolchain.remote import Unit, compile_unit, identity_of
from runtime.error import ExportError, ToolchainError

from ...support import needs

SOURCE = """
#include <assert.h>
#include <string.h>
#include "three.h"
const char *place(void) { return __FILE__ __DATE__; }
int add(int a, int b) { assert(a != 77); return a + b + three() + (int)strlen(place()); }
"""
FUNCTIONS = {"add": "int(int a, int b)", "place": "const char *()"}
SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture(autouse=True)
def without_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects are compiled."""
    monkeypatch.setenv("PACKER_CACHE", "off")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A source, and its header."""
    (tmp_path / "three.h").write_text("static inline int three(void) { return 3; }\n")
    (tmp_path / "add.c").write_text(SOURCE)
    return tmp_path / "add.c"


def export(source: Path, executor: Any, options: tuple[str, ...] = ()) -> bytes:
    """The bytes of the library."""
    module = packer.CSourceModule(source, functions=FUNCTIONS, options=options)
    path = packer.export_library(
        module, source.with_name("out.so"), build=packer.Build(executor=executor)
    )
    return path.read_bytes()


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize(
    "options", [(), ("-O3", "-Wall", "-std=gnu11"), ("-include", "stdio.h", "-DX=1"), ("-g",)]
)
def test_bytes_are_those_of_an_export_without(
    source: Path, monkeypatch: pytest.MonkeyPatch, compiler: str, options: tuple[str, ...]
) -> None:
    """For each compiler, with macros, headers and debug information."""
    monkeypatch.setenv("CC", needs.program(compiler))
    alone = export(source, None, options)
    with ThreadPoolExecutor(2) as executor:
        assert export(source, executor, options) == alone


def test_processes_compile(source: Path) -> None:
    """They are given the text, and need no file of the project."""
    alone = export(source, None)
    with ProcessPoolExecutor(2, mp_context=SPAWN) as executor:
        assert export(source, executor) == alone
        assert runtime.load(source.with_name("out.so"))["add"](1, 2) > 5


def test_cpp_is_compiled_too(tmp_path: Path) -> None:
    """As C++."""
    code = '#include <vector>\nextern "C" int last(int n) { return std::vector<int>(3, n).at(2); }'
    source = tmp_path / "last.cc"
    source.write_text(code)
    module = packer.CSourceModule(source, functions={"last": "int(int)"}, fmt="cc")
    with ThreadPoolExecutor(1) as executor:
        path = packer.export_library(
            module, tmp_path / "out.so", build=packer.Build(executor=executor)
        )
    assert runtime.load(path)["last"](7) == 7


class _Recorder(ThreadPoolExecutor):
    """Keeps its units."""

    def __init__(self) -> None:
        super().__init__(1)
        self.units: list[Unit] = []

    def submit(self, function: Any, /, *args: Any, **options: Any) -> Future[Any]:
        """Keep the unit."""
        self.units += args
        return super().submit(function, *args, **options)


def test_a_source_for_this_processor_or_with_debug_information_stays_here(source: Path) -> None:
    """A worker may have another processor, and other folders."""
    with _Recorder() as recorder:
        for options in (("-march=native",), ("-g",), ("-mtune=native",)):
            export(source, recorder, options)
        assert [unit.name for unit in recorder.units if unit.name == "add.c"] == []
        export(source, recorder)
        assert [unit.name for unit in recorder.units if unit.name.endswith("add.c")]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ('#include "none.h"\n', "none.h"),
        ("int add(int a, int b) { return a + c; }", "undeclared"),
    ],
)
def test_a_failure_names_the_source(source: Path, code: str, text: str) -> None:
    """In the preprocessor, which runs here, and in the worker."""
    source.write_text(code)
    with (
        ThreadPoolExecutor(2) as executor,
        pytest.raises(ToolchainError, match=rf"add\.c.*{text}"),
    ):
        export(source, executor)
    assert not source.with_name("out.so").exists()


def test_a_worker_with_another_compiler_is_refused(source: Path) -> None:
    """By the version, and by the bytes of its programs."""
    compiler = packer.toolchain.compiler.find_compiler("c")
    unit = Unit("add.c", compiler, "gcc 1.0", ("-O2",), "cpp-output", b"int x;")
    with pytest.raises(ToolchainError, match=r"add\.c: the worker on .* has .*, expected gcc"):
        compile_unit(unit._replace(compiler=("/none/gcc",)))
    with pytest.raises(ToolchainError, match="has none of this name"):
        compile_unit(unit._replace(compiler=("/none/no-such-compiler",)))
    assert compile_unit(unit._replace(identity=identity_of(compiler))).data[:4] == b"\x7fELF"


def end_process(_unit: Unit) -> None:
    """As a worker that is killed."""
    os._exit(9)


class _Killed(ProcessPoolExecutor):
    """Its workers die."""

    def submit(self, _function: Any, /, *args: Any, **options: Any) -> Future[Any]:
        """Call what kills the worker."""
        return super().submit(end_process, *args, **options)


def test_a_worker_that_dies_is_an_error_of_its_source(source: Path) -> None:
    """The output is as it was."""
    source.with_name("out.so").write_text("old")
    with (
        _Killed(1, mp_context=SPAWN) as executor,
        pytest.raises(ToolchainError, match=r"\.c: the executor failed: BrokenProcessPool"),
    ):
        export(source, executor)
    assert source.with_name("out.so").read_text() == "old"


def test_a_source_whose_assembly_reads_a_file_stays_here(tmp_path: Path) -> None:
    """The worker does not have the file."""
    data = tmp_path / "data.bin"
    data.write_bytes(b"*")
    code = rf"""
    __asm__(".section .rodata\n.globl data\ndata: .incbin \"{data}\"\n.text");
    extern const char data __attribute__((visibility("hidden")));
    int first(void) {{ return data; }}
    """
    module = packer.CSourceModule(code, functions={"first": "int()"})
    with _Recorder() as recorder:
        path = packer.export_library(
            module, tmp_path / "out.so", build=packer.Build(executor=recorder)
        )
        assert not any(b".incbin" in unit.text for unit in recorder.units)
    assert runtime.load(path)["first"]() == ord("*")


def test_what_is_no_executor_is_refused(source: Path) -> None:
    """Before anything is compiled."""
    with pytest.raises(ExportError, match=r"expected a concurrent\.futures\.Executor"):
        export(source, 4)


def test_executors_of_the_base_class_are_accepted(source: Path) -> None:
    """One that calls at once."""

    class Direct(Executor):
        def submit(self, function: Any, /, *args: Any, **options: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_result(function(*args, **options))
            return future

    assert export(source, Direct()) == export(source, None)

"""cross_compiler: of a program, of a function, and its options."""

from __future__ import annotations

import ctypes

import pytest

from packer.toolchain.cross_linker import cross_compiler

from ..compilers import GCC, program, write

pytestmark = pytest.mark.usefixtures("no_compiler_variables")


def test_cross_compiler_of_a_program(tmp_path, add_c):
    """Another compiler, with separate options and files, and its triple."""
    compiler = program(
        tmp_path / "arm-cc", f'test "$*" = -dumpmachine && echo arm-x-y || exec {GCC} "$@"\n'
    )
    extra = write(tmp_path / "extra.c", "int extra(void) { return EXTRA; }\n")
    options = ["-DEXTRA=7"]
    fcompile = cross_compiler(compiler, options=options, add_files=[str(extra)])
    for name in ("a.so", "b.so"):
        fcompile(tmp_path / name, [str(add_c)], options=["-DX"])
        assert ctypes.CDLL(str(tmp_path / name)).extra() == 7
    assert options == ["-DEXTRA=7"]
    assert fcompile.output_format == "so"
    assert fcompile.get_target_triple() == "arm-x-y"


def test_cross_compiler_of_a_function():
    """A function is called with the options and files appended; its attributes carry over."""
    calls = []

    def compile_func(output, objects, options):
        calls.append((output, objects, options))

    plain = cross_compiler(compile_func)
    plain("out", "a.o")
    assert plain.output_format == "so"
    assert plain.get_target_triple() is None
    compile_func.output_format = "wasm"
    compile_func.object_format = "bc"
    compile_func.get_target_triple = lambda: "wasm32-wasi"
    fcompile = cross_compiler(compile_func, ["-a"], add_files=["b.o"])
    fcompile("out", ["a.o"], options=["-b"])
    assert calls == [("out", ["a.o"], []), ("out", ["a.o", "b.o"], ["-a", "-b"])]
    assert (fcompile.output_format, fcompile.object_format) == ("wasm", "bc")
    assert fcompile.get_target_triple() == "wasm32-wasi"


def test_cross_compiler_uses_the_given_options():
    """Format and triple given outright win."""
    fcompile = cross_compiler("gcc", output_format="dylib", get_target_triple=lambda: "a-b")
    assert fcompile.output_format == "dylib"
    assert fcompile.get_target_triple() == "a-b"

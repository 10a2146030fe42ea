"""Functions that a header declares, and that no library defines."""

from __future__ import annotations

from pathlib import Path

import pytest

import packer
import runtime

from ...support import needs
from ...support.compile import compile_c


@pytest.fixture
def header(tmp_path: Path) -> Path:
    """A header of two functions, beside a library with one of them."""
    compile_c("int there(int a) { return a + 1; }", tmp_path / "libhalf.so")
    (tmp_path / "half.h").write_text("int there(int a);\nint absent(int a);\n")
    return tmp_path / "half.h"


def options(header: Path) -> list[str]:
    """Options by which the library is found when it is linked, and when it is loaded."""
    return [f"-L{header.parent}", f"-Wl,-rpath,{header.parent}"]


@pytest.mark.parametrize("linker", ["bfd", "gold", "lld", "mold"])
def test_the_rest_is_exported(header: Path, tmp_path: Path, linker: str) -> None:
    """The module says what was left out, and why; also macros that call what is missing."""
    needs.linker(linker)
    with header.open("a") as file:
        file.write(
            "int twice(int a);\n#define twice(a) absent(absent(a))\n"
            "static inline int inside(int a) { return absent(a) + there(a); }\n"
        )
    module = packer.from_header(header, libraries=["half"])
    words = [*options(header), f"-fuse-ld={linker}"]
    loaded = runtime.load(packer.export_library(module, tmp_path / "out.so", options=words))
    assert loaded.function_names() == ["there"]
    assert loaded["there"](1) == 2
    reason = "no library that is linked defines"
    called = f"{reason} absent, which it calls"
    assert module.left_out == {"absent": f"{reason} it", "twice": called, "inside": called}


def test_a_function_that_was_named_is_not_left_out(header: Path, tmp_path: Path) -> None:
    """The error of the linker is reported."""
    module = packer.from_header(header, libraries=["half"], functions={"absent": "int(int a)"})
    with pytest.raises(runtime.ToolchainError, match="absent"):
        packer.export_library(module, tmp_path / "out.so", options=options(header))


def test_without_the_library_nothing_is_left_out(header: Path, tmp_path: Path) -> None:
    """An export of no function at all would not be what was meant."""
    with pytest.raises(runtime.ToolchainError, match="there|absent"):
        packer.export_library(packer.from_header(header), tmp_path / "out.so")


def test_the_wrappers_are_compiled_once(
    header: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link of the calls alone finds what no library defines."""
    log, compiler = tmp_path / "log", tmp_path / "gcc"
    compiler.write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec gcc "$@"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    module = packer.from_header(header, libraries=["half"])
    packer.export_library(module, tmp_path / "out.so", options=options(header))
    commands = log.read_text().splitlines()
    assert sum(" -c " in c and "glue.c" in c for c in commands) == 1
    assert sum(" -c " in c and "lib0.c" in c for c in commands) == 2

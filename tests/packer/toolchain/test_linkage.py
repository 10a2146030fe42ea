"""A missing extern "C" is named in the error, and taking the advice works."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import packer
import runtime

from ...support import needs

ADVICE = 'add is defined with C++ linkage in a.cc: put extern "C" before its definition'
# The same types as declared: a compile error. Other types: an overload, which the link lacks.
SAME, OTHER = "long add(long a, long b)", "int add(int a, int b)"
BODY = " { return a + b; }\n"
FUNCTIONS = {"add": "long(long a, long b)"}


def failure(module: runtime.Module, folder: Path) -> str:
    """Return the message of an export that fails."""
    with pytest.raises(runtime.PackerError) as caught:
        packer.export_library(module, folder / "a.so")
    return str(caught.value)


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("head", [SAME, OTHER], ids=["same", "other"])
def test_a_missing_extern_c_is_named(tmp_path, monkeypatch, compiler, head) -> None:
    """The compiler reports equal types, the linker different ones."""
    needs.program(compiler)
    monkeypatch.setenv("CXX", compiler)
    source = tmp_path / "a.cc"
    source.write_text(head + BODY)
    assert failure(packer.CSourceModule(source, functions=FUNCTIONS), tmp_path).endswith(ADVICE)


def test_the_advice_works(tmp_path) -> None:
    """The function of the message, with what the message says before it."""
    needs.program("g++")
    source = tmp_path / "a.cc"
    source.write_text(SAME + BODY)
    message = failure(packer.CSourceModule(source, functions=FUNCTIONS), tmp_path)
    prefix = re.search(r"put (.*) before its definition", message)[1]
    source.write_text(f"{prefix} {SAME}{BODY}")
    host = packer.CSourceModule(source, functions=FUNCTIONS)
    assert runtime.load(packer.export_library(host, tmp_path / "a.so"))["add"](40, 2) == 42


def test_a_source_without_a_file_has_no_name(tmp_path) -> None:
    """The name under which it is compiled is not shown."""
    message = failure(packer.CSourceModule(SAME + BODY, fmt="cc", functions=FUNCTIONS), tmp_path)
    assert message.endswith('add is defined with C++ linkage: put extern "C" before its definition')


def test_a_function_in_a_scope_is_named_with_it(tmp_path) -> None:
    """A member of a namespace or class needs a function that calls it."""
    inner = "namespace outer { namespace inner { " + SAME + BODY + "} }\n"
    host = packer.CSourceModule(inner, fmt="cc", functions=FUNCTIONS)
    scoped = "outer::inner::add"
    advice = f'define a function add with extern "C" before it, which calls {scoped}'
    assert failure(host, tmp_path).endswith(f"{scoped} is defined with C++ linkage: {advice}")
    host = packer.CSourceModule(
        f'{inner}extern "C" {SAME} {{ return {scoped}(a, b); }}', fmt="cc", functions=FUNCTIONS
    )
    assert runtime.load(packer.export_library(host, tmp_path / "a.so"))["add"](40, 2) == 42


def test_an_object_of_cpp_is_named(tmp_path) -> None:
    """Objects are read, since no compiler sees their declarations."""
    source = tmp_path / "a.cc"
    source.write_text(SAME + BODY)
    packer.create_object(tmp_path / "a.o", source)
    module = packer.StaticLibraryModule(tmp_path / "a.o", FUNCTIONS)
    assert failure(module, tmp_path).endswith(ADVICE.replace("a.cc", "a.o"))


def test_mold_links_what_is_undefined(tmp_path) -> None:
    """The check of the result gives the same advice."""
    needs.linker("mold")
    source = tmp_path / "a.cc"
    source.write_text(OTHER + BODY)
    host = packer.CSourceModule(source, functions=FUNCTIONS)
    with pytest.raises(runtime.PackerError, match=re.escape(ADVICE)):
        packer.export_library(host, tmp_path / "a.so", options=["-fuse-ld=mold"])


def test_a_function_that_no_code_defines_gets_no_such_advice(tmp_path) -> None:
    """A longer C++ name, a variable or a call is not a definition."""
    source = "int add2(int a) { return a; } int added; int add(int); int f() { return add(1); }"
    message = failure(packer.CSourceModule(source, fmt="cc", functions=FUNCTIONS), tmp_path)
    assert message.endswith("declared, but defined by no source, or as static: add")

"""The parts that the core provides: handles made once, the header, the exported symbols."""

from __future__ import annotations

import subprocess
import threading

import pytest

import runtime

from ...support.compile import INCLUDE
from ...support.importing import HOST, importing


def test_handle_is_made_once(host) -> None:
    """Concurrent threads wait for the one that makes the handle."""
    results: list[int] = []
    threads = [
        threading.Thread(target=lambda: results.append(host["init_once"](0))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [1] * 8


def test_init_that_fails_or_makes_nothing_is_an_error(host) -> None:
    """Its own error passes; no handle without one is an error too; the next call tries again."""
    for _ in range(2):
        with pytest.raises(RuntimeError, match="init: expected a handle, found NULL"):
            host["init_once"](1)
        with pytest.raises(KeyError, match="init"):
            host["init_once"](2)


@pytest.mark.parametrize("compiler", [("cc", "-xc", "-std=c99"), ("c++", "-xc++", "-std=c++11")])
def test_header_is_plain_c_and_cplusplus(compiler, tmp_path) -> None:
    """The header compiles with the strictest warnings, in C99 and C++11."""
    text = (
        '#include "dso_packer.h"\n'
        "int f(DLTensor *x, dso_any *result);\n"
        "int f(DLTensor *x, dso_any *result) {\n"
        '  if (dso_call("none", NULL)) return -1;\n'
        '  return dso_call("f", result, dso_tensor(x), dso_float(2.0), dso_int(1));\n'
        "}\n"
    )
    warnings = ("-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", "-fsyntax-only")
    command = [*compiler, *warnings, f"-I{INCLUDE}", "-"]
    subprocess.run(command, input=text, text=True, check=True)


def test_several_files_of_a_library_include_the_header(compile_library, compile_object) -> None:
    """Each defines the context symbols weakly, and the library has one of each."""
    other = compile_object(
        '#include "dso_packer.h"\n'
        'int other(void); int other(void) { return dso_call("f", NULL); }\n'
    )
    path = compile_library(HOST.read_text(), str(other))
    host = runtime.load(path)
    importing(host, f=lambda: 1)
    assert host["call"]("f") == 1


def test_core_exports_nothing_but_its_init_function() -> None:
    """No other object can bind to the core's functions of TVM's names."""
    path = runtime._core.__file__
    nm = subprocess.run(
        ["nm", "-D", "--defined-only", "--format=posix", path],
        capture_output=True,
        text=True,
        check=True,
    )
    names = {line.split()[0] for line in nm.stdout.splitlines()}
    assert names == {"PyInit__core"}

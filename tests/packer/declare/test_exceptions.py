"""An exception that leaves a C++ function becomes a Python exception."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import packer
import runtime

from ...support import needs
from ...support.system_models import beside_python

# C++ expressions that a function throws, the kind of the Python exception, and its text.
THROWN = {
    "std::bad_alloc()": (MemoryError, "std::bad_alloc"),
    'std::invalid_argument("n < 0")': (ValueError, "n < 0"),
    'std::domain_error("domain")': (ValueError, "domain"),
    'std::length_error("length")': (ValueError, "length"),
    'std::range_error("range")': (ValueError, "range"),
    'std::out_of_range("at 7")': (IndexError, "at 7"),
    'std::overflow_error("too large")': (OverflowError, "too large"),
    'std::runtime_error("plain \\u00e9 text")': (RuntimeError, "plain \xe9 text"),
    'std::logic_error("logic")': (RuntimeError, "logic"),
    "Own()": (RuntimeError, "one of the user's"),
    "Two()": (IndexError, "of two bases"),
    'std::ios_base::failure("stream")': (RuntimeError, "stream: iostream error"),
    'std::runtime_error(std::string(5000, "x"[0]))': (RuntimeError, "x" * 5000),
    "1": (RuntimeError, "unknown C++ exception"),
    '"text"': (RuntimeError, "unknown C++ exception"),
}
CODE = """
#include <ios>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include "dso_packer.h"

struct Own : std::exception {
  const char *what() const noexcept override { return "one of the user's"; }
};

struct Base {
  int number = 7;
  virtual ~Base() {}
};
struct Two : Base, virtual std::out_of_range {
  Two() : std::out_of_range("of two bases") {}
};

extern "C" int thrown(int which) {
  switch (which) {
    CASES
    default: return which;
  }
}

extern "C" void fail(int number) {
  throw std::system_error(number, std::generic_category(), "open data.bin");
}

extern "C" int twice(int (*f)(int), int n) {
  if (f(n) == 0) throw std::runtime_error("the callback returned 0");
  return f(n);
}

extern "C" dso_status pass_on(DLTensor *x) {
  std::string guarded(100, 'x');
  if (dso_call("scale", NULL, dso_tensor(x))) return -1;
  return 0;
}
""".replace("CASES", " ".join(f"case {i}: throw {text};" for i, text in enumerate(THROWN)))
FUNCTIONS = {
    "thrown": "int(int which)",
    "fail": "void(int number)",
    "twice": "int(int (*f)(int), int n)",
    "pass_on": "dso_status(DLTensor *x)",
}


def export(path: Path, **options) -> Path:
    """Export the C++ code of this file, with its symbols hidden by default."""
    host = packer.CSourceModule(
        CODE, fmt="cc", functions=FUNCTIONS, options=["-fvisibility=hidden"]
    )
    return packer.export_library(host, path, **options)


@pytest.fixture(scope="module", params=["g++", "clang++"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library, of each compiler."""
    needs.program(request.param)
    folder = tmp_path_factory.mktemp(request.param)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CXX", request.param)
        return export(folder / "thrown.so")


@pytest.mark.parametrize("index", range(len(THROWN)), ids=THROWN)
def test_each_exception_has_a_python_kind(library: Path, index: int) -> None:
    """The text is what(), and the next call works."""
    kind, text = list(THROWN.values())[index]
    thrown = runtime.load(library)["thrown"]
    with pytest.raises(kind) as caught:
        thrown(index)
    assert str(caught.value).startswith(text)
    assert thrown(100) == 100


def test_a_system_error_is_an_oserror(library: Path) -> None:
    """It has the number, as an OSError of Python."""
    with pytest.raises(FileNotFoundError, match="open data.bin: No such file") as caught:
        runtime.load(library)["fail"](2)
    assert caught.value.errno == 2


def test_a_python_exception_passes_through_cpp(library: Path) -> None:
    """An import that raises KeyError raises the same object through the C++ function."""
    import numpy as np

    error = KeyError("unchanged")

    class Failing(runtime.Module):
        type_key = "failing"

        def find_function(self, name):
            return self.scale if name == "scale" else None

        def scale(self, x):
            raise error

    module = runtime.load(library)
    module.import_module(Failing())
    try:
        with pytest.raises(KeyError) as caught:
            module["pass_on"](np.zeros(1))
        assert caught.value is error
    finally:
        module.clear_imports()


def test_the_exception_of_a_callback_stays(library: Path) -> None:
    """An exception of C++ that follows is not raised; the next call has its own callback."""
    twice = runtime.load(library)["twice"]
    with pytest.raises(ZeroDivisionError):
        twice(lambda n: n // 0, 5)
    with pytest.raises(RuntimeError, match="the callback returned 0"):
        twice(lambda n: 0, 5)
    assert twice(lambda n: n + 1, 5) == 6


def test_tvm_ffi_gets_the_same_exceptions(library: Path) -> None:
    """The kinds that tvm_ffi knows are the same there."""
    needs.importable("tvm_ffi", "test")
    expected = [[kind.__name__, text[:10]] for kind, text in THROWN.values()]
    program = """if True:
    import json, sys, tvm_ffi
    thrown = tvm_ffi.load_module(sys.argv[1]).thrown
    for index, (kind, text) in enumerate(json.loads(sys.argv[2])):
        try:
            thrown(index)
        except Exception as error:
            known = kind in ("ValueError", "IndexError", "RuntimeError")
            assert not known or type(error).__name__ == kind and text in str(error), repr(error)
        else:
            raise AssertionError(f"{index} raised nothing")
    print(thrown(100))
    """
    command = [sys.executable, "-c", program, str(library), json.dumps(expected)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "100\n", "")


def test_a_thread_that_ends_in_the_function_is_not_caught(tmp_path: Path) -> None:
    """pthread_exit unwinds the stack of a thread, which a handler must not stop."""
    source = '#include <pthread.h>\nextern "C" void leave(void) { pthread_exit(nullptr); }'
    host = packer.CSourceModule(source, fmt="cc", functions={"leave": "void(void)"})
    path = packer.export_library(host, tmp_path / "leave.so")
    program = """
    #include <dlfcn.h>
    #include <pthread.h>
    #include <stdio.h>
    static void *run(void *wrapper) {
      long long result[2] = {0, 0};
      ((int (*)(void *, void *, int, void *))wrapper)(NULL, NULL, 0, result);
      return NULL;
    }
    int main(int count, char **words) {
      pthread_t thread;
      void *wrapper = dlsym(dlopen(words[count - 1], RTLD_NOW), "__tvm_ffi_leave");
      pthread_create(&thread, NULL, run, wrapper);
      pthread_join(thread, NULL);
      puts("ended");
    }
    """
    (tmp_path / "main.c").write_text(program)
    command = ["gcc", "-w", tmp_path / "main.c", "-o", tmp_path / "main", "-ldl", "-pthread"]
    subprocess.run(command, check=True)
    assert subprocess.check_output([tmp_path / "main", path], text=True) == "ended\n"


def test_c_alone_needs_no_cpp_library(tmp_path: Path) -> None:
    """Only C++ sources bring the C++ library."""
    host = packer.CSourceModule("int f(void) { return 1; }", functions={"f": "int(void)"})
    c = packer.export_library(host, tmp_path / "c.so")
    cpp = export(tmp_path / "cpp.so")
    needed = {p: subprocess.check_output(["readelf", "-d", p], text=True) for p in (c, cpp)}
    assert "libstdc++" not in needed[c]
    assert "libstdc++" in needed[cpp]


def test_an_object_that_cpp_was_compiled_to(tmp_path: Path) -> None:
    """Its code refers to the C++ library, which handles exceptions."""
    source = tmp_path / "a.cc"
    source.write_text(
        '#include <string>\nextern "C" int at(int i) { return std::string(99, 97).at(i); }'
    )
    packer.create_object(tmp_path / "a.o", source)
    module = packer.StaticLibraryModule(tmp_path / "a.o", {"at": "int(int i)"})
    at = runtime.load(packer.export_library(module, tmp_path / "a.so"))["at"]
    assert at(98) == 97
    with pytest.raises(IndexError, match="99"):
        at(99)


def test_a_model_of_a_system_library_raises_them_too(tmp_path: Path) -> None:
    """Its symbols have a prefix, which symbols of the C++ library do not get."""
    model = export(tmp_path / "net.o", system_lib=True, c_symbol_prefix="net1_")
    library = packer.link_library([model], tmp_path / "net.so")
    raises = "__import__('pytest').raises(Exception, m['thrown'], {}).typename"
    kinds = [kind.__name__ for kind, _ in THROWN.values()]
    expression = f"[{', '.join(raises.format(i) for i in range(len(kinds)))}]"
    assert beside_python(library, expression) == kinds


@pytest.mark.parametrize("functions", ["auto", {"yes": "bool(void)", "half": "int(int n)"}])
def test_a_function_that_promises_to_throw_nothing(tmp_path: Path, functions) -> None:
    """The declaration after the source repeats noexcept, without which C++ refuses it."""
    code = """extern "C" bool yes() noexcept { return true; }
    extern "C" int half(int n) noexcept(false) { if (n % 2) throw 1; return n / 2; }"""
    module = packer.CSourceModule(code, fmt="cc", functions=functions)
    loaded = runtime.load(packer.export_library(module, tmp_path / "yes.so"))
    assert loaded["yes"]() is True
    assert loaded["half"](4) == 2
    with pytest.raises(RuntimeError, match="unknown C"):
        loaded["half"](3)

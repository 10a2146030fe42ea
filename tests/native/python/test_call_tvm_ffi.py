"""Functions, tensors and errors through real C++ of tvm_ffi, called by our core."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from ...support import needs

SOURCE = """
#include <tvm/ffi/tvm_ffi.h>
using namespace tvm::ffi;
Any apply(Function f, Any x) { return f(x); }
Function adder(int64_t n) { return Function::FromTyped([n](int64_t a) { return a + n; }); }
Tensor same(Tensor t) { return t; }
String shout(Function f, String s) { return f(s).cast<String>() + "!"; }
Any catches(Function f) {
  try {
    return f();
  } catch (const Error &e) {
    throw Error("KeyError", std::string("caught ") + e.message(), "");
  }
}
struct Alloc {
  void AllocData(DLTensor *t) { t->data = calloc(1, GetDataSize(*t)); }
  void FreeData(DLTensor *t) { free(t->data); }
};
Tensor zeros(int64_t n) {
  return Tensor::FromNDAlloc(Alloc(), Shape({n}), DLDataType{kDLFloat, 32, 1}, DLDevice{kDLCPU, 0});
}
TVM_FFI_DLL_EXPORT_TYPED_FUNC(apply, apply);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(adder, adder);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(same, same);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(shout, shout);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(catches, catches);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(zeros, zeros);
"""

CODE = """
import sys
from runtime._core import Library

library = Library(sys.argv[1])
apply, adder, same, shout, catches, zeros = (
    library.function(name, None) for name in ("apply", "adder", "same", "shout", "catches", "zeros")
)
assert apply(lambda x: x + 1, 4) == 5
assert apply(lambda x: x * 2, "more than seven") == "more than sevenmore than seven"
assert shout(str.upper, "hello world") == "HELLO WORLD!"
add = adder(5)
assert (add(6), apply(add, 7)) == (11, 12)

error = ValueError("mine")
def fail(*_):
    raise error
try:
    apply(fail, 1)
except ValueError as caught:
    assert caught is error
try:
    catches(fail)
except KeyError as caught:
    assert caught.args == ("caught mine",), caught
    assert caught.__context__ is error

tensor = zeros(3)
memoryview(tensor)[1] = 2.0
assert memoryview(same(tensor)).tolist() == [0, 2, 0]
kept = []
apply(kept.append, tensor)
del tensor
assert memoryview(kept[0]).tolist() == [0, 2, 0]
print("done")
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled C++, which brings libtvm_ffi along."""
    needs.importable("tvm_ffi", "test")
    package = Path(str(importlib.util.find_spec("tvm_ffi").origin)).parent
    folder = tmp_path_factory.mktemp("tvm_ffi")
    source, output = folder / "functions.cc", folder / "functions.so"
    source.write_text(SOURCE)
    command = ["g++", "-std=c++17", "-O0", "-shared", "-fPIC", f"-I{package / 'include'}"]
    link = [f"-L{package / 'lib'}", "-ltvm_ffi", f"-Wl,-rpath,{package / 'lib'}"]
    subprocess.run([*command, str(source), "-o", str(output), *link], check=True)
    return output


@pytest.mark.parametrize("first", ["", "import tvm_ffi\n"], ids=["alone", "beside tvm_ffi"])
def test_cpp_of_tvm_ffi(library: Path, first: str) -> None:
    """tvm_ffi uses our functions as its kind, whether the process has a separate tvm_ffi or not."""
    command = [sys.executable, "-c", first + CODE, str(library)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (ran.stderr, ran.stdout) == ("", "done\n")

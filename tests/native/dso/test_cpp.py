"""dso.hpp: programs of g++ and clang++, of each standard, without RTTI."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

import packer
import runtime

from ...support import needs

HOME = Path(runtime.__file__).parent
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]
CODE = """
#include <stdint.h>
#include "dso_packer.h"
int64_t add(int64_t a, int64_t b) { return a + b; }
double halve(double x) { return x / 2; }
void scale(float *x, int64_t n, float by) { for (int64_t i = 0; i < n; i++) x[i] *= by; }
const char *greet(const char *name) { return name[0] ? "a greeting that is long" : "short"; }
dso_status fail(void) { return dso_raise("ValueError", "as asked"); }
"""
FUNCTIONS = {
    "add": "int64_t(int64_t a, int64_t b)",
    "halve": "double(double x)",
    "scale": "void(float *x, int64_t n, float by)",
    "greet": "const char *(const char *name)",
    "fail": "dso_status(void)",
}
PROGRAM = r"""
#include <cstdio>
#include <memory>

#include "dso.hpp"

#define EXPECT(condition) \
  do { \
    if (!(condition)) return std::printf("line %d: %s\n", __LINE__, #condition), 1; \
  } while (0)

template <class F> std::string error_of(F call) {
  try {
    call();
  } catch (const dso::Error &error) {
    return error.kind() + "|" + error.message();
  }
  return "";
}

static int calls(const dso::Module &m) {
  std::int64_t sum = m["add"](40, 2);
  EXPECT(sum == 42);
  EXPECT(m["halve"](5.0f).as<double>() == 2.5);
  EXPECT(m["greet"](std::string("x")).as<std::string>() == "a greeting that is long");
  std::string text = m["greet"]("");
  EXPECT(text == "short");
  EXPECT(error_of([&] { m["fail"](); }) == "ValueError|as asked");
  EXPECT(error_of([&] { (void)m["greet"]("x").as<int>(); }) == "TypeError|expected int, found str");
  EXPECT(error_of([&] { (void)m["add"](40, 260).as<std::uint8_t>(); }).find("OverflowError") == 0);
  EXPECT(error_of([&] { m["missing"]; }).find("FunctionNotFoundError|") == 0);
  EXPECT(m.function_names().size() == 5);

  std::vector<float> x = {1, 2, 3};
  m["scale"](dso::tensor(x), 3, 2.0);
  EXPECT(x == (std::vector<float>{2, 4, 6}));
  dso::Tensor view = dso::tensor(x, {3});
  m["scale"](*view, 3, 0.5);
  m["scale"](view.get(), 3, 3);
  EXPECT(x == (std::vector<float>{3, 6, 9}));
  EXPECT(error_of([&] { dso::tensor(x, {2, 2}); }).find("ValueError|tensor: ") == 0);
  return 0;
}

static int tree(const dso::Module &m) {
  EXPECT(m.metadata() == "{\"schema\":1,\"metadata\":{\"version\":\"1.0\"}}");
  EXPECT(m.type_key() == "_lib" || !m.imports().empty());
  EXPECT(m.weight_names() == std::vector<std::string>{"layer.weight"});
  DLTensor weight = m.weight("layer.weight");
  EXPECT(weight.ndim == 2 && weight.shape[0] == 2 && weight.shape[1] == 3);
  EXPECT(dso::elements_of<float>(weight) == 6);
  EXPECT(dso::data_of<const float>(weight)[5] == 5.0f);
  EXPECT(error_of([&] { (void)dso::data_of<const double>(weight); }).find("TypeError|") == 0);
  EXPECT(error_of([&] { m.weight("none"); }) != "");
  return 0;
}

static int free_function(int x) { return x + 1; }

static int lambdas() {
  auto count = std::make_shared<int>(0);
  {
    dso::Function f = dso::Function::of([count](std::int64_t n) { *count += static_cast<int>(n); });
    dso::Function same = f;
    f(2), same(3);
    EXPECT(*count == 5 && count.use_count() == 2);
  }
  EXPECT(count.use_count() == 1);
  auto join = dso::Function::of([](const std::string &s, const DLTensor &t, dso::View v) {
    return s + std::to_string(t.ndim) + (v.is_none() ? "-" : "+");
  });
  std::vector<int> x(6);
  EXPECT(join("a text of any length ", dso::tensor(x, {2, 3}), nullptr).as<std::string>() ==
         "a text of any length 2-");
  EXPECT(dso::Function::of(free_function)(41).as<int>() == 42);
  EXPECT(dso::Function::of([](dso::Function f) { return f(1); })(dso::Function::of(free_function))
             .as<int>() == 2);
  EXPECT(error_of([&] { join(1); }) == "TypeError|expected 3 arguments, found 1");
  EXPECT(error_of([] { dso::Function::of([] { throw dso::Error("KeyError", "k"); })(); }) ==
         "KeyError|k");
  EXPECT(error_of([] { dso::Function::of([] { throw std::out_of_range("far"); })(); }) ==
         "IndexError|far");
  EXPECT(error_of([] { dso::Function::of([] { throw 1; })(); }).find("RuntimeError|") == 0);
  const std::uint64_t large = ~std::uint64_t(0);
  EXPECT(dso::Function::of([](std::uint64_t n) { return n; })(large).as<std::uint64_t>() == large);
  dso::register_function("test.next", dso::Function::of(free_function));
  return 0;
}

static int verified(const char *path) {
  std::size_t size = 0;
  dso::Module m = dso::Module::load_verified(
      path, [&](const char *name, const void *, std::size_t nbytes) {
        if (std::string(name) == path) size = nbytes;
      });
  EXPECT(size > 1000 && m["add"](40, 2).as<int>() == 42);
  auto refuse = [](const char *, const void *, std::size_t) {
    throw dso::Error("TrustError", "no");
  };
  EXPECT(error_of([&] { dso::Module::load_verified(path, refuse); }) == "TrustError|no");
  return 0;
}

int main(int argc, char **argv) {
  if (argc != 2 || lambdas() != 0) return 1;
  dso::Module m = dso::Module::load(argv[1]);
  dso::Module copy = m;
  m = std::move(copy);
  if (calls(m) != 0 || tree(m) != 0 || verified(argv[1]) != 0) return 1;
  EXPECT(error_of([] { dso::Module::load("/none.so"); }).find("LibraryLoadError|") == 0);
  return std::puts("done") < 0;
}
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """A library with functions and one weight."""
    module = packer.CSourceModule(CODE, functions=FUNCTIONS)
    weight = np.arange(6, dtype="float32").reshape(2, 3)
    module.import_module(runtime.SafetensorsModule(save({"layer.weight": weight})))
    path = tmp_path_factory.mktemp("model") / "model.so"
    return packer.export_library(module, path, output=packer.Output(metadata={"version": "1.0"}))


def compile_program(compiler: str, standard: str, output: Path, *options: str) -> Path:
    """Compile the program, and link libdso.a."""
    source = output.with_suffix(".cpp")
    source.write_text(PROGRAM)
    command = [compiler, f"-std={standard}", *WARNINGS, "-fno-rtti", f"-I{HOME}/include", source]
    libraries = [HOME / "lib/libdso.a", "-pthread", "-ldl", "-lm"]
    ran = subprocess.run(
        [*command, "-o", output, *libraries, *options], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return output


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("standard", ["c++11", "c++17", "c++20"])
def test_program_in_cpp(compiler, standard, model, tmp_path) -> None:
    """Calls, tensors, weights, lambdas and errors."""
    needs.program(compiler)
    program = compile_program(compiler, standard, tmp_path / "program")
    ran = subprocess.run([program, model], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "done\n"), ran.stdout + ran.stderr


def test_program_in_cpp_frees_what_it_holds(model, tmp_path) -> None:
    """AddressSanitizer finds no leak and no wrong access."""
    program = compile_program("g++", "c++17", tmp_path / "program", "-fsanitize=address,undefined")
    ran = subprocess.run([program, model], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "done\n", "")

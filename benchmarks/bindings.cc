// The functions of kernels.c, bound by pybind11 or, with -DNANOBIND, by nanobind, as in their
// documentation. Arrays are checked and not converted. The GIL is released or, with -DGIL_KEPT,
// kept.
#include <cstdint>

extern "C" {
void noop(void);
int64_t add(int64_t a, int64_t b);
void pair(const float *x, float *y);
int64_t first(const char *text);
double mixed(int64_t a, double b, bool c, const char *text, const float *x, float *y, int32_t n,
             int64_t d);
}

#ifdef NANOBIND
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
namespace py = nanobind;
using Input = py::ndarray<const float, py::ndim<1>, py::c_contig, py::device::cpu>;
using Output = py::ndarray<float, py::ndim<1>, py::c_contig, py::device::cpu>;
static const float *data_of(const Input &array) { return array.data(); }
static float *data_of(const Output &array) { return array.data(); }
using Callable = py::callable;
static int64_t integer_of(const py::object &value) { return py::cast<int64_t>(value); }
#define MODULE(name) NB_MODULE(name, module)
#else
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
namespace py = pybind11;
using Input = py::array_t<float, py::array::c_style>;
using Output = py::array_t<float, py::array::c_style>;
static const float *data_of(const Input &array) { return array.data(); }
static float *data_of(Output &array) { return array.mutable_data(); }
using Callable = py::function;
static int64_t integer_of(const py::object &value) { return value.cast<int64_t>(); }
#define MODULE(name) PYBIND11_MODULE(name, module)
#endif

#ifdef GIL_KEPT
struct Release {}; // the name of a guard that does nothing
struct Acquire {};
template <typename... Options> static void define(py::module_ &module, Options... options) {
  module.def(options...);
}
#else
using Release = py::gil_scoped_release;
using Acquire = py::gil_scoped_acquire;
template <typename... Options> static void define(py::module_ &module, Options... options) {
  module.def(options..., py::call_guard<Release>());
}
#endif

static auto as_is(const char *name) { return py::arg(name).noconvert(); }

static void call_pair(Input x, Output y) {
  const float *from = data_of(x);
  float *to = data_of(y);
  [[maybe_unused]] Release release;
  pair(from, to);
}

static double call_mixed(int64_t a, double b, bool c, const char *text, Input x, Output y,
                         int32_t n, int64_t d) {
  const float *from = data_of(x);
  float *to = data_of(y);
  [[maybe_unused]] Release release;
  return mixed(a, b, c, text, from, to, n, d);
}

static int64_t call_apply(Callable function, int64_t value) {
  [[maybe_unused]] Release release;
  [[maybe_unused]] Acquire acquire;
  return integer_of(function(value));
}

MODULE(NAME) {
  define(module, "noop", noop);
  define(module, "add", add);
  define(module, "first", first);
  module.def("pair", call_pair, as_is("x"), as_is("y"));
  module.def("mixed", call_mixed, py::arg("a"), py::arg("b"), py::arg("c"), py::arg("text"),
             as_is("x"), as_is("y"), py::arg("n"), py::arg("d"));
  module.def("apply", call_apply);
}

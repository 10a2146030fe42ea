/* Results by the codes that the function declares: handles, structs, complex numbers, and several
 * results in one array. */
#include "python/call/function.h"

#include <string.h>

#include "abi/object.h"
#include "python/call/handle.h"
#include "python/exception.h"
#include "vm/object.h"

struct results {
  const struct call_frame *frame;
  struct source source;
};

static int returns_value(const struct facts *facts) {
  return facts->result != NULL && strcmp(facts->result, "void") != 0 &&
         strcmp(facts->result, "status") != 0;
}

/* Return the code of a result: first the C function's own result, then the results in `out`. */
static const char *result_code(const struct facts *facts, int index) {
  int has_value = returns_value(facts);
  if (index == 0 && has_value) return facts->result;
  return index - has_value < facts->num_outs ? facts->outs[index - has_value].code : NULL;
}

static PyObject *make_handle(const struct results *results, void *address, const char *code) {
  const struct call_frame *frame = results->frame;
  const struct facts *facts = &frame->callee->facts;
  const char *lifetime = facts->lifetime;
  Handle *parent = NULL;
  if (lifetime != NULL) parent = frame_handle(frame, facts_find(facts, lifetime, strlen(lifetime)));
  return handle_from_result(frame->function, address, code, parent);
}

static int read_float(const dso_any *value, double *number) {
  if (value->type_index == DSO_FLOAT) *number = value->v_float64;
  else if (value->type_index == DSO_INT) *number = (double)value->v_int64;
  else return 0;
  return 1;
}

/* NULL without an exception if it is not an array of two numbers. */
static PyObject *make_complex(const dso_array_object *array) {
  double real, imaginary;
  if (array->size != 2 || !read_float(&array->items[0], &real) ||
      !read_float(&array->items[1], &imaginary))
    return NULL;
  return PyComplex_FromDoubles(real, imaginary);
}

PyObject *make_struct(PyObject *function, const char *code, Py_ssize_t length, PyObject *fields) {
  struct callee_lazy *lazy = function_callee(function)->lazy;
  if (lazy->make_result == NULL) {
    PyObject *structs = PyImport_ImportModule("runtime.structs"); /* imported at first use */
    PyObject *made = structs ? PyObject_CallMethod(structs, "result_maker", "O", function) : NULL;
    Py_XDECREF(structs);
    if (lazy_keep(&lazy->make_result, made) == NULL) return NULL;
  }
  return PyObject_CallFunction(lazy->make_result, "Os#O", function, code, length, fields);
}

static PyObject *make_item(const struct results *results, const dso_any *value, const char *code) {
  if (value->type_index == DSO_OPAQUE_PTR) return make_handle(results, value->v_ptr, code);
  enum code_kind kind = code != NULL ? code_kind_of(code) : CODE_PLAIN;
  if (value->type_index == DSO_ARRAY && value->v_ptr != NULL && kind == CODE_COMPLEX) {
    PyObject *number = make_complex(value->v_ptr);
    if (number != NULL || PyErr_Occurred()) return number;
  }
  PyObject *object = convert_value(&results->source, value);
  int is_struct = kind == CODE_STRUCT || kind == CODE_VALUE;
  if (!is_struct || object == NULL || !(PyTuple_CheckExact(object) || PyBytes_Check(object)))
    return object;
  PyObject *function = results->frame->function;
  PyObject *named = make_struct(function, code, (Py_ssize_t)strlen(code), object);
  Py_DECREF(object);
  return named;
}

static PyObject *make_tuple(const struct results *results, const dso_array_object *array) {
  const struct facts *facts = &results->frame->callee->facts;
  PyObject *tuple = PyTuple_New((Py_ssize_t)array->size);
  for (int i = 0; tuple != NULL && i < array->size; i++) {
    PyObject *item = make_item(results, &array->items[i], result_code(facts, i));
    if (item == NULL) Py_CLEAR(tuple);
    else PyTuple_SET_ITEM(tuple, i, item);
  }
  return tuple;
}

PyObject *convert_by_code(const struct call_frame *frame, const dso_any *result) {
  const struct facts *facts = &frame->callee->facts;
  struct results results = {
      .frame = frame,
      .source = {.callable = frame->function, .function = frame->function, .is_result = 1}};
  const dso_array_object *array = result->type_index == DSO_ARRAY ? result->v_ptr : NULL;
  int count = returns_value(facts) + facts->num_outs;
  if (count >= 2 && array != NULL && array->size == count) return make_tuple(&results, array);
  return make_item(&results, result, count == 1 ? result_code(facts, 0) : NULL);
}

/* Functions that return a bare address, and views of the memory at it. */
#include "python/address.h"

#include <string.h>

#include "python/exception.h"
#include "python/call/function.h"
#include "abi/object.h"
#include "abi/raised.h"
#include "abi/segment.h"
#include "python/span.h"

enum { MAX_ARGS = 4 };

static PyObject *take_address(const struct callee *callee, const dso_any *result) {
  if (result->type_index == DSO_OPAQUE_PTR && result->v_ptr != NULL)
    return PyLong_FromVoidPtr(result->v_ptr);
  if (result->type_index == DSO_NONE || result->type_index == DSO_OPAQUE_PTR) Py_RETURN_NONE;
  if (result->type_index >= DSO_OBJECT && result->v_ptr != NULL) object_release(result->v_ptr);
  return PyErr_Format(PyExc_TypeError, "%U: result, expected an address, found type index %d",
                      callee->name, (int)result->type_index);
}

PyObject *address_of_call(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count) {
  dso_any values[MAX_ARGS], result = {.type_index = DSO_NONE};
  if (count < 1 || count > MAX_ARGS || !function_check(args[0]))
    return PyErr_Format(PyExc_TypeError, "call_for_address: expected a Function and integers");
  for (Py_ssize_t i = 1; i < count; i++) {
    values[i] = (dso_any){.type_index = DSO_INT, .v_int64 = PyLong_AsLongLong(args[i])};
    if (PyErr_Occurred()) return NULL;
  }
  const struct callee *callee = function_callee(args[0]);
  uint64_t raised = raised_count();
  int status = callee->address(callee->handle, values + 1, (int32_t)count - 1, &result);
  if (status != 0) return raise_call_error(callee, status, raised);
  return take_address(callee, &result);
}

/* The segment of a loaded image bounds the view. If no image contains the address (the library
 * allocated the memory), `nbytes` is not checked. */
static PyObject *view_at(const char *bytes, Py_ssize_t nbytes, PyObject *owner) {
  size_t part = segment_part_from(bytes).nbytes, room = part > 0 ? part : PY_SSIZE_T_MAX;
  if (nbytes < 0) nbytes = (Py_ssize_t)strnlen(bytes, room);
  if ((size_t)nbytes <= room) return span_view(owner, bytes, nbytes, 1);
  return PyErr_Format(PyExc_ValueError,
                      "%zd bytes at %p, expected at most %zu, where its segment ends", nbytes,
                      bytes, room);
}

PyObject *address_view(PyObject *Py_UNUSED(module), PyObject *args) {
  PyObject *address, *owner;
  Py_ssize_t nbytes;
  if (!PyArg_ParseTuple(args, "O!nO:memory_at", &PyLong_Type, &address, &nbytes, &owner))
    return NULL;
  const char *bytes = PyLong_AsVoidPtr(address);
  if (bytes == NULL && PyErr_Occurred()) return NULL;
  if (bytes != NULL) return view_at(bytes, nbytes, owner);
  if (nbytes <= 0) return span_view(owner, "", 0, 1);
  return PyErr_Format(PyExc_ValueError, "%zd bytes at NULL", nbytes);
}

PyObject *buffer_address(PyObject *Py_UNUSED(module), PyObject *view) {
  if (PyMemoryView_Check(view)) return PyLong_FromVoidPtr(PyMemoryView_GET_BUFFER(view)->buf);
  return PyErr_Format(PyExc_TypeError, "buffer_address: expected a memoryview, found %s",
                      Py_TYPE(view)->tp_name);
}

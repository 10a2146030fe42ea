/* Views of the memory at an address, and the addresses of buffers. */
#include "python/address.h"

#include <string.h>

#include "abi/segment.h"
#include "python/span.h"

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

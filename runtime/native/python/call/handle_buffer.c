/* The memory that a handle points to, as a buffer. A view counts as a use, so that nothing releases the
 * object. */
#include "python/call/handle_members.h"
#include "python/call/member_value.h"
#include "python/exception.h"

enum { MOST_DIMS = 32 };

static int handle_get_buffer(PyObject *object, Py_buffer *view, int flags) {
  Handle *self = (Handle *)object;
  view->obj = NULL;
  CType *type = handle_is_closed(self) ? NULL : handle_type(self), *item = type;
  int ndim = 0;
  while (item != NULL && item->how == C_ARRAY && ndim < MOST_DIMS) item = item->target, ndim++;
  if (item == NULL || item->format == NULL || item->size == 0) {
    if (!PyErr_Occurred())
      PyErr_Format(PyExc_BufferError, "%R: expected a struct or numbers with a known layout", self);
    return -1;
  }
  if ((flags & PyBUF_WRITABLE) && self->is_const)
    return raise_format(PyExc_BufferError, "%R: expected writable memory, found const", self);
  Py_ssize_t *dims = PyMem_New(Py_ssize_t, 2 * (size_t)ndim + 1);
  if (dims == NULL) return as_status(raise_no_memory());
  int i = 0;
  for (CType *of = type; of != item; of = of->target, i++) {
    dims[i] = of->count;
    dims[ndim + i] = of->target->size;
  }
  handle_begin_use(self);
  for (Handle *of = self; of != NULL; of = of->parent) of->views++;
  *view = (Py_buffer){.buf = self->address,
                      .obj = Py_NewRef(object),
                      .len = type->size,
                      .readonly = self->is_const,
                      .internal = dims};
  view->itemsize = item->size;
  view->ndim = flags & PyBUF_ND ? ndim : type == item ? 0 : 1;
  view->format = flags & PyBUF_FORMAT ? PyBytes_AS_STRING(item->format) : NULL;
  view->shape = flags & PyBUF_ND ? dims : NULL;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? dims + ndim : NULL;
  return 0;
}

static void handle_release_buffer(PyObject *object, Py_buffer *view) {
  handle_end_use((Handle *)object);
  for (Handle *of = (Handle *)object; of != NULL; of = of->parent) of->views--;
  PyMem_Free(view->internal);
}

PyBufferProcs handle_buffer = {handle_get_buffer, handle_release_buffer};

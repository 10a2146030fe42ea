/* Span: the buffer exporter for memory that another object owns. */
#include "python/span.h"

typedef struct {
  PyObject_HEAD
  PyObject *owner;
  void *bytes;
  Py_ssize_t nbytes;
  int readonly;
} Span;

/* A library's code may cache functions whose modules view the library. The collector must see that
 * cycle. There is no tp_clear: a span in use by a view must keep its owner. */
static int span_traverse(Span *self, visitproc visit, void *arg) {
  Py_VISIT(self->owner);
  return 0;
}

static void span_dealloc(Span *self) {
  PyObject_GC_UnTrack(self);
  Py_XDECREF(self->owner);
  PyObject_GC_Del(self);
}

static int span_get_buffer(Span *self, Py_buffer *view, int flags) {
  return PyBuffer_FillInfo(view, (PyObject *)self, self->bytes, self->nbytes, self->readonly,
                           flags);
}

static PyBufferProcs span_buffer = {.bf_getbuffer = (getbufferproc)span_get_buffer};

PyTypeObject Span_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "runtime._core.Span",
    .tp_basicsize = sizeof(Span),
    .tp_dealloc = (destructor)span_dealloc,
    .tp_traverse = (traverseproc)span_traverse,
    .tp_as_buffer = &span_buffer,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
};

PyObject *span_owner(PyObject *span) { return ((Span *)span)->owner; }

PyObject *span_view(PyObject *owner, const void *bytes, Py_ssize_t nbytes, int readonly) {
  Span *span = PyObject_GC_New(Span, &Span_Type);
  if (span == NULL) return NULL;
  span->owner = Py_NewRef(owner);
  span->bytes = (void *)(uintptr_t)bytes;
  span->nbytes = nbytes;
  span->readonly = readonly;
  PyObject_GC_Track(span);
  PyObject *view = PyMemoryView_FromObject((PyObject *)span);
  Py_DECREF(span);
  return view;
}

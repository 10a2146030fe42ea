/* A module "lookalike" with a type ndarray whose buffer is right, and whose struct is NumPy's or,
 * as WRONG says, differs from it in one field. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

enum { DATA = 1, ND, DIMENSIONS, STRIDES, DESCR, WRITEABLE, WARN };
#ifndef WRONG
#define WRONG 0
#endif

typedef struct {
  PyObject_HEAD
  char *data;
  int nd;
  Py_ssize_t *dimensions, *strides;
  PyObject *base, *descr;
  int flags;
  char items[512];
  Py_ssize_t shape[2], wrong_shape[2], steps[2];
  const char *format;
  Py_ssize_t itemsize;
  int readonly;
} Array;

static int num_buffers;

static Py_ssize_t size_of(const char *format) {
  return strcmp(format, "c16") == 0 ? 16 : strcmp(format, "i2") == 0 ? 2 : 4;
}

/* ndarray(shape, dtype, buffer, offset, strides, order) */
static PyObject *array_new(PyTypeObject *type, PyObject *args, PyObject *kw) {
  PyObject *shape, *buffer = Py_None, *strides = Py_None;
  const char *dtype, *order = "C";
  int offset;
  (void)kw;
  if (!PyArg_ParseTuple(args, "Os|OiOs", &shape, &dtype, &buffer, &offset, &strides, &order))
    return NULL;
  Array *self = (Array *)type->tp_alloc(type, 0);
  self->nd = (int)PyTuple_GET_SIZE(shape);
  self->itemsize = size_of(dtype);
  self->format = *dtype == 'c' ? "Zd" : *dtype == 'i' ? "h" : *dtype == 'u' ? "I" : "f";
  Py_ssize_t step = self->itemsize;
  for (int i = 0; i < self->nd; i++) {
    int at = *order == 'F' ? i : self->nd - 1 - i;
    self->shape[at] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, at));
    self->wrong_shape[at] = self->shape[at] + 1;
    self->steps[at] = step;
    step *= self->shape[at];
  }
  if (strides != Py_None) self->steps[0] = PyLong_AsSsize_t(PyTuple_GET_ITEM(strides, 0));
  self->readonly = buffer != Py_None;
  self->data = WRONG == DATA ? NULL : self->items;
  self->dimensions = WRONG == DIMENSIONS ? self->wrong_shape : self->shape;
  self->strides = WRONG == STRIDES ? self->shape : self->steps;
  self->descr = WRONG == DESCR ? Py_None : (PyObject *)&PyFloat_Type;
  if (!self->readonly || WRONG == WRITEABLE) self->flags |= 0x400;
  if (WRONG == WARN) self->flags |= 1 << 31;
  if (WRONG == ND) self->nd++;
  return (PyObject *)self;
}

static int array_buffer(Array *self, Py_buffer *view, int flags) {
  (void)flags;
  num_buffers++;
  *view = (Py_buffer){.buf = self->items, .obj = Py_NewRef((PyObject *)self), .len = 64,
                      .itemsize = self->itemsize, .readonly = self->readonly,
                      .ndim = WRONG == ND ? self->nd - 1 : self->nd,
                      .format = (char *)self->format, .shape = self->shape,
                      .strides = self->steps};
  return 0;
}

static PyObject *array_dtype(PyObject *self, void *closure) {
  (void)self, (void)closure;
  return Py_NewRef((PyObject *)&PyFloat_Type);
}

static PyGetSetDef getset[] = {{"dtype", array_dtype, NULL, NULL, NULL}, {0}};
static PyBufferProcs buffer = {.bf_getbuffer = (getbufferproc)array_buffer};
static PyTypeObject Array_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lookalike.ndarray",
    .tp_basicsize = sizeof(Array),
    .tp_new = array_new,
    .tp_getset = getset,
    .tp_as_buffer = &buffer,
    .tp_flags = Py_TPFLAGS_DEFAULT,
};

static PyObject *buffers(PyObject *self, PyObject *none) {
  (void)self, (void)none;
  return PyLong_FromLong(num_buffers);
}

static PyMethodDef methods[] = {{"buffers", buffers, METH_NOARGS, NULL}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "lookalike", .m_size = -1,
                                    .m_methods = methods};

PyMODINIT_FUNC PyInit_lookalike(void) {
  PyObject *made = PyModule_Create(&module);
  if (made != NULL && PyModule_AddType(made, &Array_Type) != 0) return NULL;
  return made;
}

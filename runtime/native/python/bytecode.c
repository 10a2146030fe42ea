/* Bytecode: verified at construction. */
#include "python/bytecode.h"

#include "python/container.h"
#include "python/exception.h"
#include "vm/vm.h"

static int read_function(PyObject *item, struct vm_function *function) {
  long long kind, start, end, num_args, num_registers, num_params;
  PyObject *name; /* bytes, in which the name stays: the tuple is kept */
  if (!PyTuple_Check(item) ||
      !PyArg_ParseTuple(item, "SLLLLLL:functions", &name, &kind, &start, &end, &num_args,
                        &num_registers, &num_params) ||
      PyBytes_AsStringAndSize(name, (char **)(uintptr_t)&function->name, NULL) != 0)
    return -1;
  function->kind = kind;
  function->start = start;
  function->end = end;
  function->num_args = num_args;
  function->num_registers = num_registers;
  function->num_params = num_params;
  return 0;
}

static int read_functions(Bytecode *self) {
  Py_ssize_t count = PyTuple_GET_SIZE(self->functions);
  self->code.functions = PyMem_Calloc((size_t)count + 1, sizeof *self->code.functions);
  if (self->code.functions == NULL) return as_status(raise_no_memory());
  for (Py_ssize_t i = 0; i < count; i++)
    if (read_function(PyTuple_GET_ITEM(self->functions, i), &self->code.functions[i]) != 0)
      return -1;
  self->code.num_functions = (size_t)count;
  return 0;
}

static int take_words(PyObject *data, Py_buffer *view, const unsigned char **words, size_t *count) {
  if (PyObject_GetBuffer(data, view, PyBUF_SIMPLE) != 0) return -1;
  if (view->len % 8 != 0)
    return raise_format(PyExc_ValueError,
                        "Bytecode: a table, expected words of 8 bytes, found %zd bytes", view->len);
  *words = view->buf;
  *count = (size_t)view->len / 8;
  return 0;
}

static const char *const tables[] = {"functions", "offsets", "words"};

/* The text may contain the bytes of a name, or be cut. Returns -1. */
static int raise_fault(const struct vm_fault *fault) {
  PyObject *text =
      PyUnicode_DecodeUTF8(fault->text, (Py_ssize_t)strlen(fault->text), "surrogateescape");
  PyObject *facts = text ? Py_BuildValue("{sssn}", "table", tables[fault->table], "index",
                                         (Py_ssize_t)fault->index)
                         : NULL;
  PyObject *error = error_new("BytecodeError", text, facts);
  if (error != NULL) exception_set(error);
  return -1;
}

static int fill(Bytecode *self, PyObject *offsets, PyObject *words) {
  struct vm_fault fault;
  if (read_functions(self) != 0 ||
      take_words(offsets, &self->offsets, &self->code.offsets, &self->code.num_instructions) != 0 ||
      take_words(words, &self->words, &self->code.words, &self->code.num_words) != 0)
    return -1;
  int status = vm_verify(&self->code, &fault);
  if (status == VM_NO_MEMORY) raise_no_memory();
  else if (status != 0) raise_fault(&fault);
  return status;
}

static PyObject *bytecode_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
  static char *names[] = {"functions", "num_constants", "offsets", "words", NULL};
  PyObject *functions, *offsets, *words;
  Py_ssize_t num_constants;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!nOO:Bytecode", names, &PyTuple_Type,
                                   &functions, &num_constants, &offsets, &words))
    return NULL;
  Bytecode *self = (Bytecode *)type->tp_alloc(type, 0);
  if (self == NULL) return NULL;
  self->functions = Py_NewRef(functions);
  self->code.num_constants = num_constants > 0 ? (size_t)num_constants : 0;
  if (fill(self, offsets, words) == 0) return (PyObject *)self;
  Py_DECREF(self);
  return NULL;
}

static void bytecode_dealloc(Bytecode *self) {
  if (self->offsets.obj != NULL) PyBuffer_Release(&self->offsets);
  if (self->words.obj != NULL) PyBuffer_Release(&self->words);
  PyMem_Free(self->code.functions);
  Py_XDECREF(self->functions);
  Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *add_marked(PyObject *indices, const unsigned char *marks, size_t count) {
  for (size_t i = 0; indices != NULL && i < count; i++)
    if (marks[i]) list_add(&indices, PyLong_FromSize_t(i));
  return indices;
}

static PyObject *bytecode_weight_constants(Bytecode *self, PyObject *Py_UNUSED(none)) {
  if (vm_weight_row(&self->code) < 0) return PyList_New(0);
  unsigned char *marks = PyMem_Calloc(self->code.num_constants + 1, 1);
  if (marks == NULL) return raise_no_memory();
  vm_mark_weights(&self->code, marks);
  PyObject *indices = add_marked(PyList_New(0), marks, self->code.num_constants);
  PyMem_Free(marks);
  return indices;
}

static PyMethodDef bytecode_methods[] = {
    {"weight_constants", (PyCFunction)bytecode_weight_constants, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

PyTypeObject Bytecode_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "runtime._core.Bytecode",
    .tp_basicsize = sizeof(Bytecode),
    .tp_new = bytecode_new,
    .tp_dealloc = (destructor)bytecode_dealloc,
    .tp_methods = bytecode_methods,
    .tp_flags = Py_TPFLAGS_DEFAULT,
};

/* The global functions that every program has, as Functions; each is made at its first look-up. */
#include "python/built_in.h"

#include "module/global.h"
#include "python/call/function.h"
#include "python/container.h"
#include "python/exception.h"

static PyObject *functions; /* by name; never freed, as the callees */

static PyObject *make(PyObject *name, dso_function_object *object) {
  struct callee *callee = PyMem_Calloc(1, sizeof *callee);
  if (callee == NULL) return raise_no_memory();
  callee_call_object(callee, &object->object);
  callee->name = Py_NewRef(name);
  PyObject *function = function_new(callee, Py_None, Py_None);
  if (function != NULL && PyDict_SetItem(functions, name, function) == 0) return function;
  Py_XDECREF(function);
  return NULL;
}

PyObject *built_in_function(PyObject *Py_UNUSED(module), PyObject *name) {
  const char *text = PyUnicode_AsUTF8(name);
  if (text == NULL && PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) {
    PyErr_Clear(); /* lone surrogates: none has such a name */
    Py_RETURN_NONE;
  }
  if (text == NULL || (functions == NULL && (functions = PyDict_New()) == NULL)) return NULL;
  PyObject *known = PyDict_GetItemWithError(functions, name);
  if (known != NULL || PyErr_Occurred()) return Py_XNewRef(known);
  dso_function_object *object = built_in_find(text);
  return object != NULL ? make(name, object) : Py_NewRef(Py_None);
}

PyObject *built_in_names(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none)) {
  PyObject *names = PyList_New(0);
  for (const struct built_in_function *row = built_in_functions; names != NULL && row->name != NULL;
       row++)
    list_add(&names, PyUnicode_FromString(row->name));
  return names;
}

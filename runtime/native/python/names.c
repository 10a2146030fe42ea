/* The names of dynamic symbols, as Python lists. */
#include "python/names.h"

#include "elf/layout.h"

const char *symbol_name(PyObject *name) {
  Py_ssize_t length;
  const char *text = PyUnicode_AsUTF8AndSize(name, &length);
  if (text == NULL) PyErr_Clear();
  return text != NULL && strlen(text) == (size_t)length ? text : NULL;
}

static int append(void *names, const char *name) {
  PyObject *text = PyUnicode_DecodeUTF8(name, (Py_ssize_t)strlen(name), "backslashreplace");
  int status = text ? PyList_Append(names, text) : -1;
  Py_XDECREF(text);
  return status;
}

PyObject *symbol_names(const struct elf_image *image, elf_at at, const void *context,
                       const char *prefix) {
  PyObject *names = PyList_New(0);
  if (names != NULL && elf_visit_defined(image, at, context, prefix, append, names) != 0)
    Py_CLEAR(names);
  return names;
}

/* The names of dynamic symbols, as Python lists. */
#include "python/names.h"

#include "elf/layout.h"

const char *symbol_name(PyObject *name) {
  Py_ssize_t length;
  const char *text = PyUnicode_AsUTF8AndSize(name, &length);
  if (text == NULL) PyErr_Clear();
  return text != NULL && strlen(text) == (size_t)length ? text : NULL;
}

static int append(PyObject *names, const char *name) {
  PyObject *text = PyUnicode_DecodeUTF8(name, (Py_ssize_t)strlen(name), "backslashreplace");
  int status = text ? PyList_Append(names, text) : -1;
  Py_XDECREF(text);
  return status;
}

PyObject *symbol_names(const struct elf_image *image, elf_at at, const void *context,
                       const char *prefix) {
  PyObject *names = PyList_New(0);
  size_t length = strlen(prefix);
  /* Symbol 0 is reserved (gABI, Symbol Table). */
  for (uint64_t i = 1; names != NULL && i < image->num_symbols; i++) {
    struct elf_symbol symbol;
    const char *name = elf_symbol_at(image, at, context, i, &symbol);
    int wanted =
        symbol.section != SHN_UNDEF &&
        (symbol.type == STT_FUNC || symbol.type == STT_GNU_IFUNC || symbol.type == STT_OBJECT);
    if (wanted && strncmp(name, prefix, length) == 0 && append(names, name) != 0) Py_CLEAR(names);
  }
  return names;
}

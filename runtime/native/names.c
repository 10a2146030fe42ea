#include "names.h"

#include "elf_layout.h"

static int is_wanted(const struct elf_symbol *symbol, enum names_of wanted) {
  if (wanted == NAMES_OF_UNDEFINED) return symbol->section == SHN_UNDEF;
  return symbol->section != SHN_UNDEF && symbol->type == STT_FUNC;
}

static int append(PyObject *names, const char *name) {
  PyObject *text = PyUnicode_DecodeUTF8(name, (Py_ssize_t)strlen(name), "backslashreplace");
  int status = text ? PyList_Append(names, text) : -1;
  Py_XDECREF(text);
  return status;
}

PyObject *symbol_names(const struct elf_image *image, elf_at at, const void *context,
                       enum names_of wanted, const char *prefix) {
  PyObject *names = PyList_New(0);
  if (names == NULL) return NULL;
  /* Symbol 0 is reserved (gABI, Symbol Table). */
  for (uint64_t i = 1; i < image->num_symbols; i++) {
    struct elf_symbol symbol;
    const char *name = elf_symbol_at(image, at, context, i, &symbol);
    if (is_wanted(&symbol, wanted) && strncmp(name, prefix, strlen(prefix)) == 0 &&
        append(names, name) != 0) {
      Py_DECREF(names);
      return NULL;
    }
  }
  return names;
}

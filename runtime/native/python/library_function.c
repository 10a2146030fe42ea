/* From the name of a function to its callee, by the symbols of a library. */
#include "python/exception.h"
#include "python/library.h"
#include "python/names.h"

int library_find(const Library *self, PyObject *name, struct elf_symbol *symbol) {
  const char *text = symbol_name(name);
  return text != NULL && loaded_symbol(&self->loaded, text, symbol);
}

int library_find_code(const Library *self, PyObject *name, const uint8_t **code) {
  struct elf_symbol symbol;
  return library_find(self, name, &symbol) && loaded_code(&self->loaded, &symbol, code) == NULL;
}

struct callee *callee_found(PyObject *path, PyObject *callees, PyObject *name, int status,
                            struct found_function *found, const struct load_error *error) {
  if (status == 0) return NULL;
  if (status > 0) return callee_add(callees, name, callee_new(name, found));
  if (error->is_memory) return raise_no_memory();
  (void)raise_load_error(path, error->reason, "%s", error->message);
  return NULL;
}

struct callee *library_look_up(Library *self, PyObject *name) {
  struct found_function found;
  struct load_error error;
  const char *text = symbol_name(name);
  int status = text != NULL ? loaded_function(&self->loaded, text, &found, &error) : 0;
  return callee_found(self->path, self->callees, name, status, &found, &error);
}

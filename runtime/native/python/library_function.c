/* From the name of a function to its callee, by the symbols of a library. */
#include "python/library.h"

#include <string.h>

#include "python/exception.h"

int library_find(const Library *self, const char *prefix, PyObject *name,
                 struct elf_symbol *symbol) {
  PyObject *full = PyUnicode_FromFormat("%s%U", prefix, name);
  if (full == NULL) return -1;
  Py_ssize_t length;
  const char *text = PyUnicode_AsUTF8AndSize(full, &length);
  int found = 0;
  if (text == NULL) PyErr_Clear(); /* no symbol name contains lone surrogates */
  else if (strlen(text) == (size_t)length) found = loaded_symbol(&self->loaded, text, symbol);
  Py_DECREF(full);
  return found;
}

/* Find the metadata of a function: 1 if found, 0 if absent, -1 with an exception set. */
static int find_facts(const Library *self, PyObject *name, const uint8_t **text, size_t *nbytes) {
  struct elf_symbol symbol;
  int found = library_find(self, "__packer_fn_", name, &symbol);
  if (found <= 0) return found;
  const char *wrong = loaded_data(&self->loaded, &symbol, text);
  *nbytes = (size_t)symbol.size;
  if (wrong == NULL) return 1;
  return as_status(
      raise_symbol_error(self->path, "malformed", "__packer_fn_", name, symbol.value, wrong));
}

static struct callee *make_callee(const Library *self, PyObject *name, const uint8_t *text,
                                  size_t nbytes) {
  const char *wrong;
  struct callee *callee = callee_new(name, text, nbytes, &wrong);
  if (callee == NULL && wrong != NULL)
    raise_load_error(self->path, "malformed", "__packer_fn_%U: %s", name, wrong);
  return callee;
}

/* Find the code at the symbol <prefix><name>: 1 if found, 0 if absent, -1 with an exception set. */
static int find_code(const Library *self, const char *prefix, PyObject *name,
                     const uint8_t **code) {
  struct elf_symbol symbol;
  int found = library_find(self, prefix, name, &symbol);
  if (found <= 0) return found;
  const char *wrong = loaded_code(&self->loaded, &symbol, code);
  if (wrong == NULL) return 1;
  return as_status(raise_symbol_error(self->path, "malformed", prefix, name, symbol.value, wrong));
}

/* ---- The three ways to find a function. Each returns a new callee, or NULL. It sets an exception
 * unless the function is absent. */

/* __tvm_ffi_<name>, with or without metadata. */
static struct callee *find_safe(const Library *self, PyObject *name) {
  const uint8_t *code, *text = NULL;
  size_t nbytes = 0;
  if (find_code(self, "__tvm_ffi_", name, &code) <= 0) return NULL;
  if (find_facts(self, name, &text, &nbytes) < 0) return NULL;
  struct callee *callee = make_callee(self, name, text, nbytes);
  if (callee != NULL) callee_call_safe(callee, code);
  return callee;
}

static int find_packed_code(const Library *self, PyObject *name, const uint8_t **code) {
  int found = find_code(self, "", name, code);
  if (found == 0)
    raise_load_error(self->path, "malformed",
                     "__packer_fn_%U: declares a packed C function, found no symbol %R", name,
                     name);
  return found == 1 ? 0 : -1;
}

/* <name>, if its metadata declares it a packed C function. */
static struct callee *find_declared(const Library *self, PyObject *name) {
  const uint8_t *code, *text;
  size_t nbytes;
  if (find_facts(self, name, &text, &nbytes) <= 0) return NULL;
  struct callee *callee = make_callee(self, name, text, nbytes);
  if (callee == NULL) return NULL;
  if (callee->facts.is_packed && find_packed_code(self, name, &code) == 0) {
    callee_call_packed(callee, code);
    return callee;
  }
  callee_free(callee);
  return NULL;
}

int library_find_code(const Library *self, PyObject *name, const uint8_t **code) {
  struct elf_symbol symbol;
  int found = library_find(self, "", name, &symbol);
  return found > 0 ? loaded_code(&self->loaded, &symbol, code) == NULL : found;
}

struct callee *library_make_packed(const Library *self, PyObject *name, const uint8_t *code) {
  struct callee *callee = make_callee(self, name, NULL, 0);
  if (callee != NULL) callee_call_packed(callee, code);
  return callee;
}

/* <name> without metadata: a packed C function, if TVM built the library. */
static struct callee *find_plain(const Library *self, PyObject *name) {
  const uint8_t *code;
  if (library_find_code(self, name, &code) <= 0 || !loaded_is_tvm(&self->loaded)) return NULL;
  return library_make_packed(self, name, code);
}

struct callee *library_look_up(Library *self, PyObject *name) {
  struct callee *(*const ways[])(const Library *, PyObject *) = {find_safe, find_declared,
                                                                 find_plain};
  struct callee *callee = NULL;
  for (size_t i = 0; i < sizeof ways / sizeof *ways && callee == NULL; i++) {
    callee = ways[i](self, name);
    if (PyErr_Occurred()) return NULL;
  }
  return callee_add(self->callees, name, callee);
}

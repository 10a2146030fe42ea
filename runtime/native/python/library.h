/* Library: one open shared object. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "library/loaded.h"
#include "library/pieces.h"
#include "python/call/callee.h"

extern PyTypeObject Library_Type;

typedef struct {
  PyObject_HEAD
  PyObject *path;    /* str */
  PyObject *callees; /* name -> capsule of struct callee */
  PyObject *frees;   /* set: the functions that release handles; NULL until asked */
  PyObject *types;   /* dict: kind of a handle -> CType; NULL until asked */
  PyObject *origin;  /* the Library whose code this one calls for it, or NULL */
  PyObject *verify;  /* the callable that verifies `pieces`, or NULL */
  int is_open;
  int descriptor; /* owned: of the open file, or -1 */
  struct loaded loaded;
  struct pieces pieces; /* mapped by map_pieces, from this offset of the file on */
  unsigned long long pieces_offset;
} Library;

/* ---- library_function.c */

/* Find a symbol that this object defines; return true if there is one. */
int library_find(const Library *self, PyObject *name, struct elf_symbol *symbol);

/* Find the code at <name>, whatever its C type; return true if there is some. */
int library_find_code(const Library *self, PyObject *name, const uint8_t **code);

/* Add the callee of a function that was found (status 1), or raise `error` (-1). NULL with an exception
 * set, or without one (0). */
struct callee *callee_found(PyObject *path, PyObject *callees, PyObject *name, int status,
                            struct found_function *found, const struct load_error *error);

/* Find a function and return its callee, which the library owns. NULL with an exception set, or
 * without one if there is no such function. */
struct callee *library_look_up(Library *self, PyObject *name);

/* Bytes of a library that must be verified before they are read (library/pieces.h). */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "abi/proof.h"

struct pieces;

/* The proof of a view of a library with mapped pieces; NULL for any other object, without an
 * exception. It is valid as long as the view. */
struct proof *proof_of(PyObject *data);

/* Verify bytes, as proof->prove does. Returns 0, or -1 with an exception set. `proof` may be NULL. */
int proof_make(struct proof *proof, const void *bytes, Py_ssize_t nbytes, int is_copied);

/* A verify function of struct pieces: the context is the Library, whose callable verifies. */
int proof_call(void *library, size_t first, size_t count, uint8_t *copy);

/* prove(view): verify all bytes of a view, and return it. */
PyObject *core_prove(PyObject *module, PyObject *view);

/* Verification by the program, of bytes that are about to be read. */
#include "python/proof.h"

#include <string.h>

#include "python/library.h"
#include "python/span.h"

struct proof *proof_of(PyObject *data) {
  if (!PyMemoryView_Check(data)) return NULL;
  PyObject *exporter = PyMemoryView_GET_BUFFER(data)->obj;
  PyObject *owner =
      exporter != NULL && Py_IS_TYPE(exporter, &Span_Type) ? span_owner(exporter) : NULL;
  if (owner == NULL || !Py_IS_TYPE(owner, &Library_Type)) return NULL;
  Library *library = (Library *)owner;
  return library->pieces.bytes != NULL ? &library->pieces.proof : NULL;
}

int proof_make(struct proof *proof, const void *bytes, Py_ssize_t nbytes, int is_copied) {
  if (proof == NULL || proof->prove(proof, bytes, (size_t)nbytes, is_copied) == 0) return 0;
  if (!PyErr_Occurred()) PyErr_SetFromErrno(PyExc_OSError);
  return -1;
}

/* Python's bytes are copied: a traceback may keep a view of them. */
static int take_bytes(PyObject *bytes, uint8_t *copy, Py_ssize_t nbytes) {
  Py_buffer view;
  if (PyObject_GetBuffer(bytes, &view, PyBUF_SIMPLE) != 0) return -1;
  int is_whole = view.len == nbytes;
  if (is_whole) memcpy(copy, view.buf, (size_t)nbytes);
  else PyErr_Format(PyExc_ValueError, "verify: expected %zd bytes, found %zd", nbytes, view.len);
  PyBuffer_Release(&view);
  return is_whole ? 0 : -1;
}

int proof_call(void *library, size_t first, size_t count, uint8_t *copy) {
  const Library *self = library;
  PyObject *bytes = PyObject_CallFunction(self->verify, "nnO", (Py_ssize_t)first, (Py_ssize_t)count,
                                          copy != NULL ? Py_True : Py_False);
  if (bytes == NULL) return -1;
  Py_ssize_t nbytes = (Py_ssize_t)(count * self->pieces.piece_nbytes);
  int status = copy != NULL ? take_bytes(bytes, copy, nbytes) : 0;
  Py_DECREF(bytes);
  return status;
}

PyObject *core_prove(PyObject *Py_UNUSED(module), PyObject *view) {
  struct proof *proof = proof_of(view);
  if (proof != NULL) {
    const Py_buffer *bytes = PyMemoryView_GET_BUFFER(view);
    if (proof_make(proof, bytes->buf, bytes->len, 0) != 0) return NULL;
  }
  return Py_NewRef(view);
}

/* Verification by the program, of bytes that are about to be read. */
#include "python/proof.h"

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

int proof_make(struct proof *proof, const void *bytes, Py_ssize_t nbytes) {
  if (proof == NULL || proof->prove(proof, bytes, (size_t)nbytes) == 0) return 0;
  if (!PyErr_Occurred()) PyErr_SetFromErrno(PyExc_OSError);
  return -1;
}

int proof_call(void *callable, size_t first, size_t count) {
  PyObject *done = PyObject_CallFunction(callable, "nn", (Py_ssize_t)first, (Py_ssize_t)count);
  Py_XDECREF(done);
  return done != NULL ? 0 : -1;
}

PyObject *core_prove(PyObject *Py_UNUSED(module), PyObject *view) {
  struct proof *proof = proof_of(view);
  if (proof != NULL) {
    const Py_buffer *bytes = PyMemoryView_GET_BUFFER(view);
    if (proof_make(proof, bytes->buf, bytes->len) != 0) return NULL;
  }
  return Py_NewRef(view);
}

/* The checksum list of a library, verified for Python. */
#include "python/verify_checksums.h"

#include "python/exception.h"

PyObject *verify_checksums(PyObject *path, const char *symbol, checksums_find find,
                           const void *library) {
  struct checksums checksums;
  struct load_error error;
  if (checksums_verify(symbol, find, library, &checksums, &error) != 0)
    return raise_load_error(path, error.reason, "%s", error.message);
  return checksums.has_blob ? PyLong_FromUnsignedLong(checksums.structure) : Py_NewRef(Py_None);
}

/* Path arguments: from Python to bytes and back. */
#include "python/path.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "python/exception.h"

static PyObject *refuse(PyObject *path, const char *format, const char *text) {
  PyObject *shown = path_str(path);
  if (shown != NULL) raise_load_error(shown, "io", format, text);
  Py_XDECREF(shown);
  return NULL;
}

/* A bare name is relative to the working directory; dlopen never searches the library path for it.
 * The path is not resolved further, so that $ORIGIN is the folder that the caller named. */
PyObject *path_bytes(PyObject *argument) {
  PyObject *given, *path;
  char cwd[PATH_MAX];
  if (!PyUnicode_FSConverter(argument, &given)) return NULL;
  const char *text = PyBytes_AS_STRING(given);
  if (*text == '/') return given;
  if (*text == '\0') path = refuse(given, "%s", "expected a path, found an empty one");
  else if (getcwd(cwd, sizeof cwd) == NULL)
    path = refuse(given, "the working directory: %s", strerror(errno));
  else path = PyBytes_FromFormat("%s%s%s", cwd, cwd[1] != '\0' ? "/" : "", text);
  Py_DECREF(given);
  return path;
}

PyObject *path_str(PyObject *path) {
  return PyUnicode_DecodeFSDefaultAndSize(PyBytes_AS_STRING(path), PyBytes_GET_SIZE(path));
}

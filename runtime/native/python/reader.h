/* Reader: the primitives of a blob for Python, by the reader of libdso. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "blob/reader.h"

typedef struct {
  PyObject_HEAD
  PyObject *view;       /* a read-only memoryview; `reader` has its address */
  PyObject *path;       /* a str, or None: it may have no form in UTF-8, so `reader` has none */
  PyObject *where;      /* a str */
  PyObject *where_text; /* bytes: the same for `reader` */
  struct reader reader;
} Reader;

extern PyTypeObject Reader_Type;

/* A reader of a range of the same bytes; NULL with an exception set. */
PyObject *reader_part(Reader *self, size_t start, size_t end);

/* Skip the nbytes header of a symbol: offsets count from its end. Returns 0, or -1 with an exception set. */
int reader_skip_header(Reader *self);

/* A view of bytes of a reader; NULL with an exception set. */
PyObject *reader_view(const Reader *self, const void *bytes, size_t nbytes);

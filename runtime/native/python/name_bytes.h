/* Names as bytes: a byte that is not UTF-8 is a lone surrogate in Python, as Reader.read_name has it. */
#pragma once

#include "python/interpreter.h"

/* The bytes of a name; NULL with UnicodeEncodeError for another surrogate. A NUL follows them. */
static inline PyObject *name_bytes(PyObject *name) {
  return PyUnicode_AsEncodedString(name, "utf-8", "surrogateescape");
}

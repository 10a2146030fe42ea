/* Whether Python can still be entered. */
#ifndef DSO_PACKER_NATIVE_INTERPRETER_H
#define DSO_PACKER_NATIVE_INTERPRETER_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* While the interpreter ends, asking for the GIL ends the thread or hangs. */
static inline int interpreter_runs(void) {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsInitialized() && !Py_IsFinalizing();
#else
  return Py_IsInitialized() && !_Py_IsFinalizing();
#endif
}

#endif

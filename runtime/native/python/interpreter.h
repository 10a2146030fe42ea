/* Whether Python can still be entered. */
#ifndef DSO_PACKER_PYTHON_INTERPRETER_H
#define DSO_PACKER_PYTHON_INTERPRETER_H

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

/* The thread state that has the GIL, or NULL: of this thread, from 3.12 on; before, of any. */
static inline PyThreadState *interpreter_state(void) {
#if PY_VERSION_HEX >= 0x030D0000
  return PyThreadState_GetUnchecked();
#else
  return _PyThreadState_UncheckedGet();
#endif
}

#endif

/* The state of the interpreter: whether it still runs, and who holds the GIL. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Return true if the GIL can still be taken. While the interpreter finalises, taking the GIL ends
 * the thread or blocks it for ever. */
static inline int interpreter_runs(void) {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsInitialized() && !Py_IsFinalizing();
#else
  return Py_IsInitialized() && !_Py_IsFinalizing();
#endif
}

/* The thread state that holds the GIL, or NULL. Before 3.12 it may belong to another thread; from
 * 3.12 on it is this thread's. */
static inline PyThreadState *interpreter_state(void) {
#if PY_VERSION_HEX >= 0x030D0000
  return PyThreadState_GetUnchecked();
#else
  return _PyThreadState_UncheckedGet();
#endif
}

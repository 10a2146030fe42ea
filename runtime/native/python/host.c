/* Python as the host of the core (abi/host.h): import look-up, the GIL, signals. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "python/host.h"

#include <time.h>

#include "abi/host.h"
#include "python/exception.h"
#include "python/imports.h"
#include "python/interpreter.h"

/* ---- Signals during long runs of bytecode */

/* Another thread may take 5 ms to release the GIL, so a run requests it at most once per period. */
enum { PERIOD_MS = 50 };

static int64_t now_ms(void) {
  struct timespec now = {0};
  (void)clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Stores the exception for the call that it ends, as for an exception of a callback. */
static int check_signals(void) {
  PyGILState_STATE gil = PyGILState_Ensure();
  int status = PyErr_CheckSignals();
  if (status != 0) exception_store();
  PyGILState_Release(gil);
  return status;
}

static int poll(int64_t *next) {
  int64_t now = now_ms();
  int is_first = *next == 0;
  if (now < *next) return 0;
  *next = now + PERIOD_MS;
  return is_first || !interpreter_runs() ? 0 : check_signals();
}

/* ---- The GIL */

static void *suspend(void) {
  return interpreter_runs() && PyGILState_Check() ? PyEval_SaveThread() : NULL;
}

static void resume(void *state) { PyEval_RestoreThread(state); }

void host_fill(void) {
  host = (struct host){
      .find_import = imports_find,
      .find_weight = imports_find_weight,
      .forget_context = imports_forget,
      .suspend = suspend,
      .resume = resume,
      .poll = poll,
  };
}

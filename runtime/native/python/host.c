/* Python as the host of the core: look-ups, the GIL, signals. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "python/host.h"

#include <time.h>

#include "abi/host.h"
#include "python/exception.h"
#include "python/imports.h"
#include "python/interpreter.h"

/* ---- Signals during long runs of bytecode */

/* The GIL may take another thread 5 ms to give, so a run asks for it at most so often. */
enum { PERIOD_MS = 50 };

static int64_t now_ms(void) {
  struct timespec now = {0};
  (void)clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The exception is left to the call that ends by it, as one of a callback is. */
static int check_signals(void) {
  PyGILState_STATE gil = PyGILState_Ensure();
  int status = PyErr_CheckSignals();
  if (status != 0) exception_leave();
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
      .forget_context = imports_forget,
      .suspend = suspend,
      .resume = resume,
      .poll = poll,
  };
}

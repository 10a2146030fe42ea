/* Python as the host of the core (abi/host.h): import look-up, the GIL, signals. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "python/host.h"

#include <time.h>

#include "abi/host.h"
#include "abi/raised.h"
#include "python/call/callback.h"
#include "python/exception.h"
#include "python/imports.h"
#include "python/interpreter.h"

/* ---- Signals during long runs of bytecode */

static int64_t now(void) {
  struct timespec now = {0};
  (void)clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Stores the exception for the call that it ends, as for an exception of a callback. */
static int poll(void) {
  if (!interpreter_runs()) return 0;
  PyGILState_STATE gil = PyGILState_Ensure();
  int status = PyErr_CheckSignals();
  if (status != 0) exception_store();
  PyGILState_Release(gil);
  return status;
}

/* ---- Global functions, and printing */

/* Call a function of a module with one argument; NULL with an exception set. */
static PyObject *call_by_name(const char *file, const char *function, PyObject *argument) {
  PyObject *module = argument != NULL ? PyImport_ImportModule(file) : NULL;
  PyObject *answer = module ? PyObject_CallMethod(module, function, "O", argument) : NULL;
  Py_XDECREF(module);
  Py_XDECREF(argument);
  return answer;
}

static int check_interpreter(void) {
  if (interpreter_runs()) return 0;
  return raised_format("RuntimeError", "the Python interpreter is shutting down");
}

static void *find_global(const char *name) {
  if (check_interpreter() != 0) return NULL;
  PyGILState_STATE gil = PyGILState_Ensure();
  PyObject *callable =
      call_by_name("runtime.registry", "get_global_func", PyUnicode_FromString(name));
  dso_object *function = callable != NULL ? callback_new(callable, NULL) : NULL;
  if (function == NULL) exception_store();
  Py_XDECREF(callable);
  PyGILState_Release(gil);
  return function;
}

/* As print() does: sys.stdout may be replaced. */
static int print(const char *text, size_t nbytes) {
  if (check_interpreter() != 0) return -1;
  PyGILState_STATE gil = PyGILState_Ensure();
  PyObject *printed = PyUnicode_DecodeUTF8(text, (Py_ssize_t)nbytes, "backslashreplace");
  PyObject *out = PySys_GetObject("stdout"); /* borrowed; None without one */
  int status = printed == NULL                 ? -1
               : out == NULL || out == Py_None ? 0
                                               : PyFile_WriteObject(printed, out, Py_PRINT_RAW);
  if (status != 0) exception_store();
  Py_XDECREF(printed);
  PyGILState_Release(gil);
  return status;
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
      .find_global = find_global,
      .print = print,
      .forget_context = imports_forget,
      .suspend = suspend,
      .resume = resume,
      .now = now,
      .poll = poll,
  };
}

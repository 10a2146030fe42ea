/* Python as the embedder of the core (abi/embedder.h): import look-up, the GIL, signals. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "python/embedder.h"

#include <time.h>

#include "abi/dlpack.h"
#include "abi/embedder.h"
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

/* ---- The current stream of PyTorch */

/* The attribute of an object by a path of two names, owned; NULL, also if `object` is NULL. */
static PyObject *attribute_of(PyObject *object, const char *first, const char *second) {
  PyObject *inner = object != NULL ? PyObject_GetAttrString(object, first) : NULL;
  PyObject *found = inner != NULL ? PyObject_GetAttrString(inner, second) : NULL;
  Py_XDECREF(inner);
  return found;
}

/* True if PyTorch has opened devices of this type; it calls ROCm's devices CUDA devices. */
static int has_devices(PyObject *torch, int32_t device_type) {
  PyObject *rocm = attribute_of(torch, "version", "hip");
  PyObject *is_open = attribute_of(torch, "cuda", "is_initialized");
  PyObject *answer = rocm && is_open ? PyObject_CallNoArgs(is_open) : NULL;
  int found = answer == Py_True && (rocm == Py_None ? DLPACK_CUDA : DLPACK_ROCM) == device_type;
  Py_XDECREF(rocm);
  Py_XDECREF(is_open);
  Py_XDECREF(answer);
  return found;
}

/* Only if the program has imported PyTorch: NULL otherwise, and after an error. */
static void *stream_of_torch(int32_t device_type, int32_t device_id) {
  PyObject *torch = PyMapping_GetItemString(PyImport_GetModuleDict(), "torch");
  PyObject *function = torch != NULL && has_devices(torch, device_type)
                           ? attribute_of(torch, "_C", "_cuda_getCurrentRawStream")
                           : NULL;
  PyObject *stream = function != NULL ? PyObject_CallFunction(function, "i", device_id) : NULL;
  void *address = stream != NULL ? PyLong_AsVoidPtr(stream) : NULL;
  PyErr_Clear();
  Py_XDECREF(stream);
  Py_XDECREF(function);
  Py_XDECREF(torch);
  return address;
}

static void *current_stream(int32_t device_type, int32_t device_id) {
  if ((device_type != DLPACK_CUDA && device_type != DLPACK_ROCM) || !interpreter_runs())
    return NULL;
  PyGILState_STATE gil = PyGILState_Ensure();
  void *stream = stream_of_torch(device_type, device_id);
  PyGILState_Release(gil);
  return stream;
}

/* ---- The GIL */

static void *suspend(void) {
  return interpreter_runs() && PyGILState_Check() ? PyEval_SaveThread() : NULL;
}

static void resume(void *state) { PyEval_RestoreThread(state); }

void embedder_fill(void) {
  embedder = (struct embedder){
      .find_import = imports_find,
      .find_weight = imports_find_weight,
      .find_global = find_global,
      .print = print,
      .current_stream = current_stream,
      .forget_context = imports_forget,
      .suspend = suspend,
      .resume = resume,
      .now = now,
      .poll = poll,
  };
}

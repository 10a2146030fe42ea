/* The import search of a library's code: its modules, and its cache of functions. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "python/imports.h"

#include "python/call/callback.h"
#include "library/context.h"
#include "python/exception.h"
#include "library/in_call.h"
#include "python/interpreter.h"
#include "abi/raised.h"
#include "python/tensor/tensor.h"

static const char CONTEXT[] = "runtime._core.context";

/* ---- The modules of a context: a list of weak references, searched in the order of binding */

/* Return a list of the live modules; removes the references to dead ones. */
static PyObject *live_modules(const struct context *context) {
  PyObject *references = context->modules, *modules = PyList_New(0);
  for (Py_ssize_t i = 0;
       references != NULL && modules != NULL && i < PyList_GET_SIZE(references);) {
    PyObject *module = PyObject_CallNoArgs(PyList_GET_ITEM(references, i));
    int status =
        module == Py_None ? PySequence_DelItem(references, i) : PyList_Append(modules, module);
    i += module != Py_None;
    Py_XDECREF(module);
    if (status != 0) Py_CLEAR(modules);
  }
  return modules;
}

static void retire(dso_object *function, const char *name, void *context) {
  callback_retire(function, context, name);
}

static int drop(dso_object *function, void *Py_UNUSED(arg)) {
  callback_drop(function);
  return 0;
}

static int append(PyObject *object, void *held) { return PyList_Append(held, object); }

static int hold(dso_object *function, void *held) {
  return callback_traverse(function, append, held);
}

/* One barrier serves all functions, because it interrupts every thread. The end of a callable may
 * close the library and free the cache, so a list holds all of them until the last is dropped. If
 * there is no memory for it, they stay until the library is closed. */
void imports_retire(struct context *context) {
  PyObject *pending = exception_take(), *held = PyList_New(0);
  import_cache_retire(&context->import_cache, retire, context);
  in_call_barrier();
  if (held != NULL && import_cache_visit(&context->import_cache, hold, held) == 0)
    (void)import_cache_visit(&context->import_cache, drop, NULL);
  PyErr_Clear();
  Py_XDECREF(held);
  if (pending != NULL) exception_set(pending);
}

/* Called when a module dies. When the last module dies, the context drops its cached callables:
 * they reference modules that view the library, and would keep it open. Only threads that the
 * library started can still call its code. */
static PyObject *module_gone(PyObject *capsule, PyObject *Py_UNUSED(reference)) {
  struct context *context = context_of(PyCapsule_GetPointer(capsule, CONTEXT));
  PyObject *modules = context ? live_modules(context) : NULL;
  if (modules != NULL && PyList_GET_SIZE(modules) == 0) imports_retire(context);
  if (modules == NULL) PyErr_Clear();
  Py_XDECREF(modules);
  Py_RETURN_NONE;
}

static PyObject *make_reference(struct context *context, PyObject *module) {
  static PyMethodDef method = {"module_gone", module_gone, METH_O, NULL};
  PyObject *capsule = PyCapsule_New(context, CONTEXT, NULL);
  PyObject *callback = capsule ? PyCFunction_New(&method, capsule) : NULL;
  PyObject *reference = callback ? PyWeakref_NewRef(module, callback) : NULL;
  Py_XDECREF(callback);
  Py_XDECREF(capsule);
  return reference;
}

int imports_bind(struct context *context, PyObject *module) {
  if (context->modules == NULL && (context->modules = PyList_New(0)) == NULL) return -1;
  PyObject *reference = make_reference(context, module);
  int status = reference ? PyList_Append(context->modules, reference) : -1;
  Py_XDECREF(reference);
  return status;
}

void imports_forget(struct context *context) {
  PyObject *modules = context->modules;
  context->modules = NULL;
  if (modules == NULL || !interpreter_runs()) return;
  PyGILState_STATE gil = PyGILState_Ensure();
  Py_DECREF(modules);
  PyGILState_Release(gil);
}

struct visit {
  visitproc visit;
  void *arg;
};

/* An object with further references is alive in any case, so its callable is not visited. */
static int visit_function(dso_object *function, void *arg) {
  const struct visit *visit = arg;
  uint64_t count = __atomic_load_n(&function->combined_ref_count, __ATOMIC_RELAXED);
  return (uint32_t)count == 1 ? callback_traverse(function, visit->visit, visit->arg) : 0;
}

int imports_traverse(const struct context *context, visitproc visit, void *arg) {
  struct visit both = {.visit = visit, .arg = arg};
  return import_cache_visit(&context->import_cache, visit_function, &both);
}

/* ---- Look-up */

/* Call a function of runtime/host_imports.py with the context's modules and a name. NULL with an
 * exception set. The function's name is interned: CPython's attribute cache keeps every name string
 * until another entry replaces it. */
static PyObject *search_modules(const struct context *context, const char *function,
                                const char *name) {
  PyObject *method = PyUnicode_InternFromString(function);
  PyObject *modules = method ? live_modules(context) : NULL;
  PyObject *file = modules ? PyImport_ImportModule("runtime.host_imports") : NULL;
  PyObject *wanted =
      file ? PyUnicode_DecodeUTF8(name, (Py_ssize_t)strlen(name), "surrogateescape") : NULL;
  PyObject *answer =
      wanted ? PyObject_CallMethodObjArgs(file, method, modules, wanted, NULL) : NULL;
  Py_XDECREF(method);
  Py_XDECREF(wanted);
  Py_XDECREF(file);
  Py_XDECREF(modules);
  return answer;
}

static dso_object *cache_function(struct context *context, const char *name, PyObject *answer,
                                  uint64_t version) {
  PyObject *provider = PyTuple_GET_ITEM(answer, 0), *callable = PyTuple_GET_ITEM(answer, 1);
  dso_object *function = import_cache_renew(&context->import_cache, name, provider, version);
  if (function != NULL) return function;
  function = callback_new(callable, NULL);
  if (function == NULL) return NULL;
  callback_keep(function, provider); /* so that no other provider gets this address */
  if (import_cache_add(&context->import_cache, name, provider, version, function) == 0)
    return function;
  return raise_no_memory();
}

static dso_object *look_up(struct context *context, const char *name) {
  uint64_t version =
      import_cache_version(); /* read first: the trees may change during the search */
  PyObject *answer = search_modules(context, "find_import", name); /* (provider, callable) */
  if (answer == NULL) return NULL;
  dso_object *function = cache_function(context, name, answer, version);
  Py_DECREF(answer);
  return function;
}

static int check_interpreter(void) {
  if (interpreter_runs()) return 0;
  return raised_format("RuntimeError", "the Python interpreter is shutting down");
}

void *imports_find(struct context *context, const char *name) {
  if (check_interpreter() != 0) return NULL;
  PyGILState_STATE gil = PyGILState_Ensure();
  dso_object *function = look_up(context, name);
  if (function == NULL) exception_store();
  PyGILState_Release(gil);
  return function;
}

/* The module of the library keeps the tensor. */
int imports_find_weight(struct context *context, const char *name, DLTensor *tensor) {
  if (check_interpreter() != 0) return -1;
  PyGILState_STATE gil = PyGILState_Ensure();
  PyObject *answer = search_modules(context, "find_weight", name);
  DLTensor *found = answer ? tensor_use(answer) : NULL;
  if (found != NULL) *tensor = *found;
  else exception_store();
  Py_XDECREF(answer);
  PyGILState_Release(gil);
  return found != NULL ? 0 : -1;
}

/* Modules as arguments. */
#include "python/call/callback.h"
#include "python/call/convert.h"

int argument_module(struct call_frame *frame, Py_ssize_t index, PyObject *object) {
  dso_object *module = callback_new_module(object);
  if (module == NULL) return -1;
  frame_hold(frame, HOLD_FUNCTION)->function = module;
  return frame_pass(frame, index, DSO_MODULE, module);
}

/* A Module is callable (it calls its entry function), so this test precedes the one for
 * callables. */
int callable_is_module(PyObject *object) {
  PyObject *file = PyDict_GetItemString(PyImport_GetModuleDict(), "runtime.module");
  PyObject *class = file ? PyObject_GetAttrString(file, "Module") : NULL;
  int status = class != NULL && PyObject_IsInstance(object, class) == 1;
  PyErr_Clear();
  Py_XDECREF(class);
  return status;
}

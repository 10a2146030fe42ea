/* Session: the state of a model, and functions that use it. */
#include "python/session.h"

#include "python/call/function.h"
#include "python/exception.h"
#include "python/virtual_machine.h"
#include "abi/raised.h"
#include "session/session.h"

typedef struct {
  PyObject_HEAD
  struct session *session;
  PyObject *callees; /* of its functions, by name */
} Session;

/* Takes over the reference to `session`, which may be NULL with an error raised. */
static PyObject *wrap(struct session *session, uint64_t count) {
  if (session == NULL) return raise_native_error("session", count);
  Session *self = (Session *)Session_Type.tp_alloc(&Session_Type, 0);
  if (self != NULL) {
    self->session = session;
    if ((self->callees = PyDict_New()) != NULL) return (PyObject *)self;
    Py_DECREF(self);
  } else object_release(&session->object);
  return NULL;
}

static PyObject *session_make(PyTypeObject *Py_UNUSED(type), PyObject *args, PyObject *keywords) {
  static char *names[] = {"most", NULL};
  long long most;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "L:Session", names, &most)) return NULL;
  uint64_t count = raised_count();
  return wrap(session_new(most), count);
}

static void session_dealloc(Session *self) {
  Py_XDECREF(self->callees);
  object_release(&self->session->object);
  Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *session_function(Session *self, PyObject *args) {
  PyObject *machine, *name, *params, *owner;
  if (!PyArg_ParseTuple(args, "O!UO!O:function", &VirtualMachine_Type, &machine, &name,
                        &PyTuple_Type, &params, &owner))
    return NULL;
  const struct vm_routine *routine = virtual_machine_routine(machine, name);
  if (routine == NULL) return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
  const struct callee *callee = callee_find(self->callees, name);
  if (callee == NULL && PyErr_Occurred()) return NULL;
  if (callee == NULL)
    callee =
        callee_add(self->callees, name,
                   callee_of_object(name, params, vm_session_function(routine, self->session)));
  return callee != NULL ? function_new(callee, (PyObject *)self, owner) : NULL;
}

static PyObject *session_fork_of(Session *self, PyObject *Py_UNUSED(none)) {
  uint64_t count = raised_count();
  return wrap(session_fork(self->session), count);
}

static PyObject *session_forget(Session *self, PyObject *Py_UNUSED(none)) {
  uint64_t count = raised_count();
  if (session_reset(self->session) != 0) return raise_native_error("session", count);
  Py_RETURN_NONE;
}

static PyObject *session_rows(Session *self, void *Py_UNUSED(closure)) {
  uint64_t count = raised_count();
  int64_t length;
  return session_length(self->session, &length) == 0 ? PyLong_FromLongLong(length)
                                                     : raise_native_error("session", count);
}

static PyMethodDef session_methods[] = {
    {"function", (PyCFunction)session_function, METH_VARARGS, NULL},
    {"fork", (PyCFunction)session_fork_of, METH_NOARGS, NULL},
    {"reset", (PyCFunction)session_forget, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef session_getset[] = {
    {"length", (getter)session_rows, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject Session_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "runtime._core.Session",
    .tp_basicsize = sizeof(Session),
    .tp_new = session_make,
    .tp_dealloc = (destructor)session_dealloc,
    .tp_methods = session_methods,
    .tp_getset = session_getset,
    .tp_flags = Py_TPFLAGS_DEFAULT,
};

/* The requires_grad flag of PyTorch's tensors, which DLPack does not describe. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* How to read the flag of one type: from the TensorImpl, or by the attribute. */
struct requires_grad {
  _Bool (*of_impl)(const void *impl); /* or NULL */
  size_t impl_offset;                 /* where the Python object stores the pointer to it */
  getter get;                         /* NULL: the type has no such attribute */
  void *closure;
};

/* Fill *found for the type of `object`; 0, or -1 without an exception if it cannot be read. */
int requires_grad_find(PyObject *object, struct requires_grad *found);

/* Return the flag: 1, 0, or -1 with an exception set. */
static inline int requires_grad(const struct requires_grad *how, PyObject *object) {
  if (how->of_impl != NULL) {
    const char *place = (const char *)object + how->impl_offset;
    return how->of_impl(*(const void *const *)(const void *)place);
  }
  if (how->get == NULL) return 0;
  PyObject *value = how->get(object, how->closure);
  int status = value ? PyObject_IsTrue(value) : -1;
  Py_XDECREF(value);
  return status;
}

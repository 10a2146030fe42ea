/* TensorBase as a DLPack producer: `__dlpack__` and `__dlpack_device__`, without a copy. */
#include "tensor.h"

#include <stdlib.h>

#include "dlpack.h"

/* The consumer may drop it in any thread. */
static void end_export(Tensor *owner) {
  if (!Py_IsInitialized()) return;
  PyGILState_STATE gil = PyGILState_Ensure();
  owner->exports--;
  Py_DECREF(owner);
  PyGILState_Release(gil);
}

static void delete_versioned(DLManagedTensorVersioned *self) {
  end_export(self->manager_ctx);
  free(self);
}

static void delete_unversioned(DLManagedTensor *self) {
  end_export(self->manager_ctx);
  free(self);
}

/* A consumer renames the capsule as it takes the tensor over; else it goes with the capsule. */
static void drop_versioned(PyObject *capsule) {
  if (PyCapsule_IsValid(capsule, "dltensor_versioned"))
    delete_versioned(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
}

static void drop_unversioned(PyObject *capsule) {
  if (PyCapsule_IsValid(capsule, "dltensor"))
    delete_unversioned(PyCapsule_GetPointer(capsule, "dltensor"));
}

/* The capsule of a new managed tensor, which counts as an export from here on. */
static PyObject *export(Tensor *self, void *managed, const char *name, PyCapsule_Destructor drop) {
  PyObject *capsule = PyCapsule_New(managed, name, drop);
  if (capsule == NULL) {
    free(managed);
    return NULL;
  }
  Py_INCREF(self);
  self->exports++;
  return capsule;
}

static PyObject *export_versioned(Tensor *self) {
  DLManagedTensorVersioned *managed = malloc(sizeof *managed);
  if (managed == NULL) return PyErr_NoMemory();
  *managed = (DLManagedTensorVersioned){.major = DLPACK_MAJOR,
                                        .manager_ctx = self,
                                        .deleter = delete_versioned,
                                        .flags = self->is_readonly ? DLPACK_READ_ONLY : 0,
                                        .tensor = self->tensor};
  return export(self, managed, "dltensor_versioned", drop_versioned);
}

static PyObject *export_unversioned(Tensor *self) {
  if (self->is_readonly) {
    PyErr_SetString(PyExc_BufferError,
                    "a read-only tensor, which DLPack before 1.0 cannot say; pass max_version");
    return NULL;
  }
  DLManagedTensor *managed = malloc(sizeof *managed);
  if (managed == NULL) return PyErr_NoMemory();
  *managed = (DLManagedTensor){
      .tensor = self->tensor, .manager_ctx = self, .deleter = delete_unversioned};
  return export(self, managed, "dltensor", drop_unversioned);
}

static PyObject *refuse(const char *message) {
  PyErr_SetString(PyExc_BufferError, message);
  return NULL;
}

/* `dl_device`, a pair or None; 1 when it is another device than the tensor's, -1 on error. */
static int is_elsewhere(const Tensor *self, PyObject *device) {
  int type, id;
  if (device == Py_None) return 0;
  if (!PyArg_Parse(device, "(ii)", &type, &id)) return -1;
  return type != self->tensor.device.device_type || id != self->tensor.device.device_id;
}

/* Python specification of DLPack; `stream` is ignored: what we hand out has no pending work. */
static PyObject *tensor_dlpack(Tensor *self, PyObject *args, PyObject *keywords) {
  static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
  PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
  int major = 0, minor = 0;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$OOOO:__dlpack__", names, &stream, &version,
                                   &device, &copy) ||
      (version != Py_None && !PyArg_Parse(version, "(ii)", &major, &minor)))
    return NULL;
  int elsewhere = is_elsewhere(self, device);
  if (elsewhere < 0) return NULL;
  if (elsewhere > 0) return refuse("the tensor lies on another device, and is not copied there");
  if (copy == Py_True) return refuse("the tensor is shared without a copy; copy it yourself");
  if (tensor_use((PyObject *)self) == NULL) return NULL;
  return major >= DLPACK_MAJOR ? export_versioned(self) : export_unversioned(self);
}

static PyObject *tensor_dlpack_device(Tensor *self, PyObject *Py_UNUSED(none)) {
  return Py_BuildValue("(ii)", self->tensor.device.device_type, self->tensor.device.device_id);
}

PyMethodDef tensor_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))tensor_dlpack, METH_VARARGS | METH_KEYWORDS,
     "A DLPack capsule that views the memory and keeps it."},
    {"__dlpack_device__", (PyCFunction)tensor_dlpack_device, METH_NOARGS,
     "DLPack's (device_type, device_id)."},
    {NULL, NULL, 0, NULL},
};

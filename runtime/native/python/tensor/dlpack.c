/* TensorBase: the DLPack producer, `__dlpack__` and `__dlpack_device__`. */
#include "python/tensor/tensor.h"

#include <stdlib.h>

#include "device/device_api.h"
#include "abi/dlpack.h"
#include "python/exception.h"
#include "abi/heap.h"
#include "abi/raised.h"
#include "python/tensor/make.h"

/* The consumer may call the deleter in any thread. */
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

/* A consumer renames the capsule when it takes the tensor over. Otherwise the capsule's destructor
 * frees the tensor. */
static void drop_versioned(PyObject *capsule) {
  if (PyCapsule_IsValid(capsule, "dltensor_versioned"))
    delete_versioned(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
}

static void drop_unversioned(PyObject *capsule) {
  if (PyCapsule_IsValid(capsule, "dltensor"))
    delete_unversioned(PyCapsule_GetPointer(capsule, "dltensor"));
}

/* Make the capsule of a new managed tensor and count it as an export. */
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

static PyObject *export_versioned(Tensor *self, uint64_t flags) {
  DLManagedTensorVersioned *managed = heap_new(sizeof *managed);
  if (managed == NULL) return raise_no_memory();
  if (self->is_readonly) flags |= DLPACK_READ_ONLY;
  *managed = (DLManagedTensorVersioned){.major = DLPACK_MAJOR,
                                        .manager_ctx = self,
                                        .deleter = delete_versioned,
                                        .flags = flags,
                                        .tensor = self->tensor};
  return export(self, managed, "dltensor_versioned", drop_versioned);
}

static PyObject *export_unversioned(Tensor *self) {
  if (self->is_readonly)
    return PyErr_Format(PyExc_BufferError,
                        "a read-only tensor, which DLPack before 1.0 cannot express; pass "
                        "max_version");
  DLManagedTensor *managed = heap_new(sizeof *managed);
  if (managed == NULL) return raise_no_memory();
  *managed =
      (DLManagedTensor){.tensor = self->tensor, .manager_ctx = self, .deleter = delete_unversioned};
  return export(self, managed, "dltensor", drop_unversioned);
}

static PyObject *refuse(const char *message) {
  PyErr_SetString(PyExc_BufferError, message);
  return NULL;
}

/* Parse `dl_device`, the device that the consumer requests: a pair, or None for the tensor's own
 * device. 0, or -1 with an exception set. */
static int parse_goal(const Tensor *self, PyObject *device, DLDevice *goal) {
  *goal = self->tensor.device;
  if (device == Py_None || PyArg_Parse(device, "(ii)", &goal->device_type, &goal->device_id))
    return 0;
  return -1;
}

/* The consumer's work on `stream` must run after our work on the device. We have no stream that it
 * could wait for, so wait for everything that was launched. The stream -1 requests no wait (DLPack,
 * Python specification). Without a driver nothing was launched. */
static int wait_for_work(DLDevice device, PyObject *stream) {
  int status = 0;
  uint64_t count = raised_count();
  if (device.device_type == DLPACK_CPU || device.device_type == DLPACK_CUDA_HOST) return 0;
  if (PyLong_Check(stream) && PyLong_AsLong(stream) == -1) return PyErr_Occurred() ? -1 : 0;
  Py_BEGIN_ALLOW_THREADS
  const struct device_api *api = device_api(device.device_type);
  if (api != NULL && api->check(device.device_id) == 0) status = api->sync(device.device_id);
  else raised_forget();
  Py_END_ALLOW_THREADS
  if (status != 0) (void)raise_native_error("__dlpack__", count);
  return status;
}

static PyObject *export_as(Tensor *self, int major, uint64_t flags) {
  return major >= DLPACK_MAJOR ? export_versioned(self, flags) : export_unversioned(self);
}

static PyObject *export_copy(Tensor *self, DLDevice goal, int major) {
  Tensor *copy = (Tensor *)tensor_copy_to(self, goal);
  PyObject *capsule = copy ? export_as(copy, major, DLPACK_IS_COPIED) : NULL;
  Py_XDECREF(copy);
  return capsule;
}

/* DLPack, Python specification. */
static PyObject *tensor_dlpack(Tensor *self, PyObject *args, PyObject *keywords) {
  static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
  PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
  int major = 0, minor = 0;
  DLDevice goal;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$OOOO:__dlpack__", names, &stream, &version,
                                   &device, &copy) ||
      (version != Py_None && !PyArg_Parse(version, "(ii)", &major, &minor)) ||
      parse_goal(self, device, &goal) != 0 || tensor_use((PyObject *)self) == NULL)
    return NULL;
  int is_elsewhere = goal.device_type != self->tensor.device.device_type ||
                     goal.device_id != self->tensor.device.device_id;
  if (is_elsewhere && (copy == Py_False || goal.device_type != DLPACK_CPU))
    return refuse("the tensor is on another device; only a copy to the CPU is supported");
  if (is_elsewhere || copy == Py_True) return export_copy(self, goal, major);
  if (wait_for_work(goal, stream) != 0) return NULL;
  return export_as(self, major, 0);
}

static PyObject *tensor_dlpack_device(Tensor *self, PyObject *Py_UNUSED(none)) {
  return Py_BuildValue("(ii)", self->tensor.device.device_type, self->tensor.device.device_id);
}

static PyObject *tensor_prove_bytes(PyObject *self, PyObject *Py_UNUSED(none)) {
  if (tensor_prove(self) != 0) return NULL;
  Py_RETURN_NONE;
}

PyMethodDef tensor_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))tensor_dlpack, METH_VARARGS | METH_KEYWORDS,
     "Return a DLPack capsule that keeps the memory, or raise BufferError."},
    {"__dlpack_device__", (PyCFunction)tensor_dlpack_device, METH_NOARGS,
     "Return DLPack's (device_type, device_id)."},
    {"_prove", (PyCFunction)tensor_prove_bytes, METH_NOARGS,
     "Verify the bytes, if they are mapped from a signed file and were not verified yet."},
    {"_copy_from", (PyCFunction)tensor_copy_from, METH_O,
     "Copy the elements of another tensor of this shape and data type."},
    {NULL, NULL, 0, NULL},
};

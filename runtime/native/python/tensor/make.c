/* Tensors: new ones, copies, and imports by DLPack. */
#include "python/tensor/make.h"

#include "python/call/convert.h"
#include "python/device.h"
#include "python/exception.h"
#include "abi/raised.h"
#include "device/tensor_object.h"

/* Make the Tensor of an object and release the object; NULL with an exception set. */
static PyObject *wrap(dso_object *object) {
  PyObject *tensor = tensor_from_object(object, NULL);
  object_release(object);
  return tensor;
}

static PyObject *make(DLDevice device, DLDataType dtype, int ndim, const int64_t *shape) {
  dso_object *object;
  uint64_t count = raised_count();
  Py_BEGIN_ALLOW_THREADS
  object = tensor_object_new(device, dtype, ndim, shape);
  Py_END_ALLOW_THREADS
  return object != NULL ? wrap(object) : raise_native_error("empty", count);
}

/* ---- Layouts: `layout` is not a Python object, only the operand of the checks in layout.c */

static int lay_out(Tensor *layout, PyObject *shape, PyObject *dtype) {
  int code, bits, lanes;
  *layout = (Tensor){.shape = shape};
  return PyArg_ParseTuple(dtype, "iii", &code, &bits, &lanes) &&
                 tensor_parse_dtype(layout, code, bits, lanes) == 0
             ? tensor_lay_out(layout)
             : -1;
}

PyObject *core_empty(PyObject *Py_UNUSED(module), PyObject *args) {
  PyObject *shape, *dtype, *place, *tensor = NULL;
  DLDevice device;
  Tensor layout;
  if (!PyArg_ParseTuple(args, "O!O!O:empty", &PyTuple_Type, &shape, &PyTuple_Type, &dtype,
                        &place) ||
      device_from_object(place, &device) != 0)
    return NULL;
  if (lay_out(&layout, shape, dtype) == 0)
    tensor = make(device, layout.tensor.dtype, layout.tensor.ndim, layout.tensor.shape);
  PyMem_Free(layout.tensor.shape);
  return tensor;
}

/* ---- Copies */

static int copy(const DLTensor *to, const DLTensor *from) {
  int status;
  uint64_t count = raised_count();
  Py_BEGIN_ALLOW_THREADS
  status = tensor_copy(to, from);
  Py_END_ALLOW_THREADS
  if (status != 0) (void)raise_native_error("copy_from", count);
  return status;
}

PyObject *tensor_copy_from(Tensor *self, PyObject *other) {
  if (!tensor_check(other))
    return PyErr_Format(PyExc_TypeError, "_copy_from: expected a TensorBase");
  DLTensor *to = tensor_use((PyObject *)self), *from = to ? tensor_use(other) : NULL;
  if (from == NULL) return NULL;
  if (self->is_readonly)
    return PyErr_Format(PyExc_ValueError,
                        "copy_from: expected a writable tensor, found %R, which "
                        "is read-only",
                        self);
  if (copy(to, from) != 0) return NULL;
  Py_RETURN_NONE;
}

PyObject *tensor_copy_to(Tensor *self, DLDevice device) {
  DLTensor *from = tensor_use((PyObject *)self);
  if (from == NULL) return NULL;
  PyObject *made = make(device, from->dtype, from->ndim, from->shape);
  if (made != NULL && copy(&((Tensor *)made)->tensor, from) != 0) Py_CLEAR(made);
  return made;
}

/* ---- The DLPack consumer: it renames the capsule, so that the capsule's destructor does not free
 * the tensor (DLPack, Python specification). */

static void drop_unversioned(void *managed) {
  DLManagedTensor *self = managed;
  if (self->deleter != NULL) self->deleter(self);
}

static void drop_versioned(void *managed) {
  DLManagedTensorVersioned *self = managed;
  if (self->deleter != NULL) self->deleter(self);
}

static PyObject *adopt(PyObject *capsule, const DLTensor *tensor, void *managed,
                       void (*drop)(void *), const char *used_name, unsigned flags) {
  uint64_t count = raised_count();
  dso_object *object = tensor_object_adopt(tensor, managed, drop);
  if (object == NULL) return raise_native_error("from_dlpack", count);
  tensor_object_mark(object, flags);
  (void)PyCapsule_SetName(capsule, used_name);
  return wrap(object);
}

static PyObject *adopt_versioned(PyObject *capsule) {
  DLManagedTensorVersioned *managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");
  if (managed->major != DLPACK_MAJOR)
    return PyErr_Format(PyExc_BufferError, "from_dlpack: expected DLPack version %d, found %u.%u",
                        DLPACK_MAJOR, (unsigned)managed->major, (unsigned)managed->minor);
  if (dlpack_is_padded(managed))
    return PyErr_Format(PyExc_BufferError, "from_dlpack: %s", DLPACK_PADDED_TEXT);
  return adopt(capsule, &managed->tensor, managed, drop_versioned, "used_dltensor_versioned",
               managed->flags & DLPACK_READ_ONLY ? TENSOR_READ_ONLY : 0);
}

static PyObject *take_capsule(PyObject *capsule) {
  if (PyCapsule_IsValid(capsule, "dltensor_versioned")) return adopt_versioned(capsule);
  if (PyCapsule_IsValid(capsule, "dltensor")) {
    DLManagedTensor *managed = PyCapsule_GetPointer(capsule, "dltensor");
    return adopt(capsule, &managed->tensor, managed, drop_unversioned, "used_dltensor", 0);
  }
  return PyErr_Format(PyExc_TypeError,
                      "from_dlpack: expected an unused 'dltensor' capsule, found "
                      "%R",
                      capsule);
}

PyObject *core_from_dlpack(PyObject *Py_UNUSED(module), PyObject *source) {
  if (PyCapsule_CheckExact(source)) return take_capsule(source);
  PyObject *method = PyObject_GetAttrString(source, "__dlpack__");
  if (method == NULL) return NULL;
  PyObject *capsule = array_call_dlpack(method);
  PyObject *tensor = capsule ? take_capsule(capsule) : NULL;
  Py_DECREF(method);
  Py_XDECREF(capsule);
  return tensor;
}

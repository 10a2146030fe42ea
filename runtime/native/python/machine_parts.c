/* The arguments of VirtualMachine, converted to C. */
#include "python/machine_parts.h"

#include "python/call/callback.h"
#include "python/call/function.h"
#include "python/device.h"
#include "python/name_bytes.h"
#include "python/exception.h"
#include "abi/segment.h"
#include "device/tensor_object.h"
#include "python/tensor/tensor.h"

/* ---- Constants: (type index, value) */

static int shape_constant(PyObject *value, dso_any *made) {
  int64_t dims[TENSOR_MAX_DIMS];
  if (!PyTuple_Check(value) || PyTuple_GET_SIZE(value) > TENSOR_MAX_DIMS)
    return raise_format(PyExc_TypeError, "constants: shape, expected a tuple of at most %d extents",
                        TENSOR_MAX_DIMS);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); i++) {
    dims[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(value, i));
    if (dims[i] == -1 && PyErr_Occurred()) return -1;
  }
  dso_object *shape = shape_object_new((size_t)PyTuple_GET_SIZE(value), dims);
  if (shape == NULL) return as_status(raise_no_memory());
  *made = any_of_object(shape);
  return 0;
}

static int dtype_constant(PyObject *value, dso_any *made) {
  DLDataType *dtype = &made->v_dtype;
  made->type_index = DSO_DATA_TYPE;
  return PyArg_ParseTuple(value, "bbH", &dtype->code, &dtype->bits, &dtype->lanes) ? 0 : -1;
}

/* Unlike the argument of a C function, a constant may contain NUL. */
static int str_constant(PyObject *value, dso_any *made) {
  PyObject *bytes = name_bytes(value);
  if (bytes == NULL) return -1;
  size_t nbytes = (size_t)PyBytes_GET_SIZE(bytes);
  int status = object_make_string(made, 1, PyBytes_AS_STRING(bytes), nbytes);
  Py_DECREF(bytes);
  if (status != 0) raise_no_memory();
  return status != 0 ? -1 : 0;
}

/* A tensor whose data is not aligned, as compiled code needs it: copied once, and the pages of the file
 * are given back. Returns 1, 0 for another value, or -1 with an exception set. */
static int copy_unaligned(PyObject *value, dso_any *made) {
  const Tensor *self = (Tensor *)value;
  if (tensor_check(value) && tensor_prove(value) != 0) return -1;
  if (!tensor_check(value) || self->state != STATE_COMPLETE || self->source.obj == NULL ||
      self->copy != NULL || (uintptr_t)self->source.buf % TENSOR_ALIGNMENT == 0)
    return 0;
  dso_object *copy = tensor_object_new(self->tensor.device, self->tensor.dtype, self->tensor.ndim,
                                       self->tensor.shape);
  if (copy == NULL) return as_status(raise_no_memory());
  Py_BEGIN_ALLOW_THREADS /* the list of constants keeps the source */
  memcpy(((dso_tensor_object *)(void *)copy)->tensor.data, self->source.buf, (size_t)self->nbytes);
  segment_give_back(self->source.buf, (size_t)self->nbytes);
  Py_END_ALLOW_THREADS
  tensor_object_mark(copy, TENSOR_READ_ONLY);
  *made = (dso_any){.type_index = DSO_TENSOR, .v_ptr = copy};
  return 1;
}

static int make_constant(PyObject *item, dso_any *made) {
  int type_index;
  PyObject *value;
  if (!PyArg_ParseTuple(item, "iO:constants", &type_index, &value)) return -1;
  if (type_index == DSO_SHAPE) return shape_constant(value, made);
  if (type_index == DSO_DATA_TYPE) return dtype_constant(value, made);
  if (type_index == DSO_STR) return str_constant(value, made);
  int is_copied = type_index == DSO_TENSOR ? copy_unaligned(value, made) : 0;
  if (is_copied != 0) return is_copied > 0 ? 0 : -1;
  if (convert_owned(item, value, made) != 0) return -1;
  if (type_index == DSO_TENSOR && made->type_index == DSO_TENSOR)
    tensor_object_mark(made->v_ptr, TENSOR_READ_ONLY);
  return 0;
}

/* Return the number of constants made. An exception is set if it is not all of them. */
static Py_ssize_t make_constants(PyObject *list, dso_any *made) {
  Py_ssize_t i = 0;
  for (; i < PyList_GET_SIZE(list); i++) {
    made[i] = (dso_any){.type_index = DSO_NONE};
    if (make_constant(PyList_GET_ITEM(list, i), &made[i]) != 0) break;
  }
  return i;
}

/* ---- Weights: for each constant the tensor that it names, or None */

static Py_ssize_t make_weights(PyObject *list, dso_any *made) {
  Py_ssize_t i = 0;
  for (; i < PyList_GET_SIZE(list); i++) {
    made[i] = (dso_any){.type_index = DSO_NONE};
    PyObject *item = PyList_GET_ITEM(list, i);
    if (item != Py_None && convert_owned(list, item, &made[i]) != 0) break;
  }
  return i;
}

/* ---- Callees: a callable, or None for functions in bytecode and for built-ins */

static Py_ssize_t make_callees(PyObject *list, dso_object **made) {
  Py_ssize_t i = 0;
  for (; i < PyList_GET_SIZE(list); i++) {
    PyObject *callable = PyList_GET_ITEM(list, i);
    made[i] = callable != Py_None ? callback_new(callable, NULL) : NULL;
    if (made[i] == NULL && callable != Py_None) break;
  }
  return i;
}

/* ---- All of them */

static DLDevice *read_devices(PyObject *list) {
  DLDevice *devices = PyMem_New(DLDevice, (size_t)PyList_GET_SIZE(list) + 1);
  if (devices == NULL) return raise_no_memory();
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++)
    if (device_from_object(PyList_GET_ITEM(list, i), &devices[i]) != 0) {
      PyMem_Free(devices);
      return NULL;
    }
  return devices;
}

void machine_parts_free(struct machine_parts *parts) {
  PyObject *pending = exception_take();
  for (Py_ssize_t i = 0; i < parts->num_constants; i++) any_release(&parts->constants[i]);
  for (Py_ssize_t i = 0; i < parts->num_weights; i++) any_release(&parts->weights[i]);
  for (Py_ssize_t i = 0; i < parts->num_callees; i++)
    if (parts->callees[i] != NULL) object_release(parts->callees[i]);
  PyMem_Free(parts->constants);
  PyMem_Free(parts->weights);
  PyMem_Free(parts->callees);
  PyMem_Free(parts->devices);
  if (pending != NULL) exception_set(pending);
}

int machine_parts_make(struct machine_parts *parts, const struct machine_lists *lists) {
  PyObject *constants = lists->constants, *callees = lists->callees, *weights = lists->weights;
  parts->constants = PyMem_New(dso_any, (size_t)PyList_GET_SIZE(constants) + 1);
  parts->weights = PyMem_New(dso_any, (size_t)PyList_GET_SIZE(weights) + 1);
  parts->callees = PyMem_New(dso_object *, (size_t)PyList_GET_SIZE(callees) + 1);
  if (parts->constants == NULL || parts->weights == NULL || parts->callees == NULL)
    return as_status(raise_no_memory());
  parts->num_constants = make_constants(constants, parts->constants);
  if (parts->num_constants < PyList_GET_SIZE(constants)) return -1;
  parts->num_weights = make_weights(weights, parts->weights);
  if (parts->num_weights < PyList_GET_SIZE(weights)) return -1;
  parts->num_callees = make_callees(callees, parts->callees);
  if (parts->num_callees < PyList_GET_SIZE(callees)) return -1;
  parts->devices = read_devices(lists->devices);
  return parts->devices != NULL ? 0 : -1;
}

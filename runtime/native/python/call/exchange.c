/* Tensors as arguments, by DLPack's C exchange API, which PyTorch's tensors offer. */
#include "python/call/convert.h"

#include "abi/dtype.h"
#include "python/call/torch.h"
#include "python/exception.h"

/* The first fields of DLPackExchangeAPI (dlpack.h, from 1.2 on). */
struct api {
  uint32_t major, minor;
  const struct api *previous; /* the table of an older major version, or NULL */
  void *allocator, *from_object, *to_object;
  int (*describe)(void *object, DLTensor *tensor); /* or NULL */
};

struct exchange {
  PyTypeObject *type; /* owned, never released */
  int (*describe)(void *object, DLTensor *tensor);
  struct requires_grad requires_grad;
};

enum { MAX_EXCHANGES = 16 };
static struct exchange exchanges[MAX_EXCHANGES];
static int num_exchanges;

static const struct api *api_of(PyObject *capsule) {
  const struct api *api = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
  if (api == NULL) PyErr_Clear();
  while (api != NULL && api->major > DLPACK_MAJOR) api = api->previous;
  return api != NULL && api->major == DLPACK_MAJOR && api->describe != NULL ? api : NULL;
}

/* Find and cache the API of the object's type; NULL without an exception if it has none. Only the
 * type's own attribute is used, because a subclass may export differently. */
static const struct exchange *add_exchange(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  PyObject *capsule =
      type->tp_dict ? PyDict_GetItemString(type->tp_dict, "__dlpack_c_exchange_api__") : NULL;
  const struct api *api = capsule ? api_of(capsule) : NULL;
  if (api == NULL || num_exchanges == MAX_EXCHANGES) return NULL;
  struct exchange *exchange = &exchanges[num_exchanges];
  if (requires_grad_find(object, &exchange->requires_grad) != 0) return NULL;
  exchange->type = (PyTypeObject *)Py_NewRef((PyObject *)type);
  exchange->describe = api->describe;
  num_exchanges++;
  return exchange;
}

static const struct exchange *exchange_of(PyObject *object) {
  for (int i = 0; i < num_exchanges; i++)
    if (exchanges[i].type == Py_TYPE(object)) return &exchanges[i];
  return add_exchange(object);
}

/* PyTorch marks some tensors as negated on read (the imaginary part of a conjugate). A compact
 * tensor with more than one element is never one of them. */
static int may_be_negative(const DLTensor *tensor) {
  uint64_t compact = 1; /* unsigned: with an invalid shape it wraps, which is defined */
  for (int i = tensor->ndim; i-- > 0; compact *= (uint64_t)tensor->shape[i])
    if ((uint64_t)tensor->strides[i] != compact) return 1;
  return compact <= 1;
}

/* `__dlpack__` ignores the negative bit and would export the numbers with the wrong sign. */
static int refuse_negative(struct call_frame *frame, Py_ssize_t index, PyObject *object) {
  PyObject *negative = PyObject_CallMethod(object, "is_neg", NULL);
  if (negative == NULL) PyErr_Clear();
  Py_XDECREF(negative);
  if (negative != Py_True) return 0;
  return raise_argument_error(frame, index, PyExc_ValueError,
                              "expected an array that can be shared, found one with the negative "
                              "bit set; pass its resolve_neg()");
}

int argument_exchange(struct call_frame *frame, Py_ssize_t index, PyObject *object) {
  DLTensor tensor;
  const struct exchange *exchange = exchange_of(object);
  if (exchange == NULL) return 1;
  if (requires_grad(&exchange->requires_grad, object) != 0 ||
      exchange->describe(object, &tensor) != 0) {
    PyErr_Clear(); /* `__dlpack__` raises a clearer error */
    return 1;
  }
  if (tensor.device.device_type != DLPACK_CPU || tensor.dtype.code == DTYPE_COMPLEX) return 1;
  struct hold *hold = frame_hold(frame, HOLD_MEMORY);
  if (hold_tensor(frame, index, hold, &tensor) != 0) return -1;
  if (exchange->requires_grad.get != NULL && may_be_negative(&hold->tensor) &&
      refuse_negative(frame, index, object) != 0)
    return -1;
  return frame_pass(frame, index, DSO_DLTENSOR_PTR, &hold->tensor);
}

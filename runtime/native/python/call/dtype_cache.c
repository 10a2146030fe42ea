/* The cache from NumPy's dtype objects to DLDataTypes: how an entry is made. */
#include "python/call/dtype_cache.h"

#include "abi/dtype.h"

struct cached_dtype dtype_slots[1 << DTYPE_SLOT_BITS];

/* Read the dtype from the array's buffer: 0, or -1. Sets *has_buffer to true if it has one. */
static int dtype_of_buffer(PyObject *array, DLDataType *dtype, int *has_buffer) {
  Py_buffer view;
  *has_buffer = PyObject_GetBuffer(array, &view, PyBUF_RECORDS_RO) == 0;
  if (!*has_buffer) {
    PyErr_Clear();
    return -1;
  }
  int status = dtype_from_format(view.format, (size_t)view.itemsize, dtype);
  PyBuffer_Release(&view);
  return status;
}

static Py_ssize_t attribute_as_int(PyObject *object, const char *name) {
  PyObject *value = PyObject_GetAttrString(object, name);
  Py_ssize_t number = value ? PyNumber_AsSsize_t(value, NULL) : -1;
  Py_XDECREF(value);
  return number;
}

/* The types of ml_dtypes (bfloat16, float8_e4m3fn, ...) have no buffer format, but their names are
 * DLPack's. ml_dtypes pads types below a byte and DLPack packs them, so the sizes must agree. */
static int dtype_of_name(PyObject *descr, DLDataType *dtype) {
  int code, bits, lanes, known = 0;
  PyObject *names = PyImport_ImportModule("runtime.tensors.dtype"); /* imported at first use */
  PyObject *name = names ? PyObject_GetAttrString(descr, "name") : NULL;
  PyObject *triple = name ? PyObject_CallMethod(names, "string_to_dtype", "O", name) : NULL;
  if (triple != NULL && PyArg_ParseTuple(triple, "iii", &code, &bits, &lanes) && lanes == 1)
    known =
        attribute_as_int(descr, "itemsize") * 8 == bits && attribute_as_int(descr, "isnative") == 1;
  PyErr_Clear();
  Py_XDECREF(names);
  Py_XDECREF(name);
  Py_XDECREF(triple);
  if (!known) return -1;
  *dtype = (DLDataType){.code = (uint8_t)code, .bits = (uint8_t)bits, .lanes = 1};
  return 0;
}

const struct cached_dtype *dtype_cache_add(PyObject *descr, PyObject *array) {
  DLDataType dtype;
  int has_buffer;
  if (dtype_of_buffer(array, &dtype, &has_buffer) != 0 &&
      (has_buffer || dtype_of_name(descr, &dtype) != 0))
    return NULL;
  size_t itemsize = dtype_itemsize(dtype);
  struct cached_dtype *slot = dtype_slot(descr);
  Py_XSETREF(slot->descr, Py_NewRef(descr));
  slot->dtype = dtype;
  slot->shift = __builtin_ctzll(itemsize);
  slot->odd_bytes = (Py_ssize_t)itemsize - 1;
  return slot;
}

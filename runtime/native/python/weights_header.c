/* The header of a safetensors file, parsed by the same code as in libdso. */
#include "python/weights_header.h"

#include <stdlib.h>
#include <string.h>

#include "abi/raised.h"
#include "blob/weights.h"
#include "blob/weights_entry.h"
#include "python/exception.h"
#include "python/parse_blob.h"

static PyObject *dtype_tuple(DLDataType dtype) {
  return Py_BuildValue("(iii)", dtype.code, dtype.bits, dtype.lanes);
}

/* Add a value to a dict, and release it. Returns 0, or -1 with an exception set. */
static int add(PyObject *dict, struct span name, PyObject *value) {
  PyObject *key = PyUnicode_DecodeUTF8(name.data, (Py_ssize_t)name.size, NULL);
  int status = key != NULL && value != NULL ? PyDict_SetItem(dict, key, value) : -1;
  Py_XDECREF(key);
  Py_XDECREF(value);
  return status;
}

static PyObject *layout_tuple(const struct weight *weight, PyObject *dtype) {
  PyObject *shape = PyTuple_New(weight->tensor.ndim);
  for (int32_t i = 0; shape != NULL && i < weight->tensor.ndim; i++) {
    PyObject *extent = PyLong_FromLongLong(weight->tensor.shape[i]);
    if (extent != NULL) PyTuple_SET_ITEM(shape, i, extent);
    else Py_CLEAR(shape);
  }
  return Py_BuildValue("(KKON)", (unsigned long long)weight->begin, (unsigned long long)weight->end,
                       dtype, shape);
}

/* Tensors that follow each other share a dtype's tuple: most have the same. */
static PyObject *layouts_dict(const struct weights *weights) {
  PyObject *dict = PyDict_New(), *dtype = NULL;
  const DLDataType *last = NULL;
  for (size_t i = 0; dict != NULL && i < weights->count; i++) {
    const struct weight *weight = &weights->items[i];
    if (last == NULL || memcmp(last, &weight->tensor.dtype, sizeof *last) != 0)
      Py_XSETREF(dtype, dtype_tuple(weight->tensor.dtype));
    last = &weight->tensor.dtype;
    if (dtype == NULL || add(dict, weight->name, layout_tuple(weight, dtype)) != 0) Py_CLEAR(dict);
  }
  Py_XDECREF(dtype);
  return dict;
}

static PyObject *metadata_dict(const struct json *fields) {
  const struct json *metadata = json_member(fields, weights_metadata_key);
  PyObject *dict = PyDict_New();
  for (size_t i = 0; dict != NULL && metadata != NULL && i < metadata->size; i++) {
    const struct json *key = &metadata->items[2 * i], *text = key + 1;
    PyObject *value = PyUnicode_DecodeUTF8(text->text, (Py_ssize_t)text->size, NULL);
    if (add(dict, (struct span){key->text, key->size}, value) != 0) Py_CLEAR(dict);
  }
  return dict;
}

PyObject *core_weights_header(PyObject *Py_UNUSED(core), PyObject *args) {
  Py_buffer header;
  Py_ssize_t start;
  PyObject *path;
  struct reader reader = {.where = NULL};
  const struct json *fields = NULL;
  uint64_t nbytes, count = raised_count();
  if (!PyArg_ParseTuple(args, "y*nOs:weights_header", &header, &start, &path, &reader.where))
    return NULL;
  (void)reader_take_place();
  struct weights *weights = weights_read_header(
      &reader, (struct span){header.buf, (size_t)header.len}, (size_t)start, &nbytes, &fields);
  PyObject *result = weights == NULL
                         ? raise_refused(path, count)
                         : Py_BuildValue("(NNK)", layouts_dict(weights), metadata_dict(fields),
                                         (unsigned long long)nbytes);
  json_free(fields);
  free(weights);
  PyBuffer_Release(&header);
  return result;
}

PyObject *core_weights_dtypes(PyObject *Py_UNUSED(core), PyObject *Py_UNUSED(none)) {
  PyObject *dict = PyDict_New();
  for (size_t i = 0; dict != NULL && i < NUM_WEIGHTS_DTYPES; i++) {
    PyObject *dtype = dtype_tuple(weights_dtypes[i].dtype);
    if (dtype == NULL || PyDict_SetItemString(dict, weights_dtypes[i].name, dtype) != 0)
      Py_CLEAR(dict);
    Py_XDECREF(dtype);
  }
  return dict;
}

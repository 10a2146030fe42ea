/* Payloads and their parts, read by the same code as in libdso. */
#include "python/payload.h"

#include <stdlib.h>
#include <string.h>

#include "abi/dtype.h"
#include "abi/raised.h"
#include "blob/arrays.h"
#include "blob/key.h"
#include "blob/weights_entry.h"
#include "module/loaders.h"
#include "python/container.h"
#include "python/exception.h"

/* ---- Errors */

PyObject *payload_error(PyObject *path, PyObject *text, size_t offset) {
  if (PyObject_IsTrue(path) == 1) Py_SETREF(text, PyUnicode_FromFormat("%S: %U", path, text));
  PyObject *facts =
      text ? Py_BuildValue("{sOsn}", "path", path, "offset", (Py_ssize_t)offset) : NULL;
  return error_new("BlobFormatError", text, facts);
}

PyObject *payload_refused(PyObject *path) {
  const char *message = "no error was raised";
  char *kind = NULL;
  size_t offset = reader_take_place();
  if (PyErr_Occurred()) {
    raised_forget();
    return NULL;
  }
  int is_raised = raised_take(0, &kind, &message) > 0;
  if (is_raised && strcmp(kind, "OutOfMemoryError") == 0) (void)raise_no_memory();
  else {
    PyObject *text = PyUnicode_DecodeUTF8(message, (Py_ssize_t)strlen(message), "replace");
    PyObject *error = text != NULL ? payload_error(path, text, offset) : NULL;
    if (error != NULL) exception_set(error);
  }
  raised_free(kind);
  return NULL;
}

/* ---- Whole payloads */

/* A params dict file, which has no type key. */
static int check_params(struct reader *reader) {
  struct named_arrays arrays;
  if (named_arrays_read_params(reader->bytes, reader->end, NULL, &arrays) != 0) return -1;
  named_arrays_clear(&arrays);
  reader->offset = reader->end;
  return 1;
}

/* A safetensors file, which is a payload after a padding. */
static int check_weights(struct reader *reader) {
  struct weights_file file;
  return weights_file_read(reader, &file) != 0 ? -1 : 1;
}

PyObject *payload_accepted(Reader *self, PyObject *type_key) {
  Py_ssize_t size;
  struct span key = {.data = PyUnicode_AsUTF8AndSize(type_key, &size)};
  struct reader *reader = &self->reader;
  size_t start = reader->offset;
  dso_object *module = NULL;
  if (key.data == NULL) return NULL;
  key.size = (size_t)size;
  (void)reader_take_place();
  int status = key_is(key, "params")         ? check_params(reader)
               : key_is(key, "weights file") ? check_weights(reader)
                                             : loaders.load(loaders.context, key, reader, &module);
  if (module != NULL) object_release(module);
  return status > 0 ? reader_part(self, start, reader->offset) : payload_refused(self->path);
}

/* ---- Values for Python */

PyObject *payload_dtype(DLDataType dtype) {
  return Py_BuildValue("(iii)", dtype.code, dtype.bits, dtype.lanes);
}

static PyObject *shape_tuple(const DLTensor *tensor) {
  PyObject *shape = PyTuple_New(tensor->ndim);
  for (int32_t i = 0; shape != NULL && i < tensor->ndim; i++)
    tuple_fill(&shape, (size_t)i, PyLong_FromLongLong(tensor->shape[i]));
  return shape;
}

/* ---- NDArrays */

PyObject *payload_ndarray(Reader *self, PyObject *Py_UNUSED(none)) {
  (void)reader_take_place();
  dso_tensor_object *array = reader_ndarray(&self->reader);
  if (array == NULL) return payload_refused(self->path);
  const DLTensor *tensor = &array->tensor;
  int is_complete = (tensor_object_flags(&array->object) & TENSOR_INCOMPLETE) == 0;
  size_t nbytes = tensor->byte_offset; /* of incomplete data */
  if (is_complete) (void)dtype_nbytes(tensor->dtype, tensor->ndim, tensor->shape, &nbytes);
  const uint8_t *end = self->reader.bytes + self->reader.offset;
  PyObject *result =
      Py_BuildValue("(NNNO)", reader_view(self, end - nbytes, nbytes), shape_tuple(tensor),
                    payload_dtype(tensor->dtype), is_complete ? Py_True : Py_False);
  object_release(&array->object);
  return result;
}

/* ---- The header of a safetensors file */

/* Add a value to a dict, and release it. Returns 0, or -1 with an exception set. */
static int add(PyObject *dict, struct span name, PyObject *value) {
  PyObject *key = PyUnicode_DecodeUTF8(name.data, (Py_ssize_t)name.size, NULL);
  int status = key != NULL && value != NULL ? PyDict_SetItem(dict, key, value) : -1;
  Py_XDECREF(key);
  Py_XDECREF(value);
  return status;
}

static PyObject *layout_tuple(const struct weight *weight, PyObject *dtype) {
  return Py_BuildValue("(KKON)", (unsigned long long)weight->begin, (unsigned long long)weight->end,
                       dtype, shape_tuple(&weight->tensor));
}

/* Tensors that follow each other share a dtype's tuple: most have the same. */
static PyObject *layouts_dict(const struct weights *weights) {
  PyObject *dict = PyDict_New(), *dtype = NULL;
  const DLDataType *last = NULL;
  for (size_t i = 0; dict != NULL && i < weights->count; i++) {
    const struct weight *weight = &weights->items[i];
    if (last == NULL || memcmp(last, &weight->tensor.dtype, sizeof *last) != 0)
      Py_XSETREF(dtype, payload_dtype(weight->tensor.dtype));
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

PyObject *payload_weights_header(Reader *self, PyObject *args) {
  Py_buffer header;
  Py_ssize_t start;
  const struct json *fields = NULL;
  uint64_t nbytes;
  if (!PyArg_ParseTuple(args, "y*n:_weights_header", &header, &start)) return NULL;
  (void)reader_take_place();
  struct weights *weights =
      weights_read_header(&self->reader, (struct span){header.buf, (size_t)header.len},
                          (size_t)start, &nbytes, &fields);
  PyObject *result = weights == NULL
                         ? payload_refused(self->path)
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
    PyObject *dtype = payload_dtype(weights_dtypes[i].dtype);
    if (dtype == NULL || PyDict_SetItemString(dict, weights_dtypes[i].name, dtype) != 0)
      Py_CLEAR(dict);
    Py_XDECREF(dtype);
  }
  return dict;
}

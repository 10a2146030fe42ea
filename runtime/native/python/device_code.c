/* DeviceCode: the code of a device module and the kernels in it. */
#include "python/device_code.h"

#include <string.h>

#include "python/exception.h"
#include "python/name_bytes.h"
#include "python/call/function.h"
#include "abi/heap.h"
#include "device/cuda/image.h"
#include "device/kernel.h"
#include "abi/raised.h"
#include "python/container.h"

typedef struct {
  PyObject_HEAD
  struct kernel_module *module;
  Py_buffer data;    /* keeps the bytes that `module` borrows; obj is NULL after its release */
  PyObject *callees; /* name -> capsule of struct callee (callee_add) */
} DeviceCode;

/* Take a buffer of the view's object, not of the view. The collector clears a memoryview that is
 * garbage even if a buffer of it is exported; releasing that buffer then crashes (CPython 3.11). */
static int take_data(DeviceCode *self, const struct kernel_driver *driver, const char *fmt,
                     PyObject *view) {
  const Py_buffer *bytes = PyMemoryView_GET_BUFFER(view);
  self->callees = PyDict_New();
  if (self->callees == NULL || PyObject_GetBuffer(bytes->obj, &self->data, PyBUF_FULL_RO) != 0)
    return -1;
  self->module = kernel_module_new(driver, fmt, bytes->buf, (size_t)bytes->len);
  if (self->module != NULL) return 0;
  return as_status(raise_no_memory());
}

static PyObject *device_code_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
  static char *names[] = {"type_key", "fmt", "data", NULL};
  const char *type_key, *fmt;
  PyObject *data;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "ssO!:DeviceCode", names, &type_key, &fmt,
                                   &PyMemoryView_Type, &data))
    return NULL;
  if (!PyBuffer_IsContiguous(PyMemoryView_GET_BUFFER(data), 'C') ||
      PyMemoryView_GET_BUFFER(data)->obj == NULL)
    return PyErr_Format(PyExc_ValueError,
                        "DeviceCode: data, expected a contiguous view of an object");
  const struct kernel_driver *driver = kernel_driver(type_key);
  if (driver == NULL)
    return PyErr_Format(PyExc_ValueError,
                        "DeviceCode: type key '%s', expected one with a driver binding", type_key);
  DeviceCode *self = (DeviceCode *)type->tp_alloc(type, 0);
  if (self != NULL && take_data(self, driver, fmt, data) != 0) Py_CLEAR(self);
  return (PyObject *)self;
}

/* The host code of a library may keep a kernel whose code is in the same library. Kernels therefore
 * borrow the bytes. This object has the only reference to them, and the collector sees it. */
static int device_code_traverse(DeviceCode *self, visitproc visit, void *arg) {
  Py_VISIT(self->data.obj);
  return 0;
}

static int device_code_clear(DeviceCode *self) {
  if (self->module != NULL) kernel_module_forget(self->module);
  PyBuffer_Release(&self->data); /* sets obj to NULL, so a second call does nothing */
  return 0;
}

static void device_code_dealloc(DeviceCode *self) {
  PyObject_GC_UnTrack(self);
  (void)device_code_clear(self);
  Py_XDECREF(self->callees);
  if (self->module != NULL) kernel_module_release(self->module);
  Py_TYPE(self)->tp_free((PyObject *)self);
}

/* ---- Kernels */

/* The arguments of `function`. */
struct request {
  PyObject *name, *arg_types, *tags, *owner;
  const char *code_name, *facts;
  Py_ssize_t facts_length;
};

static int read_types(PyObject *tuple, DLDataType *types) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++)
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(tuple, i), "bbH:arg_types", &types[i].code,
                          &types[i].bits, &types[i].lanes))
      return -1;
  return 0;
}

static int read_tags(PyObject *tuple, const char **tags) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++)
    if ((tags[i] = PyUnicode_AsUTF8(PyTuple_GET_ITEM(tuple, i))) == NULL) return -1;
  return 0;
}

static int fill_signature(const struct request *request, struct kernel_signature *signature,
                          DLDataType *types, const char **tags) {
  if (read_types(request->arg_types, types) != 0 || read_tags(request->tags, tags) != 0) return -1;
  PyObject *name = name_bytes(request->name);
  if (name == NULL) return -1;
  signature->name = heap_copy_text(PyBytes_AS_STRING(name));
  Py_DECREF(name);
  signature->code_name = heap_copy_text(request->code_name);
  if (signature->name == NULL || signature->code_name == NULL) return as_status(raise_no_memory());
  uint64_t count = raised_count();
  int status = kernel_signature_set(signature, types, (int)PyTuple_GET_SIZE(request->arg_types),
                                    tags, (int)PyTuple_GET_SIZE(request->tags));
  if (status != 0) raise_native_error(signature->name, count);
  return status;
}

static int make_signature(const struct request *request, struct kernel_signature *signature) {
  size_t num_types = (size_t)PyTuple_GET_SIZE(request->arg_types);
  size_t num_tags = (size_t)PyTuple_GET_SIZE(request->tags);
  DLDataType *types = PyMem_New(DLDataType, num_types + 1);
  const char **tags = PyMem_New(const char *, num_tags + 1);
  int status = -1;
  if (types != NULL && tags != NULL) status = fill_signature(request, signature, types, tags);
  else raise_no_memory();
  PyMem_Free(types);
  PyMem_Free(tags);
  if (status != 0) kernel_signature_clear(signature);
  return status;
}

static dso_object *make_kernel(DeviceCode *self, const struct request *request) {
  struct kernel_signature signature = {.device_type = self->module->driver->device_type};
  if (make_signature(request, &signature) != 0) return NULL;
  dso_object *kernel = kernel_new(self->module, &signature);
  return kernel != NULL ? kernel : raise_no_memory();
}

/* The callee takes over the reference to the kernel. */
static struct callee *make_callee(const struct request *request, dso_object *kernel) {
  struct found_function found = {.code = NULL};
  struct callee *callee = NULL;
  const char *wrong = found_function_read(&found, (const uint8_t *)request->facts,
                                          (size_t)request->facts_length + 1);
  if (wrong == NULL) callee = callee_new(request->name, &found);
  else found_function_free(&found);
  if (wrong == HEAP_NO_MEMORY) raise_no_memory();
  else if (wrong != NULL) PyErr_Format(PyExc_ValueError, "%U: metadata: %s", request->name, wrong);
  if (callee != NULL) callee_call_object(callee, kernel);
  else object_release(kernel);
  return callee;
}

static struct callee *look_up(DeviceCode *self, const struct request *request) {
  struct callee *callee = callee_find(self->callees, request->name);
  if (callee != NULL || PyErr_Occurred()) return callee;
  dso_object *kernel = make_kernel(self, request);
  return kernel ? callee_add(self->callees, request->name, make_callee(request, kernel)) : NULL;
}

static PyObject *device_code_function(DeviceCode *self, PyObject *args) {
  struct request request;
  if (!PyArg_ParseTuple(args, "UsO!O!s#O:function", &request.name, &request.code_name,
                        &PyTuple_Type, &request.arg_types, &PyTuple_Type, &request.tags,
                        &request.facts, &request.facts_length, &request.owner))
    return NULL;
  struct callee *callee = look_up(self, &request);
  return callee ? function_new(callee, (PyObject *)self, request.owner) : NULL;
}

PyObject *has_driver(PyObject *Py_UNUSED(module), PyObject *type_key) {
  const char *key = PyUnicode_AsUTF8(type_key);
  const struct kernel_driver *driver = key ? kernel_driver(key) : NULL;
  if (key == NULL) return NULL;
  return PyBool_FromLong(driver != NULL && driver->is_there());
}

PyObject *core_cuda_images(PyObject *Py_UNUSED(module), PyObject *data) {
  static const char *const kinds[] = {[CUDA_PTX] = "ptx", [CUDA_CUBIN] = "cubin"};
  struct cuda_images images;
  Py_buffer bytes;
  if (PyObject_GetBuffer(data, &bytes, PyBUF_SIMPLE) != 0) return NULL;
  int status = cuda_images_read(bytes.buf, (size_t)bytes.len, &images);
  PyBuffer_Release(&bytes);
  if (status != 0) return PyErr_Format(PyExc_ValueError, "%s", images.wrong);
  PyObject *list = PyList_New(images.count);
  for (int i = 0; list != NULL && i < images.count; i++) {
    const struct cuda_image *image = &images.images[i];
    list_fill(&list, (size_t)i,
              Py_BuildValue("sis#", kinds[image->kind], image->capability, &image->suffix,
                            (Py_ssize_t)(image->suffix != '\0')));
  }
  return list;
}

static PyMethodDef device_code_methods[] = {
    {"function", (PyCFunction)device_code_function, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

PyTypeObject DeviceCode_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "runtime._core.DeviceCode",
    .tp_basicsize = sizeof(DeviceCode),
    .tp_new = device_code_new,
    .tp_dealloc = (destructor)device_code_dealloc,
    .tp_traverse = (traverseproc)device_code_traverse,
    .tp_clear = (inquiry)device_code_clear,
    .tp_methods = device_code_methods,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
};

/* Device: a kind of device and an index; reading, showing and querying one. */
#include "python/device.h"

#include <stdlib.h>
#include <string.h>

#include "device/device_api.h"
#include "python/exception.h"
#include "abi/raised.h"
#include "python/container.h"

PyObject *device_new(DLDevice device) {
  Device *self = PyObject_New(Device, &Device_Type);
  if (self != NULL) self->device = device;
  return (PyObject *)self;
}

/* ---- Parsing: Device("opencl", 1), Device("opencl:1"), Device(4, 1), Device(device) */

/* "cpu, cuda, ..." of all kinds in DLPack, with or without a driver here. */
static PyObject *kind_names(void) {
  PyObject *names = PyList_New(0);
  for (int type = 0; names != NULL && type <= DEVICE_LAST_KIND; type++) {
    const char *name = device_kind_name(type);
    if (name != NULL) list_add(&names, PyUnicode_FromString(name));
  }
  PyObject *comma = names ? PyUnicode_FromString(", ") : NULL;
  PyObject *joined = comma ? PyUnicode_Join(comma, names) : NULL;
  Py_XDECREF(names);
  Py_XDECREF(comma);
  return joined;
}

static int refuse_kind(PyObject *text) {
  PyObject *names = kind_names();
  if (names != NULL)
    PyErr_Format(PyExc_ValueError,
                 "device %R: expected a kind and an index such as 'opencl:0'; the kinds are %U",
                 text, names);
  Py_XDECREF(names);
  return -1;
}

static int kind_from(const char *name, size_t length) {
  for (int type = 1; type <= DEVICE_LAST_KIND; type++) {
    const char *known = device_kind_name(type);
    if (known != NULL && strlen(known) == length && memcmp(known, name, length) == 0) return type;
  }
  return 0;
}

/* "opencl" or "opencl:1". Sets *has_index to true for the second form. */
static int parse_text(PyObject *text, DLDevice *device, int *has_index) {
  Py_ssize_t whole;
  const char *name = PyUnicode_AsUTF8AndSize(text, &whole), *digits;
  if (name == NULL) return -1;
  size_t length = strcspn(name, ":");
  device->device_type = kind_from(name, length);
  *has_index = name[length] == ':';
  if (device->device_type == 0 || strlen(name) != (size_t)whole) return refuse_kind(text);
  if (!*has_index) return 0;
  digits = name + length + 1;
  size_t count = strspn(digits, "0123456789");
  if (count == 0 || count > 9 || digits[count] != '\0') return refuse_kind(text);
  device->device_id = (int)strtol(digits, NULL, 10);
  return 0;
}

static int parse_kind(PyObject *kind, DLDevice *device, int *has_index) {
  *device = (DLDevice){0};
  *has_index = 0;
  if (PyUnicode_Check(kind)) return parse_text(kind, device, has_index);
  if (device_check(kind)) {
    *device = ((Device *)kind)->device;
    *has_index = 1;
    return 0;
  }
  if (PyIndex_Check(kind) && !PyBool_Check(kind))
    return PyArg_Parse(kind, "i", &device->device_type) ? 0 : -1;
  return raise_format(PyExc_TypeError,
                      "device, expected a str like 'opencl:0', a DLDeviceType or a "
                      "Device, found %s",
                      Py_TYPE(kind)->tp_name);
}

int device_from_object(PyObject *object, DLDevice *device) {
  int has_index;
  return parse_kind(object, device, &has_index);
}

static PyObject *device_make(PyTypeObject *Py_UNUSED(type), PyObject *args, PyObject *keywords) {
  static char *names[] = {"kind", "index", NULL};
  PyObject *kind, *index = NULL;
  DLDevice device;
  int has_index;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|O:Device", names, &kind, &index) ||
      parse_kind(kind, &device, &has_index) != 0)
    return NULL;
  if (index != NULL && has_index)
    return PyErr_Format(PyExc_TypeError, "device %R, expected one index, found %R as well", kind,
                        index);
  if (index != NULL && !PyArg_Parse(index, "i", &device.device_id)) return NULL;
  return device_new(device);
}

/* ---- Attributes */

/* "opencl:1"; "device[42]:1" for a type without a name. */
static PyObject *device_str(Device *self) {
  const char *name = device_kind_name(self->device.device_type);
  if (name != NULL) return PyUnicode_FromFormat("%s:%d", name, self->device.device_id);
  return PyUnicode_FromFormat("device[%d]:%d", self->device.device_type, self->device.device_id);
}

static PyObject *device_repr(Device *self) {
  const char *name = device_kind_name(self->device.device_type);
  if (name != NULL) return PyUnicode_FromFormat("Device('%s', %d)", name, self->device.device_id);
  return PyUnicode_FromFormat("Device(%d, %d)", self->device.device_type, self->device.device_id);
}

static PyObject *device_kind(Device *self, void *Py_UNUSED(closure)) {
  const char *name = device_kind_name(self->device.device_type);
  if (name != NULL) return PyUnicode_FromString(name);
  return PyUnicode_FromFormat("device[%d]", self->device.device_type);
}

static PyObject *device_type(Device *self, void *Py_UNUSED(closure)) {
  return PyLong_FromLong(self->device.device_type);
}

static PyObject *device_index(Device *self, void *Py_UNUSED(closure)) {
  return PyLong_FromLong(self->device.device_id);
}

static Py_hash_t device_hash(Device *self) {
  Py_hash_t hash = (Py_hash_t)self->device.device_type * 1000003 ^ self->device.device_id;
  return hash == -1 ? -2 : hash;
}

static PyObject *device_compare(Device *self, PyObject *other, int operation) {
  if (!device_check(other) || (operation != Py_EQ && operation != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  const DLDevice *theirs = &((Device *)other)->device;
  int is_equal = self->device.device_type == theirs->device_type &&
                 self->device.device_id == theirs->device_id;
  return PyBool_FromLong(is_equal == (operation == Py_EQ));
}

static PyObject *device_reduce(Device *self, PyObject *Py_UNUSED(none)) {
  return Py_BuildValue("(O(ii))", &Device_Type, self->device.device_type, self->device.device_id);
}

/* ---- Queries of the driver, without the GIL: a driver may be slow, above all at its first use. */

static int check(DLDevice device) {
  const struct device_api *api = device_api(device.device_type);
  return api != NULL ? api->check(device.device_id) : -1;
}

static PyObject *device_exist(Device *self, void *Py_UNUSED(closure)) {
  int status;
  Py_BEGIN_ALLOW_THREADS
  status = check(self->device);
  Py_END_ALLOW_THREADS
  if (status != 0) raised_forget();
  return PyBool_FromLong(status == 0);
}

static int describe(DLDevice device, char *text, size_t nbytes) {
  const struct device_api *api = device_api(device.device_type);
  return api != NULL ? api->describe(device.device_id, text, nbytes) : -1;
}

static PyObject *device_name(Device *self, void *Py_UNUSED(closure)) {
  char text[256] = "";
  int status;
  uint64_t count = raised_count();
  Py_BEGIN_ALLOW_THREADS
  status = describe(self->device, text, sizeof text);
  Py_END_ALLOW_THREADS
  if (status != 0) return raise_native_error("Device.name", count);
  return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

static int wait(DLDevice device) {
  const struct device_api *api = device_api(device.device_type);
  return api != NULL ? api->sync(device.device_id) : -1;
}

static PyObject *device_sync(Device *self, PyObject *Py_UNUSED(none)) {
  int status;
  uint64_t count = raised_count();
  Py_BEGIN_ALLOW_THREADS
  status = wait(self->device);
  Py_END_ALLOW_THREADS
  if (status != 0) return raise_native_error("Device.sync", count);
  Py_RETURN_NONE;
}

static PyMethodDef device_methods[] = {
    {"sync", (PyCFunction)device_sync, METH_NOARGS,
     "sync($self, /)\n--\n\nWait for all work launched on the device."},
    {"__reduce__", (PyCFunction)device_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef device_getset[] = {
    {"kind", (getter)device_kind, NULL, "The name of its kind, such as \"opencl\".", NULL},
    {"device_type", (getter)device_type, NULL, "The DLDeviceType, such as 4.", NULL},
    {"index", (getter)device_index, NULL, "The index among devices of this kind, from 0.", NULL},
    {"exist", (getter)device_exist, NULL,
     "True if the driver is installed and reports this device.", NULL},
    {"name", (getter)device_name, NULL, "The name that the driver reports.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject Device_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "runtime.Device",
    .tp_doc = "Device(kind, index=0, /)\n--\n\n"
              "A device: a kind (\"opencl\", \"opencl:1\" or a DLDeviceType) and an index.",
    .tp_basicsize = sizeof(Device),
    .tp_new = device_make,
    .tp_repr = (reprfunc)device_repr,
    .tp_str = (reprfunc)device_str,
    .tp_hash = (hashfunc)device_hash,
    .tp_richcompare = (richcmpfunc)device_compare,
    .tp_methods = device_methods,
    .tp_getset = device_getset,
    .tp_flags = Py_TPFLAGS_DEFAULT,
};

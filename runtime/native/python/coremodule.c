/* The extension module runtime._core: its types and its functions. */
#include "python/address.h"

#include <stdlib.h>

#include "python/built_in.h"
#include "python/copy_range.h"
#include "scan/crc32.h"
#include "python/device.h"
#include "python/name_bytes.h"
#include "python/device_code.h"
#include "python/elf_file.h"
#include "python/embedder.h"
#include "python/exception.h"
#include "python/graph.h"
#include "library/import_cache.h"
#include "library/left_out.h"
#include "library/provided.h"
#include "python/call/function.h"
#include "python/call/handle_members.h"
#include "python/call/member_value.h"
#include "python/call/kept.h"
#include "abi/heap.h"
#include "scan/json_limits.h"
#include "python/library.h"
#include "python/parse_blob.h"
#include "python/payload.h"
#include "python/proof.h"
#include "python/span.h"
#include "python/system_library.h"
#include "python/tensor/tensor.h"
#include "python/tensor/make.h"
#include "python/bytecode.h"
#include "python/session.h"
#include "python/virtual_machine.h"

#ifdef Py_GIL_DISABLED
#error "the core relies on the GIL: build it for a CPython that is not free-threaded"
#endif

static PyObject *core_crc32(PyObject *Py_UNUSED(module), PyObject *data) {
  Py_buffer view;
  if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) != 0) return NULL;
  uint32_t crc = crc32_of(view.buf, (size_t)view.len);
  PyBuffer_Release(&view);
  return PyLong_FromUnsignedLong(crc);
}

static PyObject *core_json_count(PyObject *Py_UNUSED(module), PyObject *text) {
  Py_ssize_t nbytes;
  const char *bytes = PyUnicode_AsUTF8AndSize(text, &nbytes);
  if (bytes == NULL) return NULL;
  struct json_counts counts = json_count(bytes, (size_t)nbytes);
  return Py_BuildValue("(nnn)", (Py_ssize_t)counts.depth, (Py_ssize_t)counts.values,
                       (Py_ssize_t)counts.digits);
}

static PyObject *core_left_out_hint(PyObject *Py_UNUSED(module), PyObject *args) {
  Py_buffer view;
  const char *name;
  if (!PyArg_ParseTuple(args, "y*s:left_out_hint", &view, &name)) return NULL;
  char *text = left_out_hint(view.buf, (size_t)view.len, name);
  PyBuffer_Release(&view);
  PyObject *hint = PyUnicode_FromString(text != NULL ? text : "");
  free(text);
  return hint;
}

static PyObject *core_is_provided(PyObject *Py_UNUSED(module), PyObject *name) {
  PyObject *bytes = name_bytes(name);
  if (bytes == NULL) return NULL;
  PyObject *found = PyBool_FromLong(is_provided(PyBytes_AS_STRING(bytes)));
  Py_DECREF(bytes);
  return found;
}

static PyObject *core_tree_changed(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none)) {
  import_cache_expire();
  Py_RETURN_NONE;
}

static PyObject *core_fail_allocation(PyObject *Py_UNUSED(module), PyObject *number) {
  long n = PyLong_AsLong(number);
  if (n == -1 && PyErr_Occurred()) return NULL;
  return PyLong_FromLong(heap_fail_at(n));
}

static PyObject *core_has_variable(PyObject *Py_UNUSED(module), PyObject *name) {
  const char *text = PyUnicode_AsUTF8(name);
  return text != NULL ? PyBool_FromLong(getenv(text) != NULL) : NULL;
}

/* _core.pyi documents them. */
static PyMethodDef core_methods[] = {
    {"handle_at", handle_at, METH_VARARGS, NULL},
    {"handle_belongs", handle_belongs, METH_VARARGS, NULL},
    {"handle_new", (PyCFunction)(void (*)(void))handle_new, METH_FASTCALL, NULL},
    {"handle_allocate", handle_allocate, METH_VARARGS, NULL},
    {"report_unraisable", handle_report, METH_VARARGS, NULL},
    {"c_value", handle_value, METH_VARARGS, NULL},
    {"c_type_of", handle_type_of, METH_O, NULL},
    {"handle_types_match", handle_types_match, METH_VARARGS, NULL},
    {"c_types", handle_types, METH_O, NULL},
    {"buffer_address", buffer_address, METH_O, NULL},
    {"memory_at", address_view, METH_VARARGS, NULL},
    {"crc32", core_crc32, METH_O, NULL},
    {"parse_blob", core_parse_blob, METH_VARARGS, NULL},
    {"prove", core_prove, METH_O, NULL},
    {"json_count", core_json_count, METH_O, NULL},
    {"weights_dtypes", core_weights_dtypes, METH_NOARGS, NULL},
    {"copy_range", core_copy_range, METH_VARARGS, NULL},
    {"reserve", core_reserve, METH_VARARGS, NULL},
    {"has_driver", has_driver, METH_O, NULL},
    {"cuda_images", core_cuda_images, METH_O, NULL},
    {"left_out_hint", core_left_out_hint, METH_VARARGS, NULL},
    {"is_provided", core_is_provided, METH_O, NULL},
    {"tree_changed", core_tree_changed, METH_NOARGS, NULL},
    {"empty", core_empty, METH_VARARGS, NULL},
    {"from_dlpack", core_from_dlpack, METH_O, NULL},
    {"has_variable", core_has_variable, METH_O, NULL},
    {"fail_allocation", core_fail_allocation, METH_O, NULL},
    {"built_in_function", built_in_function, METH_O, NULL},
    {"built_in_names", built_in_names, METH_NOARGS, NULL},
    {"vm_builtin_names", vm_builtin_names, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* The types are static: one set for the process. From 3.12 on, the slot below refuses interpreters
 * with a separate GIL. This function refuses subinterpreters that share it. */
static int refuse_subinterpreter(void) {
  if (PyInterpreterState_Get() == PyInterpreterState_Main()) return 0;
  return raise_format(PyExc_ImportError,
                      "runtime._core: expected the main interpreter, found a subinterpreter; load "
                      "libraries in the main interpreter or in a separate process");
}

static int core_exec(PyObject *module) {
  embedder_fill();
  PyTypeObject *const types[] = {
      &Library_Type,       &ElfFile_Type,    &Function_Type,       &TensorBase_Type,
      &Graph_Type,         &DeviceCode_Type, &Device_Type,         &Handle_Type,
      &SystemLibrary_Type, &Bytecode_Type,   &VirtualMachine_Type, &Session_Type,
      &Kept_Type,          &CType_Type,      &CMember_Type,        &Reader_Type};
  if (refuse_subinterpreter() != 0 || PyType_Ready(&Span_Type) != 0) return -1;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (PyModule_AddType(module, types[i]) != 0) return -1;
  return 0;
}

static PyModuleDef_Slot core_slots[] = {
    {Py_mod_exec, (void *)(uintptr_t)core_exec},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
#if PY_VERSION_HEX >= 0x030D0000
    {Py_mod_gil, Py_MOD_GIL_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef core_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "runtime._core",
    .m_doc = "The native core: checked opening of libraries, safe calls, tensors.",
    .m_methods = core_methods,
    .m_slots = core_slots,
};

/* NOLINTNEXTLINE(misc-use-internal-linkage) CPython looks it up by name */
PyMODINIT_FUNC PyInit__core(void) { return PyModuleDef_Init(&core_module); }

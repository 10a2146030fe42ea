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

static PyMethodDef core_methods[] = {
    {"handle_at", handle_at, METH_VARARGS,
     "handle_at($module, function, address, kind, is_const=False, /)\n--\n\n"
     "Return a Handle that releases nothing, or None for the address 0."},
    {"handle_belongs", handle_belongs, METH_VARARGS,
     "handle_belongs($module, function, handle, /)\n--\n\n"
     "Return True if a handle is of the same library as a function."},
    {"handle_new", (PyCFunction)(void (*)(void))handle_new, METH_FASTCALL,
     "handle_new($module, model, name, /)\n--\n\n"
     "Return a Handle of zeroed memory for a type by its name, or None if it is not known yet."},
    {"handle_allocate", handle_allocate, METH_VARARGS,
     "handle_allocate($module, library, owner, type, /)\n--\n\n"
     "Return a Handle of zeroed memory for a value of a type, which it frees."},
    {"report_unraisable", handle_report, METH_VARARGS,
     "report_unraisable($module, error, function, /)\n--\n\n"
     "Report an exception of a function that C code called."},
    {"c_value", handle_value, METH_VARARGS,
     "c_value($module, handle, type, bytes, /)\n--\n\n"
     "Return a value of C, whose pointers belong to a handle."},
    {"c_type_of", handle_type_of, METH_O,
     "c_type_of($module, handle, /)\n--\n\nReturn the type of what a handle points to."},
    {"handle_types_match", handle_types_match, METH_VARARGS,
     "handle_types_match($module, one, other, /)\n--\n\n"
     "Return True if two handles are of the same library."},
    {"c_types", handle_types, METH_O,
     "c_types($module, library, /)\n--\n\n"
     "Return the types of a library, by the kind of a handle."},
    {"buffer_address", buffer_address, METH_O,
     "buffer_address($module, view, /)\n--\n\nReturn the address of a memoryview's bytes."},
    {"memory_at", address_view, METH_VARARGS,
     "memory_at($module, address, nbytes, owner, /)\n--\n\n"
     "Return a read-only view of memory that `owner` keeps mapped."},
    {"crc32", core_crc32, METH_O,
     "crc32($module, data, /)\n--\n\nReturn the CRC-32 of bytes, as zlib computes it."},
    {"parse_blob", core_parse_blob, METH_VARARGS,
     "parse_blob($module, reader, manifest, structure, load, is_symbol, /)\n--\n\n"
     "Return the entries of a blob and its import tree."},
    {"prove", core_prove, METH_O,
     "prove($module, view, /)\n--\n\n"
     "Verify the bytes of a view, if they are mapped pieces of a library; return the view."},
    {"json_count", core_json_count, METH_O,
     "json_count($module, text, /)\n--\n\n"
     "Return JSON text's depth, an upper bound of its values, and the digits of its longest "
     "number."},
    {"weights_dtypes", core_weights_dtypes, METH_NOARGS,
     "weights_dtypes($module, /)\n--\n\nReturn the data types of safetensors by name."},
    {"copy_range", core_copy_range, METH_VARARGS,
     "copy_range($module, source, at, output, to, nbytes, /)\n--\n\n"
     "Copy bytes between two descriptors; return the number of copied bytes."},
    {"reserve", core_reserve, METH_VARARGS,
     "reserve($module, output, to, nbytes, /)\n--\n\n"
     "Allocate the file's blocks before they are written."},
    {"has_driver", has_driver, METH_O,
     "has_driver($module, type_key, /)\n--\n\n"
     "Return True if this machine has the driver library for this type key."},
    {"cuda_images", core_cuda_images, METH_O,
     "cuda_images($module, data, /)\n--\n\n"
     "(kind, capability, suffix) of each image in PTX, a cubin or a fatbin."},
    {"left_out_hint", core_left_out_hint, METH_VARARGS,
     "left_out_hint($module, record, name, /)\n--\n\n"
     "Return why an export left a function out, as the end of a message, or an empty text."},
    {"is_provided", core_is_provided, METH_O,
     "is_provided($module, name, /)\n--\n\n"
     "Return True if a load binds an undefined function of this name to the core."},
    {"tree_changed", core_tree_changed, METH_NOARGS,
     "tree_changed($module, /)\n--\n\n"
     "Expire the import caches, after a change of an import tree or of the global functions."},
    {"empty", core_empty, METH_VARARGS,
     "empty($module, shape, dtype_code, device, /)\n--\n\n"
     "Return a new Tensor on a device, with uninitialised elements."},
    {"from_dlpack", core_from_dlpack, METH_O,
     "from_dlpack($module, source, /)\n--\n\n"
     "Return a Tensor that shares the memory of an array with `__dlpack__`, or of a capsule."},
    {"has_variable", core_has_variable, METH_O,
     "has_variable($module, name, /)\n--\n\nReturn True if the environment has a variable."},
    {"fail_allocation", core_fail_allocation, METH_O,
     "fail_allocation($module, n, /)\n--\n\n"
     "For tests: make the core's n-th allocation from now on fail; 0 disables this. Return how "
     "many allocations the previous request still had to wait for."},
    {"built_in_function", built_in_function, METH_O,
     "built_in_function($module, name, /)\n--\n\n"
     "Return a global function that every program has, or None."},
    {"built_in_names", built_in_names, METH_NOARGS,
     "built_in_names($module, /)\n--\n\n"
     "Return the names of the global functions that every program has."},
    {"vm_builtin_names", vm_builtin_names, METH_NOARGS,
     "vm_builtin_names($module, /)\n--\n\n"
     "Return the names of the built-in functions of every virtual machine."},
    {NULL, NULL, 0, NULL},
};

/* The types are static: one set for the process. From 3.12 on, the slot below refuses interpreters
 * with a separate GIL. This function refuses subinterpreters that share it. */
static int refuse_subinterpreter(void) {
  if (PyInterpreterState_Get() == PyInterpreterState_Main()) return 0;
  PyErr_SetString(PyExc_ImportError,
                  "runtime._core: expected the main interpreter, found a subinterpreter; load "
                  "libraries in the main interpreter or in a separate process");
  return -1;
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

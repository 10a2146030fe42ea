#include "elf_file.h"
#include "function.h"
#include "library.h"
#include "span.h"
#include "tensor.h"

static int core_exec(PyObject *module) {
  PyTypeObject *const types[] = {&Library_Type, &ElfFile_Type, &Function_Type, &TensorBase_Type};
  if (PyType_Ready(&Span_Type) != 0) return -1;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (PyModule_AddType(module, types[i]) != 0) return -1;
  return 0;
}

/* The types are static: one set for the process, so no sub-interpreters. */
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
    .m_slots = core_slots,
};

PyMODINIT_FUNC PyInit__core(void) { return PyModuleDef_Init(&core_module); }

/* The arguments of VirtualMachine, converted to C. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "vm/vm.h"

/* Lists, by index in the tables of the code; `devices` has the machine's devices. */
struct machine_lists {
  PyObject *constants, *weights, *callees, *devices;
};

/* The values, owned. */
struct machine_parts {
  dso_any *constants, *weights;
  dso_object **callees;
  DLDevice *devices;
  Py_ssize_t num_constants, num_weights, num_callees;
};

/* Fill in empty parts. Returns 0, or -1 with an exception set; both are followed by
 * machine_parts_free. */
int machine_parts_make(struct machine_parts *parts, const struct machine_lists *lists);
void machine_parts_free(struct machine_parts *parts);

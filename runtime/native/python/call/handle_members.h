/* The members of handles: slots and methods of Handle for the memory that it points to. */
#pragma once

#include "python/call/c_type.h"
#include "python/call/handle.h"

PyObject *handle_getattro(PyObject *object, PyObject *name);
int handle_setattro(PyObject *object, PyObject *name, PyObject *value);
extern PyNumberMethods handle_number;
extern PySequenceMethods handle_sequence;
extern PyMappingMethods handle_mapping;
extern PyBufferProcs handle_buffer;

/* Return true if the handle points to numbers, which a parameter for an array accepts. */
int handle_has_numbers(Handle *self);

/* Set the type and kind of what a result with this code points to, "*f64"; 0, or -1 with an exception
 * set. */
int handle_set_type(Handle *self, const char *code);

PyObject *handle_array(Handle *self, PyObject *argument);
PyObject *handle_pointer(Handle *self, PyObject *name);
PyObject *handle_dir(PyObject *object, PyObject *none);

/* Return true if the handle points to a function, whose type is known. Call it. */
static inline int handle_is_function(const Handle *self) {
  return self->type != NULL && self->type->how == C_FUNCTION;
}
PyObject *handle_call(PyObject *object, PyObject *args, PyObject *keywords);

/* report_unraisable(error, function): call sys.unraisablehook. */
PyObject *handle_report(PyObject *module, PyObject *args);

/* c_value(handle, type, bytes): a value that is not a struct; its pointers are parts of the handle. */
PyObject *handle_value(PyObject *module, PyObject *args);

/* c_type_of(handle): its type. */
PyObject *handle_type_of(PyObject *module, PyObject *handle);

/* handle_types_match(one, other): handle_same_library, for members. */
PyObject *handle_types_match(PyObject *module, PyObject *args);

/* handle_new(model, name): a handle of zeroed memory; None if the type is not known yet. */
PyObject *handle_new(PyObject *module, PyObject *const *args, Py_ssize_t count);

/* handle_allocate(library, owner, type): a handle of zeroed memory, which it frees. A handle or a
 * Function in place of the library stands for its library and owner. */
PyObject *handle_allocate(PyObject *module, PyObject *args);

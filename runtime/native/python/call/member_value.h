/* Values in C memory that a handle points to: read and written by their types. */
#pragma once

#include "python/call/c_type.h"
#include "python/call/handle.h"

/* Return the dict, borrowed; NULL if it was not made yet. */
PyObject *handle_known_types(PyObject *library);

/* c_types(library): the dict of a library's types by the kind of a handle; also of a handle's. */
PyObject *handle_types(PyObject *module, PyObject *library);

/* Return the type, borrowed; NULL, possibly with an exception set, if it is unknown. */
CType *handle_look_up_type(Handle *self);

/* Make a handle of a place in the memory of `parent`, or of the target of a pointer in it. */
PyObject *handle_part(Handle *parent, void *address, CType *type, int is_const, int is_target);

/* Read a value; a struct or an array is a handle of its place. */
PyObject *member_read_value(Handle *parent, CType *type, char *address, int is_const);

/* Read a member of the struct that a handle points to. */
PyObject *member_read(Handle *self, const CMember *member);

/* Write a value; `where` is the name of the member, or the index, for messages. */
int member_write_value(Handle *self, CType *type, char *address, PyObject *where, PyObject *value);

/* Write a member of the struct that a handle points to. */
int member_write(Handle *self, const CMember *member, PyObject *name, PyObject *value);

/* Call runtime.structs.members.<name>. */
PyObject *call_members(const char *name, const char *format, ...);

static inline CType *handle_type(Handle *self) {
  return self->type != NULL ? self->type : handle_look_up_type(self);
}

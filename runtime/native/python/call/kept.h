/* Callables and user data that C code keeps after the call that passed them. */
#pragma once

#include "python/call/convert.h"

extern PyTypeObject Kept_Type;

/* Convert an argument that C code keeps; 1 if it is not such an argument, or needs no keeping. */
int argument_kept(struct call_frame *frame, Py_ssize_t index, PyObject *object);

/* Keep such arguments by the handles that they belong to; 0, or -1 with an exception set. */
int arguments_keep(struct call_frame *frame);

/* Return a new reference to the user data at an address that C code passes back, or NULL. */
PyObject *kept_data_at(const void *address);

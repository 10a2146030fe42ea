/* Reference counts of TVM FFI heap objects. No Python.h. */
#ifndef DSO_PACKER_NATIVE_OBJECT_H
#define DSO_PACKER_NATIVE_OBJECT_H

#include "../include/dso_packer.h"

/* Drop one strong reference; the last one runs the object's deleter. */
void object_release(dso_object *object);

#endif

/* CallSequence: calls bound once, over tensors that lie where they lie; what a graph executor runs. */
#ifndef DSO_PACKER_NATIVE_CALL_SEQUENCE_H
#define DSO_PACKER_NATIVE_CALL_SEQUENCE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyTypeObject CallSequence_Type;

#endif

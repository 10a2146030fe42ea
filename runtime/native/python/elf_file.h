/* ElfFile: a statically checked shared object on disk, which is not loaded. */
#ifndef DSO_PACKER_PYTHON_ELF_FILE_H
#define DSO_PACKER_PYTHON_ELF_FILE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyTypeObject ElfFile_Type;

#endif

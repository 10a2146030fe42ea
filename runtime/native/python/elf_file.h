/* ElfFile: a statically checked shared object on disk, which is not loaded. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyTypeObject ElfFile_Type;

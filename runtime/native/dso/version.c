/* version.c: the version of libdso. */
#include "dso.h"

#ifndef DSO_VERSION /* setup.py passes the one of runtime/abi.py */
#define DSO_VERSION "unknown"
#endif

const char *dso_version(void) { return DSO_VERSION; }

/* The table of the functions that the core provides to libraries. */
#include "library/provided.h"

#include <string.h>

#define ROW(name) {"__" #name, (provided_function)name}

const struct provided provided[NUM_PROVIDED] = {
    ROW(TVMFFIFunctionCall),
    ROW(TVMFFIErrorSetRaisedFromCStr),
    ROW(TVMFFIErrorSetRaisedFromCStrParts),
    ROW(TVMFFIEnvModLookupFromImports),
    ROW(TVMFFIHandleInitOnce),
    ROW(TVMFFIEnvSetStream),
    ROW(TVMFFIEnvGetStream),
    ROW(DSOFindWeight),
    ROW(TVMFuncCall),
    ROW(TVMAPISetLastError),
    ROW(TVMGetLastError),
    ROW(TVMBackendGetFuncFromEnv),
    ROW(TVMBackendAllocWorkspace),
    ROW(TVMBackendFreeWorkspace),
    ROW(TVMBackendParallelLaunch),
    ROW(TVMBackendParallelBarrier),
    ROW(TVMBackendRegisterSystemLibSymbol),
    ROW(TVMFFIEnvModRegisterSystemLibSymbol),
};

int is_provided(const char *name) {
  for (size_t i = 0; i < NUM_PROVIDED; i++)
    if (strcmp(provided[i].variable + 2, name) == 0) return 1;
  return 0;
}

/* The functions of TVM's two C interfaces that the core provides to libraries. No Python.h.
 *
 * They are the only symbols that the core exports, for libraries that leave them undefined
 * (bridge.h); a library that has pointer variables for them gets those filled (context.h). */
#ifndef DSO_PACKER_LIBRARY_PROVIDED_H
#define DSO_PACKER_LIBRARY_PROVIDED_H

#include "abi/object.h"
#include "library/packed.h"
#include "threads/pool.h"

/* Protected: seen by others, but the core itself always means its own, even where a TVM runtime is
 * in the global scope. */
#define PROVIDED __attribute__((visibility("protected")))

/* ---- ffi_api.c: as in TVM FFI's c_api.h and c_env_api.h */

PROVIDED int TVMFFIFunctionCall(void *function, const dso_any *args, int32_t num_args,
                                dso_any *result);
PROVIDED void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message);
PROVIDED void TVMFFIErrorSetRaisedFromCStrParts(const char *kind, const char **parts,
                                                int32_t num_parts);
PROVIDED int TVMFFIEnvModLookupFromImports(void *context, const char *name, void **function);
PROVIDED int TVMFFIHandleInitOnce(void **handle, int (*init)(void **result));

/* ---- backend_api.c: as in TVM's c_runtime_api.h and c_backend_api.h, to 2025 */

PROVIDED int TVMFuncCall(void *function, packed_value *args, int *type_codes, int num_args,
                         packed_value *result, int *result_code);
PROVIDED void TVMAPISetLastError(const char *text);
PROVIDED const char *TVMGetLastError(void);
PROVIDED int TVMBackendGetFuncFromEnv(void *context, const char *name, void **function);
PROVIDED void *TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t nbytes, int code,
                                        int bits);
PROVIDED int TVMBackendFreeWorkspace(int device_type, int device_id, void *data);
PROVIDED int TVMBackendParallelLaunch(dso_parallel_task task, void *data, int num_task);
PROVIDED int TVMBackendParallelBarrier(int task_id, struct parallel_group_env *env);

/* ---- system_lib.c: what statically linked models call at start-up */

PROVIDED int TVMBackendRegisterSystemLibSymbol(const char *name, void *address);
PROVIDED int TVMFFIEnvModRegisterSystemLibSymbol(const char *name, void *address);

/* ---- The table of them all */

typedef void (*provided_function)(void);

struct provided {
  const char *variable; /* two underscores and the function's name */
  provided_function function;
};

extern const struct provided provided[];
extern const size_t num_provided;

/* Whether the core provides a function of this name. */
int is_provided(const char *name);

#endif

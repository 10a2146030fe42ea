/* The functions of TVM's two C interfaces that the core provides to libraries.
 *
 * The core exports only these and PyInit__core. A library either leaves them undefined (bridge.h)
 * or has pointer variables for them, which the core fills (context.h). */
#ifndef DSO_PACKER_LIBRARY_PROVIDED_H
#define DSO_PACKER_LIBRARY_PROVIDED_H

#include "abi/object.h"
#include "library/packed.h"
#include "threads/pool.h"

/* Protected: other objects can bind to these symbols, but the core always uses its own definitions,
 * even if a TVM runtime is in the global scope. */
#define PROVIDED __attribute__((visibility("protected")))

/* ---- ffi_api.c and init_once.c: TVM FFI's c_api.h and c_env_api.h */

PROVIDED int TVMFFIFunctionCall(void *function, const dso_any *args, int32_t num_args,
                                dso_any *result);
PROVIDED void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message);
PROVIDED void TVMFFIErrorSetRaisedFromCStrParts(const char *kind, const char **parts,
                                                int32_t num_parts);
PROVIDED int TVMFFIEnvModLookupFromImports(void *context, const char *name, void **function);
PROVIDED int TVMFFIHandleInitOnce(void **handle, int (*init)(void **result));

/* ---- backend_api.c: TVM's c_runtime_api.h and c_backend_api.h until 2025 */

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

/* ---- registered.c: statically linked models call these at start-up */

PROVIDED int TVMBackendRegisterSystemLibSymbol(const char *name, void *address);
PROVIDED int TVMFFIEnvModRegisterSystemLibSymbol(const char *name, void *address);

/* ---- The table of all of them */

typedef void (*provided_function)(void);

struct provided {
  const char *variable; /* two underscores and the function's name */
  provided_function function;
};

extern const struct provided provided[];
extern const size_t num_provided;

/* True if the core provides a function of this name. */
int is_provided(const char *name);

#endif

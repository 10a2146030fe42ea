/* The functions that the core provides to libraries: of TVM's two C interfaces, and DSOFindWeight.
 *
 * No object exports them, so two copies of the core in one process do not see each other. A library
 * either leaves them undefined, and is bound to them by a bridge (bridge.h), or has pointer
 * variables for them, which the core fills (context.h). */
#pragma once

#include "abi/object.h"
#include "library/packed.h"
#include "threads/launch.h"

/* ---- ffi_api.c, init_once.c and stream.c: TVM FFI's c_api.h and c_env_api.h */

int TVMFFIFunctionCall(void *function, const dso_any *args, int32_t num_args, dso_any *result);
void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message);
void TVMFFIErrorSetRaisedFromCStrParts(const char *kind, const char **parts, int32_t num_parts);
int TVMFFIEnvModLookupFromImports(void *pointer, const char *name, void **function);
int TVMFFIHandleInitOnce(void **handle, int (*init)(void **result));
int TVMFFIEnvSetStream(int32_t device_type, int32_t device_id, void *stream, void **original);
void *TVMFFIEnvGetStream(int32_t device_type, int32_t device_id);

/* ---- backend_api.c: TVM's c_runtime_api.h and c_backend_api.h until 2025 */

int TVMFuncCall(void *function, packed_value *args, int *type_codes, int num_args,
                packed_value *result, int *result_code);
void TVMAPISetLastError(const char *text);
const char *TVMGetLastError(void);
int TVMBackendGetFuncFromEnv(void *context, const char *name, void **function);
void *TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t nbytes, int code, int bits);
int TVMBackendFreeWorkspace(int device_type, int device_id, void *data);
int TVMBackendParallelLaunch(dso_parallel_task task, void *data, int num_task);
int TVMBackendParallelBarrier(int task_id, struct parallel_group_env *env);

/* ---- weights.c: ours (docs/format.md) */

int DSOFindWeight(void *pointer, const char *name, DLTensor *tensor);

/* ---- registered.c: statically linked models call these at start-up */

int TVMBackendRegisterSystemLibSymbol(const char *name, void *address);
int TVMFFIEnvModRegisterSystemLibSymbol(const char *name, void *address);

/* ---- The table of all of them */

typedef void (*provided_function)(void);

struct provided {
  const char *variable; /* two underscores and the function's name */
  provided_function function;
};

enum { NUM_PROVIDED = 18 };
extern const struct provided provided[NUM_PROVIDED];

/* True if the core provides a function of this name. */
int is_provided(const char *name);

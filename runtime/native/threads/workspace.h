/* Workspaces: scratch memory that host code allocates and frees in reverse order.
 *
 * Each thread has one workspace per device, so no lock is needed, and a thread reuses its own memory. A
 * thread that ends frees its workspaces. */
#pragma once

#include <stdint.h>

/* TVMBackendAllocWorkspace: at least `nbytes` of memory, aligned to 64; NULL with a DeviceError
 * raised. `code` and `bits`, the intended data type, are ignored. */
void *workspace_alloc(int device_type, int device_id, uint64_t nbytes, int code, int bits);

/* TVMBackendFreeWorkspace, called in the thread that allocated. Returns 0, or -1 with a DeviceError
 * raised. */
int workspace_free(int device_type, int device_id, void *data);

/* Workspaces: scratch memory that host code asks for and gives back in turn. No Python.h.
 *
 * Each thread has a pool of its own for each device, so that nothing is locked and what one thread
 * left is reused by it; a thread that ends frees its pools. */
#ifndef DSO_PACKER_THREADS_WORKSPACE_H
#define DSO_PACKER_THREADS_WORKSPACE_H

#include <stdint.h>

/* TVMBackendAllocWorkspace: memory of at least `nbytes`, aligned to 64; NULL with a DeviceError
 * raised. `code` and `bits`, the data type that will lie there, change nothing. */
void *workspace_alloc(int device_type, int device_id, uint64_t nbytes, int code, int bits);

/* TVMBackendFreeWorkspace, in the thread that allocated; 0, or -1 with a DeviceError raised. */
int workspace_free(int device_type, int device_id, void *data);

#endif

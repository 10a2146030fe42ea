/* Memory of a device for the virtual machine: pieces that were given back are used again. No
 * Python.h.
 *
 * A piece is a Storage object. It comes from a pool, and goes back there when its last reference
 * goes, in any thread; a pool that was closed frees what comes back. */
#ifndef DSO_PACKER_VM_POOL_H
#define DSO_PACKER_VM_POOL_H

#include "device/device_api.h"
#include "abi/object.h"

struct vm_pool;

struct vm_storage {
  dso_object object;
  struct vm_pool *pool;
  struct vm_storage *next; /* in the pool */
  void *data;              /* aligned to VM_ALIGNMENT */
  size_t nbytes;           /* what was asked for */
  size_t capacity;
};

/* TVM, kAllocAlignment: its kernels are compiled for memory that is aligned so. */
enum { VM_ALIGNMENT = 64 };

/* A pool of a device; NULL with DeviceError or MemoryError raised. */
struct vm_pool *vm_pool_new(DLDevice device);

/* Free what nobody uses, now; and the rest as it comes back. */
void vm_pool_close(struct vm_pool *pool);

DLDevice vm_pool_device(const struct vm_pool *pool);
const struct device_api *vm_pool_api(const struct vm_pool *pool);

/* A piece with one reference, its bytes not set; NULL with an error raised. */
struct vm_storage *vm_pool_alloc(struct vm_pool *pool, size_t nbytes);

/* The Storage object of a value, or NULL. */
struct vm_storage *vm_storage_of(const dso_any *value);

#endif

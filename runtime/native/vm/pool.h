/* Device memory for the virtual machine: freed pieces are reused.
 *
 * A piece is a Storage object. It is allocated from a pool, and its last release returns it to the
 * pool, in any thread. A closed pool frees the pieces that are returned. */
#ifndef DSO_PACKER_VM_POOL_H
#define DSO_PACKER_VM_POOL_H

#include "device/device_api.h"
#include "abi/object.h"

struct vm_pool;

struct vm_storage {
  dso_object object;
  struct vm_pool *pool;
  struct vm_storage *next; /* in the pool's free list */
  void *data;              /* aligned to VM_ALIGNMENT */
  size_t nbytes;           /* the requested size */
  size_t capacity;
};

/* TVM, kAllocAlignment: TVM compiles its kernels for this alignment. */
enum { VM_ALIGNMENT = 64 };

/* A new pool of a device's memory; NULL with DeviceError or MemoryError raised. */
struct vm_pool *vm_pool_new(DLDevice device);

/* Free the unused pieces now, and each piece in use when it is returned. */
void vm_pool_close(struct vm_pool *pool);

/* Free the unused pieces of all pools of the process. */
void vm_pools_trim(void);

DLDevice vm_pool_device(const struct vm_pool *pool);

/* A piece with one reference, not initialised; NULL with an error raised. */
struct vm_storage *vm_pool_alloc(struct vm_pool *pool, size_t nbytes);

/* The Storage object of a value, or NULL. */
struct vm_storage *vm_storage_of(const dso_any *value);

#endif

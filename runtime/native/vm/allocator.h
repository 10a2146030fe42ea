/* Device memory for the virtual machine: freed pieces are reused, and large ones that no call of the
 * last ones used are freed.
 *
 * A piece is a Storage object. It is allocated from an allocator, and its last release returns it to the
 * allocator, in any thread. A closed allocator frees the pieces that are returned. */
#pragma once

#include "device/device_api.h"
#include "abi/object.h"

struct vm_allocator;

struct vm_storage {
  dso_object object;
  struct vm_allocator *allocator;
  struct vm_storage *next; /* in the allocator's free list */
  void *data;              /* aligned to VM_ALIGNMENT */
  size_t nbytes;           /* the requested size */
  size_t capacity;
  size_t last_call; /* of the machine, that used an unused piece */
};

/* TVM, kAllocAlignment: TVM compiles its kernels for this alignment. */
enum { VM_ALIGNMENT = 64 };
/* Enough for code that calls dso.any_alignment: C's for each type. NumPy allocates arrays with it. */
enum { VM_LEAST_ALIGNMENT = 16 };

/* A new allocator of a device's memory; NULL with DeviceError or MemoryError raised. */
struct vm_allocator *vm_allocator_new(DLDevice device);

/* Free the unused pieces now, and each piece in use when it is returned. */
void vm_allocator_close(struct vm_allocator *allocator);

/* Count a call of the machine: what many calls did not use is freed. */
void vm_allocator_count_call(struct vm_allocator *allocator);

/* Free the unused pieces of all allocators of the process. */
void vm_allocators_trim(void);

DLDevice vm_allocator_device(const struct vm_allocator *allocator);

/* A piece with one reference, not initialised; NULL with an error raised. */
struct vm_storage *vm_allocator_alloc(struct vm_allocator *allocator, size_t nbytes);

/* The Storage object of a value, or NULL. */
struct vm_storage *vm_storage_of(const dso_any *value);

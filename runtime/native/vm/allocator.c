/* Pools of device memory, with a free list per size class. */
#include "vm/allocator.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "abi/dlpack.h"
#include "abi/heap.h"
#include "abi/raised.h"

/* Under AddressSanitizer only the requested bytes of a piece in use may be accessed, and no bytes
 * of an unused piece: the allocator poisons the rest. */
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define ALLOW(memory, nbytes) ASAN_UNPOISON_MEMORY_REGION(memory, nbytes)
#define FORBID(memory, nbytes) ASAN_POISON_MEMORY_REGION(memory, nbytes)
#else
#define ALLOW(memory, nbytes) ((void)(memory), (void)(nbytes))
#define FORBID(memory, nbytes) ((void)(memory), (void)(nbytes))
#endif

/* Sizes are rounded up to classes: multiples of 64 up to 512, then eight classes per doubling. At
 * most an eighth is wasted, and shapes that change a little reuse the same pieces. */
enum { STEPS = 8, NUM_CLASSES = STEPS * 56 };

/* An unused piece serves requests of at least a quarter of its size, and a new piece replaces an
 * unused one of at least a quarter: calls of many shapes keep about the memory of the largest. */
enum { NEAR = 2 * STEPS };

/* An unused piece of LARGE bytes is freed after as many calls without it: a prompt needs memory that
 * the calls for single tokens do not. */
enum { KEPT_CALLS = 32, LARGE = 1 << 20 };

struct vm_allocator {
  struct vm_allocator *next, **link; /* in the list of all open allocators */
  atomic_size_t references;          /* one for the owner, and one for each piece in use */
  atomic_flag busy; /* guards `free`; a thread that finds it set bypasses the allocator */
  atomic_bool is_closed;
  atomic_size_t num_calls;
  DLDevice device;
  const struct device_api *api;
  struct vm_storage *free[NUM_CLASSES];
};

static pthread_mutex_t listing = PTHREAD_MUTEX_INITIALIZER;
static struct vm_allocator *open_allocators;

static size_t class_of(size_t nbytes, size_t *capacity) {
  size_t units = nbytes <= VM_ALIGNMENT ? 1 : (nbytes - 1) / VM_ALIGNMENT + 1, shift = 0;
  while ((units - 1) >> shift >= (size_t)2 * STEPS) shift++;
  size_t steps = ((units - 1) >> shift) + 1;
  *capacity = (steps << shift) * VM_ALIGNMENT;
  return shift * STEPS + steps - 1;
}

static int enter(struct vm_allocator *allocator) {
  return !atomic_flag_test_and_set_explicit(&allocator->busy, memory_order_acquire);
}

static void leave(struct vm_allocator *allocator) {
  atomic_flag_clear_explicit(&allocator->busy, memory_order_release);
}

static int is_on_cpu(const struct vm_allocator *allocator) {
  return allocator->device.device_type == DLPACK_CPU;
}

static void allow_only(const struct vm_storage *piece, size_t nbytes) {
  if (!is_on_cpu(piece->allocator)) return;
  ALLOW(piece->data, nbytes);
  FORBID((char *)piece->data + nbytes, piece->capacity - nbytes);
}

static void free_piece(struct vm_storage *piece) {
  allow_only(piece, piece->capacity);
  (void)piece->allocator->api->free(piece->allocator->device.device_id, piece->data);
  object_free(piece, DSO_DELETE_WEAK);
}

static void free_all(struct vm_allocator *allocator) {
  for (size_t i = 0; i < NUM_CLASSES; i++)
    while (allocator->free[i] != NULL) {
      struct vm_storage *piece = allocator->free[i];
      allocator->free[i] = piece->next;
      free_piece(piece);
    }
}

static void free_older(struct vm_allocator *allocator, size_t call) {
  size_t capacity;
  for (size_t i = class_of(LARGE, &capacity); i < NUM_CLASSES; i++)
    for (struct vm_storage **link = &allocator->free[i], *piece; (piece = *link) != NULL;)
      if (piece->last_call < call) {
        *link = piece->next;
        free_piece(piece);
      } else link = &piece->next;
}

void vm_allocator_count_call(struct vm_allocator *allocator) {
  size_t call = atomic_fetch_add_explicit(&allocator->num_calls, 1, memory_order_relaxed) + 1;
  if (call % KEPT_CALLS != 0 || !enter(allocator)) return;
  free_older(allocator, call - KEPT_CALLS);
  leave(allocator);
}

static void release(struct vm_allocator *allocator) {
  if (atomic_fetch_sub_explicit(&allocator->references, 1, memory_order_acq_rel) != 1) return;
  free_all(allocator);
  free(allocator);
}

/* Return an unused piece to its allocator. */
static void give_back(struct vm_storage *piece) {
  struct vm_allocator *allocator = piece->allocator;
  size_t capacity, class = class_of(piece->capacity, &capacity);
  allow_only(piece, 0);
  if (!atomic_load_explicit(&allocator->is_closed, memory_order_acquire) && enter(allocator)) {
    piece->last_call = atomic_load_explicit(&allocator->num_calls, memory_order_relaxed);
    piece->next = allocator->free[class];
    allocator->free[class] = piece;
    leave(allocator);
  } else {
    free_piece(piece);
  }
  release(allocator);
}

static void delete_storage(void *self, int flags) {
  if (flags == (DSO_DELETE_STRONG | DSO_DELETE_WEAK)) give_back(self);
  else if (flags & DSO_DELETE_WEAK) {
    /* the weak references outlived the strong ones */
    struct vm_allocator *allocator = ((struct vm_storage *)self)->allocator;
    free_piece(self);
    release(allocator);
  }
}

static void add_to_list(struct vm_allocator *allocator) {
  pthread_mutex_lock(&listing);
  allocator->next = open_allocators;
  allocator->link = &open_allocators;
  if (open_allocators != NULL) open_allocators->link = &allocator->next;
  open_allocators = allocator;
  pthread_mutex_unlock(&listing);
}

static void remove_from_list(struct vm_allocator *allocator) {
  pthread_mutex_lock(&listing);
  *allocator->link = allocator->next;
  if (allocator->next != NULL) allocator->next->link = allocator->link;
  pthread_mutex_unlock(&listing);
}

struct vm_allocator *vm_allocator_new(DLDevice device) {
  const struct device_api *api = device_api(device.device_type);
  if (api == NULL || api->check(device.device_id) != 0) return NULL;
  struct vm_allocator *allocator = heap_new_zeroed(1, sizeof *allocator);
  if (allocator == NULL) return raised_null("OutOfMemoryError", "no memory for an allocator");
  allocator->references = 1;
  allocator->device = device;
  allocator->api = api;
  add_to_list(allocator);
  return allocator;
}

void vm_allocators_trim(void) {
  pthread_mutex_lock(&listing);
  for (struct vm_allocator *allocator = open_allocators; allocator != NULL;
       allocator = allocator->next)
    if (enter(allocator)) {
      free_all(allocator);
      leave(allocator);
    }
  pthread_mutex_unlock(&listing);
}

void vm_allocator_close(struct vm_allocator *allocator) {
  remove_from_list(allocator);
  atomic_store_explicit(&allocator->is_closed, 1, memory_order_release);
  if (enter(allocator)) {
    free_all(allocator);
    leave(allocator);
  }
  release(allocator);
}

DLDevice vm_allocator_device(const struct vm_allocator *allocator) { return allocator->device; }

static struct vm_storage *pop(struct vm_allocator *allocator, size_t class) {
  struct vm_storage *piece = allocator->free[class];
  if (piece != NULL) allocator->free[class] = piece->next;
  return piece;
}

/* The smallest unused piece near a class; else NULL, and `smaller` is the largest one below it. */
static struct vm_storage *take(struct vm_allocator *allocator, size_t class,
                               struct vm_storage **smaller) {
  struct vm_storage *piece = NULL;
  *smaller = NULL;
  if (!enter(allocator)) return NULL;
  for (size_t i = class; piece == NULL && i <= class + NEAR && i < NUM_CLASSES; i++)
    piece = pop(allocator, i);
  for (size_t i = class; piece == NULL && *smaller == NULL && i > 0 && i + NEAR > class; i--)
    *smaller = pop(allocator, i - 1);
  leave(allocator);
  if (piece != NULL) piece->object.combined_ref_count = ((uint64_t)1 << 32) | 1;
  return piece;
}

/* If the device has no memory left, free the unused pieces of the allocator, and try again. */
static int alloc_data(struct vm_allocator *allocator, size_t nbytes, void **data) {
  int id = allocator->device.device_id;
  if (allocator->api->alloc(id, nbytes, VM_ALIGNMENT, data) == 0) return 0;
  if (!enter(allocator)) return -1;
  free_all(allocator);
  leave(allocator);
  return allocator->api->alloc(id, nbytes, VM_ALIGNMENT, data);
}

static struct vm_storage *make(struct vm_allocator *allocator, size_t capacity) {
  struct vm_storage *piece = object_new_unset(sizeof *piece, DSO_OBJECT, delete_storage);
  if (piece == NULL) return raised_null("OutOfMemoryError", "no memory for a storage object");
  piece->allocator = allocator;
  piece->capacity = capacity;
  if (alloc_data(allocator, capacity, &piece->data) == 0) return piece;
  object_free(piece, DSO_DELETE_WEAK);
  return NULL;
}

struct vm_storage *vm_allocator_alloc(struct vm_allocator *allocator, size_t nbytes) {
  size_t capacity;
  if (nbytes > PTRDIFF_MAX / 2) {
    device_error(allocator->device, 0, "no memory for %zu bytes", nbytes);
    return NULL;
  }
  size_t class = class_of(nbytes, &capacity);
  struct vm_storage *smaller, *piece = take(allocator, class, &smaller);
  if (smaller != NULL) free_piece(smaller);
  if (piece == NULL) piece = make(allocator, capacity);
  if (piece == NULL) return NULL;
  piece->nbytes = nbytes;
  allow_only(piece, nbytes);
  atomic_fetch_add_explicit(&allocator->references, 1, memory_order_relaxed);
  return piece;
}

struct vm_storage *vm_storage_of(const dso_any *value) {
  if (value->type_index != DSO_OBJECT) return NULL;
  dso_object *object = value->v_ptr;
  return object->deleter == delete_storage ? (struct vm_storage *)object : NULL;
}

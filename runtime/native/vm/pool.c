/* Pools of device memory, with a free list per size class. */
#include "vm/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "abi/dlpack.h"
#include "abi/heap.h"
#include "abi/raised.h"

/* Under AddressSanitizer only the requested bytes of a piece in use may be accessed, and no bytes
 * of an unused piece: the pool poisons the rest. */
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

struct vm_pool {
  struct vm_pool *next, **link; /* in the list of all open pools */
  atomic_size_t references;     /* one for the owner, and one for each piece in use */
  atomic_flag busy;             /* guards `free`; a thread that finds it set bypasses the pool */
  atomic_bool is_closed;
  DLDevice device;
  const struct device_api *api;
  struct vm_storage *free[NUM_CLASSES];
};

static pthread_mutex_t listing = PTHREAD_MUTEX_INITIALIZER;
static struct vm_pool *open_pools;

static size_t class_of(size_t nbytes, size_t *capacity) {
  size_t units = nbytes <= VM_ALIGNMENT ? 1 : (nbytes - 1) / VM_ALIGNMENT + 1, shift = 0;
  while ((units - 1) >> shift >= (size_t)2 * STEPS) shift++;
  size_t steps = ((units - 1) >> shift) + 1;
  *capacity = (steps << shift) * VM_ALIGNMENT;
  return shift * STEPS + steps - 1;
}

static int enter(struct vm_pool *pool) {
  return !atomic_flag_test_and_set_explicit(&pool->busy, memory_order_acquire);
}

static void leave(struct vm_pool *pool) {
  atomic_flag_clear_explicit(&pool->busy, memory_order_release);
}

static int is_on_cpu(const struct vm_pool *pool) { return pool->device.device_type == DLPACK_CPU; }

static void allow_only(const struct vm_storage *piece, size_t nbytes) {
  if (!is_on_cpu(piece->pool)) return;
  ALLOW(piece->data, nbytes);
  FORBID((char *)piece->data + nbytes, piece->capacity - nbytes);
}

static void free_piece(struct vm_storage *piece) {
  allow_only(piece, piece->capacity);
  (void)piece->pool->api->free(piece->pool->device.device_id, piece->data);
  object_free(piece, DSO_DELETE_WEAK);
}

static void free_all(struct vm_pool *pool) {
  for (size_t i = 0; i < NUM_CLASSES; i++)
    while (pool->free[i] != NULL) {
      struct vm_storage *piece = pool->free[i];
      pool->free[i] = piece->next;
      free_piece(piece);
    }
}

static void release(struct vm_pool *pool) {
  if (atomic_fetch_sub_explicit(&pool->references, 1, memory_order_acq_rel) != 1) return;
  free_all(pool);
  free(pool);
}

/* Return an unused piece to its pool. */
static void give_back(struct vm_storage *piece) {
  struct vm_pool *pool = piece->pool;
  size_t capacity, class = class_of(piece->capacity, &capacity);
  allow_only(piece, 0);
  if (!atomic_load_explicit(&pool->is_closed, memory_order_acquire) && enter(pool)) {
    piece->next = pool->free[class];
    pool->free[class] = piece;
    leave(pool);
  } else {
    free_piece(piece);
  }
  release(pool);
}

static void delete_storage(void *self, int flags) {
  if (flags == (DSO_DELETE_STRONG | DSO_DELETE_WEAK)) give_back(self);
  else if (flags & DSO_DELETE_WEAK) {
    /* the weak references outlived the strong ones */
    struct vm_pool *pool = ((struct vm_storage *)self)->pool;
    free_piece(self);
    release(pool);
  }
}

static void add_to_list(struct vm_pool *pool) {
  pthread_mutex_lock(&listing);
  pool->next = open_pools;
  pool->link = &open_pools;
  if (open_pools != NULL) open_pools->link = &pool->next;
  open_pools = pool;
  pthread_mutex_unlock(&listing);
}

static void remove_from_list(struct vm_pool *pool) {
  pthread_mutex_lock(&listing);
  *pool->link = pool->next;
  if (pool->next != NULL) pool->next->link = pool->link;
  pthread_mutex_unlock(&listing);
}

struct vm_pool *vm_pool_new(DLDevice device) {
  const struct device_api *api = device_api(device.device_type);
  if (api == NULL || api->check(device.device_id) != 0) return NULL;
  struct vm_pool *pool = heap_new_zeroed(1, sizeof *pool);
  if (pool == NULL) {
    raised_set("OutOfMemoryError", "no memory for a pool");
    return NULL;
  }
  pool->references = 1;
  pool->device = device;
  pool->api = api;
  add_to_list(pool);
  return pool;
}

void vm_pools_trim(void) {
  pthread_mutex_lock(&listing);
  for (struct vm_pool *pool = open_pools; pool != NULL; pool = pool->next)
    if (enter(pool)) {
      free_all(pool);
      leave(pool);
    }
  pthread_mutex_unlock(&listing);
}

void vm_pool_close(struct vm_pool *pool) {
  remove_from_list(pool);
  atomic_store_explicit(&pool->is_closed, 1, memory_order_release);
  if (enter(pool)) {
    free_all(pool);
    leave(pool);
  }
  release(pool);
}

DLDevice vm_pool_device(const struct vm_pool *pool) { return pool->device; }

static struct vm_storage *take(struct vm_pool *pool, size_t class) {
  if (!enter(pool)) return NULL;
  struct vm_storage *piece = pool->free[class];
  if (piece != NULL) pool->free[class] = piece->next;
  leave(pool);
  if (piece != NULL) piece->object.combined_ref_count = ((uint64_t)1 << 32) | 1;
  return piece;
}

/* If the device has no memory left, free the unused pieces of the pool, and try again. */
static int alloc_data(struct vm_pool *pool, size_t nbytes, void **data) {
  int id = pool->device.device_id;
  if (pool->api->alloc(id, nbytes, VM_ALIGNMENT, data) == 0) return 0;
  if (!enter(pool)) return -1;
  free_all(pool);
  leave(pool);
  return pool->api->alloc(id, nbytes, VM_ALIGNMENT, data);
}

static struct vm_storage *make(struct vm_pool *pool, size_t capacity) {
  struct vm_storage *piece = object_new_unset(sizeof *piece, DSO_OBJECT, delete_storage);
  if (piece == NULL) {
    raised_set("OutOfMemoryError", "no memory for a storage object");
    return NULL;
  }
  piece->pool = pool;
  piece->capacity = capacity;
  if (alloc_data(pool, capacity, &piece->data) == 0) return piece;
  object_free(piece, DSO_DELETE_WEAK);
  return NULL;
}

struct vm_storage *vm_pool_alloc(struct vm_pool *pool, size_t nbytes) {
  size_t capacity;
  if (nbytes > PTRDIFF_MAX / 2) {
    device_error(pool->device, 0, "no memory for %zu bytes", nbytes);
    return NULL;
  }
  size_t class = class_of(nbytes, &capacity);
  struct vm_storage *piece = take(pool, class);
  if (piece == NULL) piece = make(pool, capacity);
  if (piece == NULL) return NULL;
  piece->nbytes = nbytes;
  allow_only(piece, nbytes);
  atomic_fetch_add_explicit(&pool->references, 1, memory_order_relaxed);
  return piece;
}

struct vm_storage *vm_storage_of(const dso_any *value) {
  if (value->type_index != DSO_OBJECT) return NULL;
  dso_object *object = value->v_ptr;
  return object->deleter == delete_storage ? (struct vm_storage *)object : NULL;
}

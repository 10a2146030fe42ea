/* Memory with a count of references. */
#include "nrt.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"

enum { FRESH = 0xCB, DEAD = 0xDE }; /* marks of the variants for debugging */

_Thread_local nrt_call *nrt_current;

/* ---- Blocks */

static nrt_meminfo *start(nrt_meminfo *self, void *data, size_t size, nrt_destroy destroy,
                          void *info) {
  *self = (nrt_meminfo){.refct = 1, .destroy = destroy, .info = info, .data = data, .size = size};
  if (nrt_current != NULL) nrt_call_add(nrt_current, self);
  return self;
}

/* A MemInfo and its data in one block, the data aligned to `align` bytes (1 if it does not
 * matter). */
static nrt_meminfo *one_block(size_t size, unsigned align, const nrt_allocator *allocator) {
  size_t total;
  if (align == 0) align = 1;
  if (__builtin_add_overflow(size, sizeof(nrt_meminfo) + align - 1, &total)) return NULL;
  nrt_meminfo *self =
      allocator != NULL ? allocator->allocate(total, allocator->context) : malloc(total);
  if (self == NULL) return NULL;
  uintptr_t first = (uintptr_t)(self + 1), beyond = first % align;
  char *data = (char *)(self + 1) + (beyond == 0 ? 0 : align - beyond);
  start(self, data, size, NULL, NULL);
  self->allocator = allocator;
  return self;
}

/* These are the data of MemInfos, so that calls that raise release them, too. */
void *NRT_Allocate(size_t size) {
  nrt_meminfo *made = one_block(size, 1, NULL);
  return made != NULL ? made->data : NULL;
}

void *NRT_Allocate_External(size_t size, const nrt_allocator *allocator) {
  return allocator != NULL ? allocator->allocate(size, allocator->context) : NRT_Allocate(size);
}

void *NRT_Reallocate(void *memory, size_t size) {
  void *made = NRT_Allocate(size);
  if (made == NULL || memory == NULL) return made;
  size_t before = ((nrt_meminfo *)memory - 1)->size;
  memcpy(made, memory, before < size ? before : size);
  NRT_Free(memory);
  return made;
}

void NRT_Free(void *memory) {
  if (memory != NULL) NRT_MemInfo_call_dtor((nrt_meminfo *)memory - 1);
}

/* A function pointer as the `info` of a MemInfo, and back. */
typedef union {
  void *info;
  nrt_destroy destroy;
  void (*of_data)(void *data);
} stored;

static void destroy_plain(void *data, size_t size, void *info) {
  stored own = {.info = info};
  if (own.destroy != NULL) own.destroy(data, size, NULL);
}

static void destroy_marked(void *data, size_t size, void *info) {
  destroy_plain(data, size, info);
  memset(data, DEAD, size);
}

static nrt_meminfo *with_destroy(nrt_meminfo *self, nrt_destroy calls, nrt_destroy own) {
  if (self == NULL) return NULL;
  self->destroy = calls;
  self->info = (stored){.destroy = own}.info;
  return self;
}

static nrt_meminfo *marked(nrt_meminfo *self, nrt_destroy own) {
  if (self != NULL) memset(self->data, FRESH, self->size);
  return with_destroy(self, destroy_marked, own);
}

nrt_meminfo *NRT_MemInfo_alloc(size_t size) { return one_block(size, 1, NULL); }

nrt_meminfo *NRT_MemInfo_alloc_external(size_t size, const nrt_allocator *allocator) {
  return one_block(size, 1, allocator);
}

nrt_meminfo *NRT_MemInfo_alloc_dtor(size_t size, nrt_destroy destroy) {
  return with_destroy(one_block(size, 1, NULL), destroy_plain, destroy);
}

nrt_meminfo *NRT_MemInfo_alloc_aligned(size_t size, unsigned align) {
  return one_block(size, align, NULL);
}

nrt_meminfo *NRT_MemInfo_alloc_safe(size_t size) { return marked(one_block(size, 1, NULL), NULL); }

nrt_meminfo *NRT_MemInfo_alloc_dtor_safe(size_t size, nrt_destroy destroy) {
  return marked(one_block(size, 1, NULL), destroy);
}

nrt_meminfo *NRT_MemInfo_alloc_safe_aligned(size_t size, unsigned align) {
  return marked(one_block(size, align, NULL), NULL);
}

nrt_meminfo *NRT_MemInfo_alloc_safe_aligned_external(size_t size, unsigned align,
                                                     const nrt_allocator *allocator) {
  return marked(one_block(size, align, allocator), NULL);
}

nrt_meminfo *NRT_MemInfo_new(void *data, size_t size, nrt_destroy destroy, void *info) {
  nrt_meminfo *self = malloc(sizeof *self);
  return self != NULL ? start(self, data, size, destroy, info) : NULL;
}

/* ---- Data that grows */

static void destroy_varsize(void *data, size_t size, void *info) {
  stored own = {.info = info};
  (void)size;
  if (own.of_data != NULL) own.of_data(data);
  free(data);
}

nrt_meminfo *NRT_MemInfo_new_varsize(size_t size) {
  return NRT_MemInfo_new_varsize_dtor(size, NULL);
}

nrt_meminfo *NRT_MemInfo_new_varsize_dtor(size_t size, nrt_destroy destroy) {
  void *data = malloc(size);
  if (data == NULL) return NULL;
  nrt_meminfo *self =
      NRT_MemInfo_new(data, size, destroy_varsize, (stored){.destroy = destroy}.info);
  if (self == NULL) free(data);
  return self;
}

void *NRT_MemInfo_varsize_alloc(nrt_meminfo *self, size_t size) {
  void *data = malloc(size);
  if (data == NULL) return NULL; /* the caller still has the old data, and frees it */
  self->data = data;
  self->size = size;
  return data;
}

void *NRT_MemInfo_varsize_realloc(nrt_meminfo *self, size_t size) {
  void *data = realloc(self->data, size);
  if (data == NULL) return NULL; /* the old data stays valid */
  self->data = data;
  self->size = size;
  return data;
}

void NRT_MemInfo_varsize_free(nrt_meminfo *self, void *data) {
  free(data);
  if (data == self->data) self->data = NULL;
}

/* ---- References */

void NRT_MemInfo_acquire(nrt_meminfo *self) {
  __atomic_fetch_add(&self->refct, 1, __ATOMIC_RELAXED);
}

void NRT_MemInfo_release(nrt_meminfo *self) {
  if (__atomic_fetch_sub(&self->refct, 1, __ATOMIC_ACQ_REL) == 1) NRT_MemInfo_call_dtor(self);
}

void nrt_free_block(nrt_meminfo *self) {
  const nrt_allocator *allocator = self->allocator;
  if (allocator != NULL) allocator->release(self, allocator->context);
  else free(self);
}

void NRT_MemInfo_call_dtor(nrt_meminfo *self) {
  if (self->destroy != NULL) self->destroy(self->data, self->size, self->info);
  if (self->call == NULL || nrt_call_remove(self)) nrt_free_block(self);
}

size_t NRT_MemInfo_refcount(nrt_meminfo *self) {
  if (self == NULL || self->data == NULL) return (size_t)-1;
  return __atomic_load_n(&self->refct, __ATOMIC_RELAXED);
}

void *NRT_MemInfo_data(nrt_meminfo *self) { return self->data; }
size_t NRT_MemInfo_size(nrt_meminfo *self) { return self->size; }
void *NRT_MemInfo_parent(nrt_meminfo *self) { return self->info; }
void *NRT_MemInfo_external_allocator(nrt_meminfo *self) {
  return (void *)(uintptr_t)self->allocator;
}

/* Weak: an object that has its own keeps them. */
__attribute__((weak)) void NRT_incref(nrt_meminfo *self) {
  if (self != NULL) NRT_MemInfo_acquire(self);
}

__attribute__((weak)) void NRT_decref(nrt_meminfo *self) {
  if (self != NULL) NRT_MemInfo_release(self);
}

__attribute__((weak)) void *NRT_MemInfo_data_fast(nrt_meminfo *self) { return self->data; }

/* ---- For other packages */

static void destroy_managed(void *data, size_t size, void *info) {
  stored own = {.info = info};
  (void)size;
  own.of_data(data);
}

static nrt_meminfo *manage(void *data, void (*destroy)(void *data)) {
  return NRT_MemInfo_new(data, 0, destroy_managed, (stored){.of_data = destroy}.info);
}

const nrt_functions *NRT_get_api(void) {
  static const nrt_functions functions = {
      NRT_MemInfo_alloc,   NRT_MemInfo_alloc_external, manage,
      NRT_MemInfo_acquire, NRT_MemInfo_release,        NRT_MemInfo_data,
  };
  return &functions;
}

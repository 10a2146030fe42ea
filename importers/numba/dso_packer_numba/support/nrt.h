/* nrt.h: memory with a count of references, as Numba's code shares it.
 *
 * Compiled code reads and writes `refct` and reads `data`: the layout is Numba's (0.67, 0.68). A
 * function that gets no memory returns NULL; compiled code then raises a MemoryError. */
#ifndef DSO_PACKER_NUMBA_NRT_H
#define DSO_PACKER_NUMBA_NRT_H

#include <stddef.h>
#include <stdint.h>

typedef void (*nrt_destroy)(void *data, size_t size, void *info);

/* Memory that a program brings. */
typedef struct {
  void *(*allocate)(size_t size, void *context);
  void *(*reallocate)(void *memory, size_t size, void *context);
  void (*release)(void *memory, void *context);
  void *context;
} nrt_allocator;

/* A circle of MemInfos. */
struct nrt_links {
  struct nrt_links *next, *previous;
};

typedef struct nrt_meminfo {
  size_t refct;
  nrt_destroy destroy; /* may be NULL */
  void *info;          /* the last argument of `destroy` */
  void *data;
  size_t size;
  const nrt_allocator *allocator; /* NULL: malloc */
  struct nrt_links links;         /* calls.h */
  struct nrt_call *call;          /* in whose circle it is; NULL if it is in none */
  struct nrt_meminfo *next_released;
} nrt_meminfo;
_Static_assert(sizeof(nrt_meminfo) % 16 == 0, "data that follows is aligned to 16 bytes");

#ifndef NB_VISIBLE /* for tests */
#pragma GCC visibility push(hidden)
#endif

/* Blocks without a count; NRT_Free releases them. */
void *NRT_Allocate(size_t size);
void *NRT_Allocate_External(size_t size, const nrt_allocator *allocator);
void *NRT_Reallocate(void *memory, size_t size);
void NRT_Free(void *memory);

/* Data that follows the MemInfo in one block. */
nrt_meminfo *NRT_MemInfo_alloc(size_t size);
nrt_meminfo *NRT_MemInfo_alloc_external(size_t size, const nrt_allocator *allocator);
nrt_meminfo *NRT_MemInfo_alloc_dtor(size_t size, nrt_destroy destroy);
nrt_meminfo *NRT_MemInfo_alloc_aligned(size_t size, unsigned align);

/* Likewise, with marks in memory that is not written yet or no longer used: for debugging. */
nrt_meminfo *NRT_MemInfo_alloc_safe(size_t size);
nrt_meminfo *NRT_MemInfo_alloc_dtor_safe(size_t size, nrt_destroy destroy);
nrt_meminfo *NRT_MemInfo_alloc_safe_aligned(size_t size, unsigned align);
nrt_meminfo *NRT_MemInfo_alloc_safe_aligned_external(size_t size, unsigned align,
                                                     const nrt_allocator *allocator);

/* Data of another owner: the last reference calls destroy(data, size, info). */
nrt_meminfo *NRT_MemInfo_new(void *data, size_t size, nrt_destroy destroy, void *info);

/* Data in a separate block, which may grow: lists and sets. `destroy` gets only the data. */
nrt_meminfo *NRT_MemInfo_new_varsize(size_t size);
nrt_meminfo *NRT_MemInfo_new_varsize_dtor(size_t size, nrt_destroy destroy);
void *NRT_MemInfo_varsize_alloc(nrt_meminfo *self, size_t size);
void *NRT_MemInfo_varsize_realloc(nrt_meminfo *self, size_t size);
void NRT_MemInfo_varsize_free(nrt_meminfo *self, void *data);

void NRT_MemInfo_acquire(nrt_meminfo *self);
void NRT_MemInfo_release(nrt_meminfo *self);
void NRT_MemInfo_call_dtor(nrt_meminfo *self); /* after the last reference */
void nrt_free_block(nrt_meminfo *self);        /* of a MemInfo that is destroyed */
size_t NRT_MemInfo_refcount(nrt_meminfo *self);
void *NRT_MemInfo_data(nrt_meminfo *self);
size_t NRT_MemInfo_size(nrt_meminfo *self);
void *NRT_MemInfo_parent(nrt_meminfo *self);
void *NRT_MemInfo_external_allocator(nrt_meminfo *self);

/* An object that was linked with Numba's runtime also defines these; NULL is allowed. */
void NRT_incref(nrt_meminfo *self);
void NRT_decref(nrt_meminfo *self);
void *NRT_MemInfo_data_fast(nrt_meminfo *self);

/* The functions that code of other packages may ask for, by their place. */
typedef struct {
  nrt_meminfo *(*allocate)(size_t size);
  nrt_meminfo *(*allocate_external)(size_t size, const nrt_allocator *allocator);
  nrt_meminfo *(*manage)(void *data, void (*destroy)(void *data));
  void (*acquire)(nrt_meminfo *self);
  void (*release)(nrt_meminfo *self);
  void *(*data)(nrt_meminfo *self);
} nrt_functions;
const nrt_functions *NRT_get_api(void);

#ifndef NB_VISIBLE
#pragma GCC visibility pop
#endif

#endif

/* Pieces of a file that are mapped into a library, and readable after their verification. */
#define _GNU_SOURCE /* mremap */
#include "library/pieces.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi/heap.h"
#include "elf/layout.h"

/* ---- Verification */

static enum piece_state state_of(const struct pieces *self, size_t piece) {
  return (enum piece_state)__atomic_load_n(&self->states[piece], __ATOMIC_ACQUIRE);
}

static int verify_mapped(const struct pieces *self, size_t first, size_t count, void *place) {
  if (self->verify(self->context, first, count, NULL) != 0) return -1;
  return mprotect(place, count * self->piece_nbytes, PROT_READ);
}

/* Verified copies replace the pages at once: other threads may read tensors there. */
static int verify_copied(const struct pieces *self, size_t first, size_t count, void *place) {
  size_t nbytes = count * self->piece_nbytes;
  void *copy = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return -1;
  if (self->verify(self->context, first, count, copy) == 0 &&
      mprotect(copy, nbytes, PROT_READ) == 0 &&
      mremap(copy, nbytes, nbytes, MREMAP_MAYMOVE | MREMAP_FIXED, place) != MAP_FAILED)
    return 0;
  int code = errno;
  munmap(copy, nbytes);
  errno = code;
  return -1;
}

/* Threads may verify the same pieces at once; each result is the same. */
static int prove_run(struct pieces *self, size_t first, size_t count, int is_copied) {
  void *place = (void *)(uintptr_t)(self->bytes + first * self->piece_nbytes);
  uint8_t state = is_copied ? PIECE_COPIED : PIECE_MAPPED;
  if ((is_copied ? verify_copied : verify_mapped)(self, first, count, place) != 0) return -1;
  for (size_t i = first; i < first + count; i++) {
    uint8_t older = PIECE_UNPROVED;
    if (is_copied) __atomic_store_n(&self->states[i], state, __ATOMIC_RELEASE);
    else
      (void)__atomic_compare_exchange_n(&self->states[i], &older, state, 0, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED);
  }
  return 0;
}

static int prove(struct proof *proof, const uint8_t *bytes, size_t nbytes, int is_copied) {
  struct pieces *self = (struct pieces *)proof;
  enum piece_state least = is_copied ? PIECE_COPIED : PIECE_MAPPED;
  if (nbytes == 0 || bytes >= self->bytes + self->nbytes || bytes + nbytes <= self->bytes) return 0;
  size_t begin = bytes > self->bytes ? (size_t)(bytes - self->bytes) : 0;
  size_t end = (size_t)(bytes + nbytes - self->bytes);
  if (end > self->nbytes) end = self->nbytes;
  size_t stop = (end - 1) / self->piece_nbytes + 1;
  for (size_t first = begin / self->piece_nbytes, next; first < stop; first = next) {
    int done = state_of(self, first) >= least;
    for (next = first + 1; next < stop && (state_of(self, next) >= least) == done;) next++;
    if (!done && prove_run(self, first, next - first, is_copied) != 0) return -1;
  }
  return 0;
}

/* ---- The map */

/* The read-only bytes of the library that have these offsets in its file; NULL if there are none. */
static const uint8_t *place_of(const struct loaded *library, const struct file_range *range) {
  for (uint32_t i = 0; i < library->image.num_loads; i++) {
    const struct elf_segment *at = &library->image.loads[i];
    if (at->flags == PF_R && range->offset >= at->offset &&
        range->offset - at->offset <= at->filesz &&
        range->nbytes <= at->filesz - (range->offset - at->offset))
      return library->address + at->vaddr + (range->offset - at->offset);
  }
  return NULL;
}

static int is_whole(const struct file_range *range, const uint8_t *place) {
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), piece = range->piece_nbytes;
  return piece > 0 && piece % page == 0 && range->nbytes > 0 && range->offset % piece == 0 &&
         range->nbytes % piece == 0 && (uintptr_t)place % page == 0;
}

int pieces_map(struct pieces *self, const struct loaded *library, const struct file_range *range,
               struct load_error *error) {
  const uint8_t *place = place_of(library, range);
  if (place == NULL || !is_whole(range, place))
    return load_error_set(error, "malformed", "no read-only bytes of whole pieces to map over");
  size_t count = (size_t)(range->nbytes / range->piece_nbytes);
  self->states = heap_new(count);
  if (self->states == NULL) return load_error_memory(error);
  memset(self->states, 0, count);
  if (mmap((void *)(uintptr_t)place, (size_t)range->nbytes, PROT_NONE,
           MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, range->descriptor,
           (off_t)range->offset) == MAP_FAILED) {
    pieces_free(self);
    return load_error_set(error, "io", "cannot map its weights: %s", strerror(errno));
  }
  self->proof.prove = prove;
  self->nbytes = (size_t)range->nbytes;
  self->piece_nbytes = (size_t)range->piece_nbytes;
  self->bytes = place;
  return 0;
}

void pieces_free(struct pieces *self) {
  free(self->states);
  self->states = NULL;
}

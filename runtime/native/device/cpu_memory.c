/* The memory of tensors on the CPU. */
#include "device/cpu_memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"

/* The first allocation decides for good, since a block must go back to its allocator. */
enum { UNDECIDED, C_LIBRARY, SETTING, PROGRAM };

static int choice;
static struct cpu_allocator program;

static int is_same(const struct cpu_allocator *other) {
  return program.allocate == other->allocate && program.deallocate == other->deallocate &&
         program.context == other->context;
}

int cpu_memory_set_allocator(const struct cpu_allocator *allocator) {
  int found = UNDECIDED;
  if (__atomic_compare_exchange_n(&choice, &found, SETTING, 0, __ATOMIC_ACQ_REL,
                                  __ATOMIC_ACQUIRE)) {
    program = *allocator;
    __atomic_store_n(&choice, PROGRAM, __ATOMIC_RELEASE);
    return 0;
  }
  while ((found = __atomic_load_n(&choice, __ATOMIC_ACQUIRE)) == SETTING) continue;
  return found == PROGRAM && is_same(allocator) ? 0 : -1;
}

static int decide(void) {
  int found = __atomic_load_n(&choice, __ATOMIC_ACQUIRE);
  if (found == UNDECIDED)
    (void)__atomic_compare_exchange_n(&choice, &found, C_LIBRARY, 0, __ATOMIC_ACQ_REL,
                                      __ATOMIC_ACQUIRE);
  while ((found = __atomic_load_n(&choice, __ATOMIC_ACQUIRE)) == SETTING) continue;
  return found;
}

int cpu_memory_is_of_program(void) { return decide() == PROGRAM; }

/* The block to return to the program's allocator; stored before the data. */
struct block {
  void *start;
  size_t nbytes;
};

static void *new_of_program(size_t nbytes, size_t alignment) {
  size_t before = alignment > sizeof(struct block) ? alignment : sizeof(struct block);
  if (nbytes > PTRDIFF_MAX - before) return NULL;
  struct block block = {program.allocate(program.context, before + nbytes, alignment),
                        before + nbytes};
  if (block.start == NULL) return NULL;
  char *data = (char *)block.start + before;
  memcpy(data - sizeof block, &block, sizeof block);
  return data;
}

void *cpu_memory_new(size_t nbytes, size_t alignment) {
  if (cpu_memory_is_of_program()) return new_of_program(nbytes, alignment);
  return heap_new_aligned(alignment, nbytes);
}

void cpu_memory_free(void *data) {
  struct block block;
  if (data == NULL || !cpu_memory_is_of_program()) {
    free(data);
    return;
  }
  memcpy(&block, (char *)data - sizeof block, sizeof block);
  program.deallocate(program.context, block.start, block.nbytes);
}

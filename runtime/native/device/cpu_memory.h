/* The memory of tensors on the CPU: of the C library, or of the program's own allocator. */
#pragma once

#include <stddef.h>

/* As in dso_options. */
struct cpu_allocator {
  void *(*allocate)(void *context, size_t nbytes, size_t alignment);
  void (*deallocate)(void *context, void *block, size_t nbytes);
  void *context;
};

/* Use an allocator from now on. Returns 0, or -1 if memory was allocated by another one before. */
int cpu_memory_set_allocator(const struct cpu_allocator *allocator);

/* True if memory comes from the program's allocator. As an allocation, this decides for good. */
int cpu_memory_is_of_program(void);

/* `alignment` is a power of two. NULL without memory. */
void *cpu_memory_new(size_t nbytes, size_t alignment);
void cpu_memory_free(void *data);

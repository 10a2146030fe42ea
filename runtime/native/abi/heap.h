/* Heap memory of the core. Every block is allocated here, so that a test can make any allocation
 * fail. Blocks are freed by free(). python/ uses PyMem_* where it holds the GIL. */
#pragma once

#include <stdarg.h>
#include <stddef.h>

/* Each returns NULL without memory, like the libc function in brackets. */
void *heap_new(size_t nbytes);                              /* [malloc] */
void *heap_new_zeroed(size_t count, size_t itemsize);       /* [calloc] */
void *heap_new_aligned(size_t alignment, size_t nbytes);    /* [posix_memalign] */
void *heap_resize(void *block, size_t nbytes);              /* [realloc] */
char *heap_copy_text(const char *text);                     /* [strdup] */
char *heap_format_list(const char *format, va_list values); /* [vasprintf] */
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
char *heap_format(const char *format, ...); /* [asprintf] */

/* Functions that return an error text return this pointer if there is no memory. */
extern const char HEAP_NO_MEMORY[];

/* For tests: make the n-th allocation from now on fail, counted over all threads from 1; 0 lets all
 * succeed. Return how many allocations remained before the previously requested failure, 0 if it
 * has happened. */
long heap_fail_at(long n);

/* Heap memory of the core: every block is allocated here, so that a test can make any one fail.
 * Blocks are freed by free(). The Python wing uses PyMem_* where it has the GIL. No Python.h. */
#ifndef DSO_PACKER_ABI_HEAP_H
#define DSO_PACKER_ABI_HEAP_H

#include <stdarg.h>
#include <stddef.h>

/* Each returns NULL if there is no memory, as the function of libc in brackets does. */
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

/* What a function that returns the text of an error returns if there is no memory: this pointer. */
extern const char HEAP_NO_MEMORY[];

/* For tests: let the n-th allocation from now on fail, counted over all threads from 1; 0 lets all
 * succeed. Returns how many were still missing before the failure that was asked for last: 0 if it
 * has happened. */
long heap_fail_at(long n);

#endif

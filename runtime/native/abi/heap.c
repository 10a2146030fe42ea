/* Heap memory, and a failure on request for tests. */
#define _GNU_SOURCE /* vasprintf */
#include "abi/heap.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char HEAP_NO_MEMORY[] = "no memory";

static atomic_long until_failure; /* 0: no failure is requested */

long heap_fail_at(long n) { return atomic_exchange(&until_failure, n); }

/* Several threads may pass the first test at once, so the count can fall below zero. */
static int is_refused(void) {
  if (atomic_load_explicit(&until_failure, memory_order_relaxed) <= 0) return 0;
  return atomic_fetch_sub(&until_failure, 1) == 1;
}

void *heap_new(size_t nbytes) { return is_refused() ? NULL : malloc(nbytes); }

void *heap_new_zeroed(size_t count, size_t itemsize) {
  return is_refused() ? NULL : calloc(count, itemsize);
}

void *heap_new_aligned(size_t alignment, size_t nbytes) {
  void *block = NULL;
  if (is_refused() || nbytes > PTRDIFF_MAX) return NULL;
  return posix_memalign(&block, alignment, nbytes) == 0 ? block : NULL;
}

void *heap_resize(void *block, size_t nbytes) {
  return is_refused() ? NULL : realloc(block, nbytes);
}

char *heap_copy_text(const char *text) { return is_refused() ? NULL : strdup(text); }

char *heap_format_list(const char *format, va_list values) {
  char *text = NULL;
  return is_refused() || vasprintf(&text, format, values) < 0 ? NULL : text;
}

char *heap_format(const char *format, ...) {
  va_list values;
  va_start(values, format);
  char *text = heap_format_list(format, values);
  va_end(values);
  return text;
}

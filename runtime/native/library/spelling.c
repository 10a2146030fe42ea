/* New spellings of a path, for dlopen. */
#include "library/spelling.h"

#include <stdint.h>
#include <string.h>

#include "abi/heap.h"

enum { COPY_BITS = 20, PAGE_BITS = 12 };

/* Between dir/ and name, the bits of a number as "./" (1) and "/" (0). It counts spellings, and
 * contains a part of this copy's address, because several copies of the core in one process would
 * give equal names to different files. */
char *spelling_new(const char *path) {
  static uint64_t counter = 1;
  uint64_t copy = (uintptr_t)&counter >> PAGE_BITS & ((1 << COPY_BITS) - 1);
  uint64_t count = counter++ << COPY_BITS | copy;
  const char *name = strrchr(path, '/') + 1;
  size_t dir_length = (size_t)(name - path);
  char *spelling = heap_new(strlen(path) + sizeof count * 8 * 2 + 1);
  if (spelling == NULL) return NULL;
  memcpy(spelling, path, dir_length);
  char *end = spelling + dir_length;
  for (; count != 0; count >>= 1) {
    if (count & 1) *end++ = '.';
    *end++ = '/';
  }
  memcpy(end, name, strlen(name) + 1);
  return spelling;
}

int spelling_has_token(const char *path) {
  static const char *const tokens[] = {"ORIGIN", "LIB", "PLATFORM"};
  while ((path = strchr(path, '$')) != NULL) {
    path += path[1] == '{' ? 2 : 1;
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
      if (strncmp(path, tokens[i], strlen(tokens[i])) == 0) return 1;
  }
  return 0;
}

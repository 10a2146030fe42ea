/* vector<string> of a payload: read once for the size, and once more to copy. */
#include "blob/texts.h"

#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"

static int measure(struct reader *reader, size_t *count, size_t *nbytes) {
  struct span text;
  *nbytes = 0;
  if (reader_count(reader, 8, UINT64_MAX, count) != 0) return -1;
  for (size_t i = 0; i < *count; i++) {
    if (reader_string(reader, &text) != 0) return -1;
    *nbytes += text.size + 1;
  }
  return 0;
}

/* The vector at `start` is valid. */
static void copy(const uint8_t *start, struct texts *texts, char *to) {
  const uint8_t *from = start + sizeof(uint64_t);
  for (size_t i = 0; i < texts->count; i++) {
    size_t size = 0;
    for (size_t k = sizeof(uint64_t); k-- > 0;) size = size << 8 | from[k];
    from += sizeof(uint64_t);
    texts->items[i] = to;
    memcpy(to, from, size);
    to[size] = '\0';
    from += size;
    to += size + 1;
  }
}

int texts_read(struct reader *reader, struct texts *texts) {
  const uint8_t *start = reader->bytes + reader->offset;
  size_t count, nbytes;
  if (measure(reader, &count, &nbytes) != 0) return -1;
  texts->items = heap_new(count * sizeof *texts->items + nbytes + 1);
  if (texts->items == NULL) return raised_format("OutOfMemoryError", "no memory for names");
  texts->count = count;
  copy(start, texts, (char *)(texts->items + count));
  return 0;
}

int texts_skip(struct reader *reader) {
  size_t count, nbytes;
  return measure(reader, &count, &nbytes);
}

void texts_clear(struct texts *texts) {
  free((void *)texts->items);
  *texts = (struct texts){0};
}

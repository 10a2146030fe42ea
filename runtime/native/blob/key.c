/* Keys of the entries of a blob. */
#include "blob/key.h"

#include <string.h>

#include "abi/text.h"

/* isalnum() depends on the locale. */
static int is_letter_or_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

int key_is_valid(struct span key) {
  int has_letter = 0;
  if (key.size > KEY_MOST_NBYTES) return 0;
  for (size_t i = 0; i < key.size; i++) {
    char c = key.data[i];
    if (is_letter_or_digit(c)) has_letter = 1;
    else if (c != '_' && c != '.' && c != '-') return 0;
  }
  return has_letter;
}

int key_is(struct span key, const char *text) {
  return key.size == strlen(text) && memcmp(key.data, text, key.size) == 0;
}

int key_read(struct reader *reader, struct span *key) {
  uint64_t nbytes;
  const uint8_t *bytes;
  size_t start = reader->offset;
  if (reader_u64(reader, &nbytes) != 0) return -1;
  if (nbytes == 0 || nbytes > KEY_MOST_NBYTES)
    return reader_fail(reader, start, "a key of %llu bytes, expected 1 to 255",
                       (unsigned long long)nbytes);
  if (reader_raw(reader, nbytes, "a key", &bytes) != 0) return -1;
  *key = (struct span){.data = (const char *)bytes, .size = (size_t)nbytes};
  if (key_is_valid(*key)) return 0;
  struct text shown = {0};
  text_repr_bytes(&shown, key->data, key->size);
  (void)reader_fail(reader, start, "key %s, expected letters, digits, '_', '.', '-'",
                    text_of(&shown));
  text_free(&shown);
  return -1;
}

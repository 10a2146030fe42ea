/* Reader of __packer_left_out. Only a look-up that failed reads it, so a record that is damaged
 * counts as none: the error of the look-up matters more. */
#include "library/left_out.h"

#include <string.h>

#include "abi/heap.h"
#include "scan/utf8.h"

enum { MAX_NBYTES = 1 << 16 };

static const char FIRST_LINE[] = "packer-left-out 1\n";
static const char KEY[] = "function ";

static int is_control(uint8_t byte) { return byte < ' ' || byte == 0x7f; }

/* True for lines of UTF-8 without control characters, and a NUL at the end. */
static int is_text(const uint8_t *bytes, size_t nbytes) {
  struct utf8_error error;
  if (nbytes < 2 || nbytes > MAX_NBYTES) return 0;
  if (bytes[nbytes - 1] != '\0' || bytes[nbytes - 2] != '\n') return 0;
  for (size_t i = 0; i + 1 < nbytes; i++)
    if (is_control(bytes[i]) && bytes[i] != '\n') return 0;
  return utf8_check((const char *)bytes, nbytes - 1, &error) == 0;
}

/* Return the text of the line "function <name> <text>", or NULL. */
static const char *find_line(const char *text, const char *name) {
  size_t key = strlen(KEY), size = strlen(name);
  for (; *text != '\0'; text = strchr(text, '\n') + 1)
    if (strncmp(text, KEY, key) == 0 && strncmp(text + key, name, size) == 0 &&
        text[key + size] == ' ')
      return text + key + size + 1;
  return NULL;
}

char *left_out_hint(const uint8_t *bytes, size_t nbytes, const char *name) {
  const char *text = (const char *)bytes;
  if (name[strcspn(name, " \n")] != '\0' || !is_text(bytes, nbytes)) return NULL;
  if (strncmp(text, FIRST_LINE, strlen(FIRST_LINE)) != 0) return NULL;
  const char *why = find_line(text, name);
  if (why == NULL) return NULL;
  return heap_format("; %s: not exported: %.*s", name, (int)strcspn(why, "\n"), why);
}

/* Text for messages, with values as Python's repr shows them. */
#include "abi/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"

const char *text_of(const struct text *self) {
  if (self->is_broken) return "(no memory for the text)";
  return self->data != NULL ? self->data : "";
}

void text_free(struct text *self) {
  free(self->data);
  *self = (struct text){0};
}

void text_check(struct text *self, int status) {
  if (status != 0) self->is_broken = self->has_raised = 1;
}

int text_raise(struct text *self, const char *kind) {
  if (!self->is_broken) raised_set(kind, text_of(self));
  else if (!self->has_raised) raised_set("OutOfMemoryError", "no memory for a message");
  text_free(self);
  return -1;
}

/* Make room for `nbytes` and a NUL. */
static int reserve(struct text *self, size_t nbytes) {
  if (self->is_broken) return -1;
  if (nbytes < self->capacity - self->size) return 0;
  size_t capacity = 2 * self->capacity + nbytes + 64;
  char *data = capacity > nbytes ? heap_resize(self->data, capacity) : NULL;
  if (data == NULL) {
    self->is_broken = 1;
    return -1;
  }
  self->data = data;
  self->capacity = capacity;
  return 0;
}

void text_add(struct text *self, const char *data, size_t nbytes) {
  if (reserve(self, nbytes) != 0) return;
  if (nbytes > 0) memcpy(self->data + self->size, data, nbytes);
  self->size += nbytes;
  self->data[self->size] = '\0';
}

void text_format(struct text *self, const char *format, ...) {
  va_list values;
  va_start(values, format);
  char *made = heap_format_list(format, values);
  va_end(values);
  if (made == NULL) self->is_broken = 1;
  else text_add(self, made, strlen(made));
  free(made);
}

/* ---- repr */

/* The kinds of text. One of JSON may have half a surrogate pair as three bytes. */
enum form { BYTES, TEXT, JSON_TEXT };

/* The first character of a text, and its number of bytes. A byte that begins no character of UTF-8
 * becomes U+DC00 plus the byte, as by Python's "surrogateescape". */
static size_t character(const char *data, size_t nbytes, enum form form, uint32_t *code) {
  static const uint32_t masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07},
                        least[] = {0, 0, 0x80, 0x800, 0x10000};
  unsigned char first = (unsigned char)data[0];
  size_t width = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4, at = 1;
  *code = first & masks[width];
  for (; at < width && at < nbytes && ((unsigned char)data[at] & 0xc0) == 0x80; at++)
    *code = *code << 6 | ((unsigned char)data[at] & 0x3f);
  int is_valid = at == width && first < 0xf8 && (first < 0x80 || first >= 0xc2) &&
                 *code >= least[width] && *code < 0x110000 &&
                 (form == JSON_TEXT || *code < 0xd800 || *code > 0xdfff);
  if (is_valid) return width;
  *code = 0xdc00 + first;
  return 1;
}

/* Python has a table of all characters; this knows the common ones that are not printable. */
static int is_printable(uint32_t code) {
  if (code < 0x20 || (code >= 0x7f && code <= 0xa0) || code == 0xad) return 0;
  if (code >= 0x2000 && code <= 0x200f) return 0;                   /* spaces, directions */
  if (code >= 0x2028 && code <= 0x202f) return 0;                   /* separators, directions */
  if (code >= 0x205f && code <= 0x206f) return 0;                   /* the same */
  if (code == 0x1680 || code == 0x3000 || code == 0xfeff) return 0; /* spaces */
  return !(code >= 0xd800 && code <= 0xf8ff) && code < 0xe0000;     /* surrogates, private, tags */
}

static void add_escaped(struct text *self, uint32_t code) {
  if (code == '\n') text_add(self, "\\n", 2);
  else if (code == '\r') text_add(self, "\\r", 2);
  else if (code == '\t') text_add(self, "\\t", 2);
  else if (code < 0x100) text_format(self, "\\x%02x", (unsigned)code);
  else if (code < 0x10000) text_format(self, "\\u%04x", (unsigned)code);
  else text_format(self, "\\U%08x", (unsigned)code);
}

/* The number of bytes of the first `count` characters. */
static size_t cut(const char *data, size_t nbytes, size_t count, enum form form) {
  size_t at = 0;
  uint32_t code;
  if (form == BYTES) return nbytes < count ? nbytes : count;
  while (at < nbytes && count-- > 0) at += character(data + at, nbytes - at, form, &code);
  return at;
}

static void add_repr(struct text *self, const char *data, size_t nbytes, enum form form) {
  int has_single = nbytes > 0 && memchr(data, '\'', nbytes) != NULL;
  char quote = has_single && memchr(data, '"', nbytes) == NULL ? '"' : '\'';
  text_add(self, &quote, 1);
  for (size_t at = 0, width; at < nbytes; at += width) {
    uint32_t code = (unsigned char)data[at];
    width = form != BYTES ? character(data + at, nbytes - at, form, &code) : 1;
    if (code == '\\' || code == (unsigned char)quote) text_add(self, "\\", 1);
    if (is_printable(code) && (form != BYTES || code < 0x80)) text_add(self, data + at, width);
    else add_escaped(self, code);
  }
  text_add(self, &quote, 1);
}

void text_repr(struct text *self, const char *data, size_t nbytes) {
  add_repr(self, data, nbytes, TEXT);
}

void text_repr_bytes(struct text *self, const char *data, size_t nbytes) {
  text_add(self, "b", 1);
  add_repr(self, data, nbytes, BYTES);
}

enum { MOST_SHOWN = 80 };

static void add_shown(struct text *self, const char *data, size_t nbytes, enum form form) {
  struct text all = {0};
  if (form == BYTES) text_add(&all, "b", 1);
  add_repr(&all, data, cut(data, nbytes, MOST_SHOWN, form), form);
  size_t shown = all.is_broken ? 0 : cut(all.data, all.size, MOST_SHOWN, form);
  self->is_broken |= all.is_broken;
  if (shown > 0) text_add(self, all.data, shown);
  if (shown < all.size) text_add(self, "...", 3);
  text_free(&all);
}

void text_shown(struct text *self, const char *data, size_t nbytes) {
  add_shown(self, data, nbytes, TEXT);
}

void text_shown_bytes(struct text *self, const char *data, size_t nbytes) {
  add_shown(self, data, nbytes, BYTES);
}

void text_repr_json(struct text *self, const char *data, size_t nbytes) {
  add_repr(self, data, nbytes, JSON_TEXT);
}

void text_shown_json(struct text *self, const char *data, size_t nbytes) {
  add_shown(self, data, nbytes, JSON_TEXT);
}

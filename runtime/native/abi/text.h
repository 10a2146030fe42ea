/* Text of any length for messages, with values as Python's repr shows them.
 *
 * A text begins as {0}. Its functions do nothing after memory was exhausted; text_of is then a
 * constant. */
#pragma once

#include <stddef.h>

struct text {
  char *data;
  size_t size, capacity;
  int is_broken;  /* no memory, or `has_raised` */
  int has_raised; /* the error of a function that the text needs is raised */
};

/* The text so far, with a NUL after it. */
const char *text_of(const struct text *self);
void text_free(struct text *self);

/* Note whether a function failed whose result the text needs: 0, or another status with its error
 * raised. */
void text_check(struct text *self, int status);

/* Raise an error with this text, and free it. If it is broken, the error is that of the function that
 * failed, or OutOfMemoryError. Returns -1. */
int text_raise(struct text *self, const char *kind);

void text_add(struct text *self, const char *data, size_t nbytes);
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void text_format(struct text *self, const char *format, ...);

/* 'repr' of a str, or of bytes. Bytes of a str that are not UTF-8 are shown as '\\udcff'. */
void text_repr(struct text *self, const char *data, size_t nbytes);
void text_repr_bytes(struct text *self, const char *data, size_t nbytes);

/* repr, cut like runtime/error.py's shown(). */
void text_shown(struct text *self, const char *data, size_t nbytes);
void text_shown_bytes(struct text *self, const char *data, size_t nbytes);

/* The same of a text of JSON, where half a surrogate pair has three bytes (scan/json.h). */
void text_repr_json(struct text *self, const char *data, size_t nbytes);
void text_shown_json(struct text *self, const char *data, size_t nbytes);

/* A parser of JSON text of unknown origin, with bounds on its size; ambiguous text is refused.
 *
 * The rules and the texts of errors are the same as in runtime/serial/strict_json.py. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "abi/text.h"

enum json_type {
  JSON_NULL,
  JSON_FALSE,
  JSON_TRUE,
  JSON_INTEGER, /* of int64 */
  JSON_LARGE,   /* an integer beyond int64: its digits, in `text` */
  JSON_NUMBER,
  JSON_TEXT,
  JSON_LIST,
  JSON_OBJECT
};

struct json {
  enum json_type type;
  size_t size; /* bytes of a text or of digits, items of a list, members of an object */
  union {
    int64_t integer;
    double number;
    const char *text;         /* with a NUL after it; may contain NUL */
    const struct json *items; /* of an object: key, value, key, value, ... */
  };
};

enum { JSON_ERROR_SIZE = 512 };

/* Parse UTF-8 text. Returns the value, which json_free frees with all that it contains; or NULL
 * with the error's text in `error`, which is empty if memory is exhausted.
 *
 * Texts are UTF-8, except that an escape may write half a surrogate pair, as in Python; it takes
 * three bytes that json_is_unicode finds. */
const struct json *json_parse(const char *text, size_t nbytes, char error[JSON_ERROR_SIZE]);

/* Why a text could not be decoded. */
struct json_error {
  char text[JSON_ERROR_SIZE]; /* empty if memory is exhausted */
  int is_syntax;              /* then the text is only the reason, */
  size_t at;                  /* and this the offset of the byte */
};

/* The same for a text whose number of values another rule bounds. */
const struct json *json_decode(const char *text, size_t nbytes, struct json_error *error);

void json_free(const struct json *value); /* NULL is ignored */

/* False if a text contains half a surrogate pair. */
int json_is_unicode(const struct json *text);

/* The value of a key of an object, or NULL. */
const struct json *json_member(const struct json *object, const char *key);

/* True if a value is this text. */
int json_is_text(const struct json *value, const char *text);

/* Add the value as Python shows it, cut to 80 characters (runtime/error.py, shown). */
void json_shown(struct text *message, const struct json *value);

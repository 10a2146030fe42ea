/* The words of JSON text: strings and numbers. */
#pragma once

#include "scan/json.h"

/* A text that is being parsed. */
struct json_text {
  const char *start, *at, *end;
  char *store;                    /* the next byte of the values' texts */
  char *error;                    /* of JSON_ERROR_SIZE bytes */
  const char *failed_at, *reason; /* of a syntax error, whose text is not in `error` */
};

/* Store a syntax error. Returns -1. */
int json_fail(struct json_text *text, const char *at, const char *reason);

/* Read what begins at `at`: a string without its opening quote; a number; NaN or the like, which
 * is an error. Each returns 0, or -1 with the error stored. */
int json_read_string(struct json_text *text, struct json *value);
int json_read_number(struct json_text *text, struct json *value);

/* The parser of JSON: one block of memory, whose size the limits bound, and no recursion.
 *
 * The block holds the nodes, then the texts. Nodes of open lists and objects are a stack that grows
 * from the block's start; when a list or object closes, its nodes move to the end of the nodes' part,
 * where they stay. Both together are never more than the text has nodes. */
#include "scan/json.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "scan/json_keys.h"
#include "scan/json_limits.h"
#include "scan/json_token.h"
#include "scan/utf8.h"

enum {
  MAX_NBYTES = 100000000,
  MAX_DEPTH = 64,
  MAX_VALUES = 400000,
  MAX_DIGITS = 40 /* every int64 and float64 has fewer */
};

/* An open list or object. */
struct frame {
  struct json *first; /* its first node */
  bool is_object;
};

struct parser {
  struct json_text text;
  struct json *top;    /* where the stack's next node goes */
  struct json *placed; /* the last node that stays; later ones go before it */
  int depth;
  struct frame frames[MAX_DEPTH];
};

static int check(char *error, const char *what, size_t found, size_t most) {
  if (found <= most) return 0;
  (void)snprintf(error, JSON_ERROR_SIZE, "JSON of %zu %s, expected at most %zu", found, what, most);
  return -1;
}

static int check_utf8(const char *text, size_t nbytes, char *error) {
  struct utf8_error at;
  if (utf8_check(text, nbytes, &at) == 0) return 0;
  if (at.end == at.start + 1)
    (void)snprintf(error, JSON_ERROR_SIZE,
                   "'utf-8' codec can't decode byte 0x%02x in position %zu: %s",
                   (unsigned char)text[at.start], at.start, at.reason);
  else
    (void)snprintf(error, JSON_ERROR_SIZE,
                   "'utf-8' codec can't decode bytes in position %zu-%zu: %s", at.start, at.end - 1,
                   at.reason);
  return -1;
}

static int check_text(const char *text, size_t nbytes, size_t most_values,
                      struct json_counts *counts, char *error) {
  if (check(error, "bytes", nbytes, MAX_NBYTES) != 0) return -1;
  if (check_utf8(text, nbytes, error) != 0) return -1;
  *counts = json_count(text, nbytes);
  if (check(error, "levels", counts->depth, MAX_DEPTH) != 0) return -1;
  if (check(error, "values", counts->values, most_values) != 0) return -1;
  return check(error, "digits in a number", counts->digits, MAX_DIGITS);
}

static void skip_space(struct json_text *text) {
  while (text->at < text->end &&
         (*text->at == ' ' || *text->at == '\t' || *text->at == '\n' || *text->at == '\r'))
    text->at++;
}

static bool take(struct json_text *text, char c) {
  if (text->at == text->end || *text->at != c) return false;
  text->at++;
  return true;
}

static bool take_word(struct json_text *text, const char *word) {
  size_t size = strlen(word);
  if ((size_t)(text->end - text->at) < size || memcmp(text->at, word, size) != 0) return false;
  text->at += size;
  return true;
}

/* Move the nodes of the innermost list or object, and leave it in their place. */
static int close_frame(struct parser *self) {
  struct frame *frame = &self->frames[--self->depth];
  size_t count = (size_t)(self->top - frame->first);
  self->placed -= count;
  memmove(self->placed, frame->first, count * sizeof *self->placed);
  self->top = frame->first + 1;
  *frame->first = (struct json){.type = JSON_LIST, .size = count, .items = self->placed};
  if (!frame->is_object) return 0;
  frame->first->type = JSON_OBJECT;
  frame->first->size = count / 2;
  return json_check_keys(frame->first, self->text.error);
}

/* Read a key, and the colon after it. */
static int read_key(struct parser *self) {
  struct json_text *text = &self->text;
  if (!take(text, '"'))
    return json_fail(text, text->at, "expecting property name enclosed in double quotes");
  if (json_read_string(text, self->top++) != 0) return -1;
  skip_space(text);
  if (!take(text, ':')) return json_fail(text, text->at, "expecting ':' delimiter");
  skip_space(text);
  return 0;
}

/* Read a number, a string or a word. */
static int read_scalar(struct parser *self) {
  struct json_text *text = &self->text;
  struct json *value = self->top++;
  if (take(text, '"')) return json_read_string(text, value);
  *value = (struct json){.type = JSON_NULL};
  if (take_word(text, "null")) return 0;
  value->type = JSON_TRUE;
  if (take_word(text, "true")) return 0;
  value->type = JSON_FALSE;
  if (take_word(text, "false")) return 0;
  return json_read_number(text, value);
}

/* Read what begins a value. Returns 1 if a list or object was opened that has nodes, so another
 * value follows; 0 if the value is complete; or -1. */
static int begin_value(struct parser *self) {
  struct json_text *text = &self->text;
  bool is_object = take(text, '{');
  if (!is_object && !take(text, '[')) return read_scalar(self);
  skip_space(text);
  if (take(text, is_object ? '}' : ']')) {
    *self->top++ =
        (struct json){.type = is_object ? JSON_OBJECT : JSON_LIST, .items = self->placed};
    return 0;
  }
  if (self->depth == MAX_DEPTH) return json_fail(text, text->at, "too many levels");
  self->frames[self->depth++] = (struct frame){.first = self->top, .is_object = is_object};
  return is_object && read_key(self) != 0 ? -1 : 1;
}

/* Read what follows a value: the ends of lists and objects, then a comma. Returns 1 if another
 * value follows, 0 if the outermost is complete, or -1. */
static int end_value(struct parser *self) {
  struct json_text *text = &self->text;
  for (;;) {
    skip_space(text);
    if (self->depth == 0) return 0;
    bool is_object = self->frames[self->depth - 1].is_object;
    if (take(text, is_object ? '}' : ']')) {
      if (close_frame(self) != 0) return -1;
      continue;
    }
    if (!take(text, ',')) return json_fail(text, text->at, "expecting ',' delimiter");
    skip_space(text);
    return is_object && read_key(self) != 0 ? -1 : 1;
  }
}

static int parse(struct parser *self) {
  struct json_text *text = &self->text;
  if (take_word(text, "\xef\xbb\xbf"))
    return json_fail(text, text->start, "unexpected UTF-8 BOM (decode using utf-8-sig)");
  skip_space(text);
  for (int more = 1; more == 1;) {
    more = begin_value(self);
    if (more == 0) more = end_value(self);
    if (more < 0) return -1;
  }
  return text->at == text->end ? 0 : json_fail(text, text->at, "extra data");
}

/* A syntax error is left in *words. */
static const struct json *parse_within(size_t most_values, struct json_text *words) {
  size_t nbytes = (size_t)(words->end - words->start);
  struct json_counts counts;
  words->error[0] = '\0';
  if (check_text(words->start, nbytes, most_values, &counts, words->error) != 0) return NULL;
  size_t most = 2 * counts.values; /* each value may have a key */
  struct json *block = heap_new(most * sizeof *block + nbytes + 1);
  if (block == NULL) return NULL;
  words->store = (char *)(block + most);
  struct parser parser = {.text = *words, .top = block, .placed = block + most};
  if (parse(&parser) == 0) return block;
  *words = parser.text;
  free(block);
  return NULL;
}

const struct json *json_parse(const char *text, size_t nbytes, char error[JSON_ERROR_SIZE]) {
  struct json_text words = {.start = text, .at = text, .end = text + nbytes, .error = error};
  const struct json *value = parse_within(MAX_VALUES, &words);
  if (words.failed_at != NULL)
    (void)snprintf(error, JSON_ERROR_SIZE, "not JSON: %s at 0x%zx", words.reason,
                   utf8_count(text, (size_t)(words.failed_at - text)));
  return value;
}

const struct json *json_decode(const char *text, size_t nbytes, struct json_error *error) {
  struct json_text words = {.start = text, .at = text, .end = text + nbytes, .error = error->text};
  const struct json *value = parse_within(SIZE_MAX, &words);
  error->is_syntax = words.failed_at != NULL;
  if (!error->is_syntax) return value;
  (void)snprintf(error->text, JSON_ERROR_SIZE, "%s", words.reason);
  error->at = (size_t)(words.failed_at - text);
  return NULL;
}

void json_free(const struct json *value) { free((void *)value); }

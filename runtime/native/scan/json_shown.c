/* JSON values in messages, as Python's repr shows them. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scan/json.h"
#include "scan/utf8.h"

int json_is_text(const struct json *value, const char *text) {
  size_t size = strlen(text);
  return value != NULL && value->type == JSON_TEXT && value->size == size &&
         memcmp(value->text, text, size) == 0;
}

int json_is_unicode(const struct json *text) {
  struct utf8_error error;
  return utf8_check(text->text, text->size, &error) == 0;
}

enum { MOST_SHOWN = 80, MAX_DEPTH = 64 };

/* As repr: the shortest digits that mean the number; an exponent beyond 1e16 and below 1e-4. */
static void add_number(struct text *out, double number) {
  char digits[32], *exponent;
  int precision = 0;
  do (void)snprintf(digits, sizeof digits, "%.*e", precision, number);
  while (strtod(digits, NULL) != number && ++precision < 17);
  exponent = strchr(digits, 'e');
  long power = exponent != NULL ? strtol(exponent + 1, NULL, 10) : 0;
  if (power >= -4 && power < 16) {
    int decimals = precision > power ? precision - (int)power : 1;
    (void)snprintf(digits, sizeof digits, "%.*f", decimals, number);
  }
  for (char *c = digits; *c != '\0'; c++)
    if (*c == ',') *c = '.'; /* the locale's decimal point */
  text_format(out, "%s", digits);
}

static void add_scalar(struct text *out, const struct json *value) {
  if (value->type == JSON_TEXT) text_repr_json(out, value->text, value->size);
  else if (value->type == JSON_LARGE) text_add(out, value->text, value->size);
  else if (value->type == JSON_INTEGER) text_format(out, "%" PRId64, value->integer);
  else if (value->type == JSON_NUMBER) add_number(out, value->number);
  else if (value->type == JSON_NULL) text_add(out, "None", 4);
  else text_format(out, value->type == JSON_TRUE ? "True" : "False");
}

/* A list or object of which `next` nodes were shown. */
struct level {
  const struct json *value;
  size_t next;
};

/* Add what precedes the next node of a list or object; false if there is none. */
static bool add_separator(struct text *out, const struct level *level) {
  bool is_object = level->value->type == JSON_OBJECT;
  size_t count = is_object ? 2 * level->value->size : level->value->size;
  if (level->next == 0) text_add(out, is_object ? "{" : "[", 1);
  if (level->next == count) {
    text_add(out, is_object ? "}" : "]", 1);
    return false;
  }
  if (level->next > 0) text_add(out, is_object && level->next % 2 == 1 ? ": " : ", ", 2);
  return true;
}

/* More characters than are shown end it: the rest would be cut. */
static void add_nested(struct text *out, const struct json *value) {
  struct level levels[MAX_DEPTH];
  size_t depth = 1;
  levels[0] = (struct level){.value = value};
  while (depth > 0 && out->size <= (size_t)MOST_SHOWN * 4 && !out->is_broken) {
    struct level *level = &levels[depth - 1];
    if (!add_separator(out, level)) {
      depth--;
      continue;
    }
    const struct json *node = &level->value->items[level->next++];
    bool is_nested = node->type == JSON_LIST || node->type == JSON_OBJECT;
    if (!is_nested) add_scalar(out, node);
    else if (depth < MAX_DEPTH) levels[depth++] = (struct level){.value = node};
  }
}

/* The number of bytes of the first `count` characters. */
static size_t cut(const struct text *text, size_t count) {
  size_t at = 0;
  for (; at < text->size; at++)
    if (((unsigned char)text->data[at] & 0xc0) != 0x80 && count-- == 0) break;
  return at;
}

void json_shown(struct text *message, const struct json *value) {
  struct text all = {0};
  if (value == NULL) {
    text_add(message, "None", 4);
    return;
  }
  if (value->type == JSON_TEXT) {
    text_shown_json(message, value->text, value->size);
    return;
  }
  if (value->type == JSON_LIST || value->type == JSON_OBJECT) add_nested(&all, value);
  else add_scalar(&all, value);
  size_t shown = cut(&all, MOST_SHOWN);
  message->is_broken |= all.is_broken;
  if (shown > 0) text_add(message, all.data, shown);
  if (shown < all.size) text_add(message, "...", 3);
  text_free(&all);
}

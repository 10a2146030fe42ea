/* The words of JSON text: strings and numbers. Errors have the texts of Python's scanner. */
#include "scan/json_token.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scan/utf8.h"

int json_fail(struct json_text *text, const char *at, const char *reason) {
  text->failed_at = at;
  text->reason = reason;
  return -1;
}

/* ---- Strings */

static bool is_high(uint32_t code) { return code >= 0xd800 && code < 0xdc00; }
static bool is_low(uint32_t code) { return code >= 0xdc00 && code < 0xe000; }

/* Half a surrogate pair becomes three bytes, as any other character of its range would. */
static void store_character(struct json_text *text, uint32_t code) {
  if (code < 0x80) {
    *text->store++ = (char)code;
    return;
  }
  int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  static const uint8_t leads[] = {0, 0xc0, 0xe0, 0xf0};
  *text->store++ = (char)(leads[more] | code >> (6 * more));
  while (more-- > 0) *text->store++ = (char)(0x80 | (code >> (6 * more) & 0x3f));
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Read the four digits after \u; something must follow them. */
static int read_hex(struct json_text *text, uint32_t *code) {
  const char *u = text->at - 1;
  *code = 0;
  for (int i = 0; i < 4; i++, text->at++) {
    int digit = text->at < text->end ? hex_digit(*text->at) : -1;
    if (digit < 0) return json_fail(text, u, "invalid \\uXXXX escape");
    *code = *code << 4 | (uint32_t)digit;
  }
  return text->at < text->end ? 0 : json_fail(text, u, "invalid \\uXXXX escape");
}

/* `at` follows \u. */
static int read_unicode(struct json_text *text) {
  uint32_t code, low;
  if (read_hex(text, &code) != 0) return -1;
  const char *after = text->at;
  if (is_high(code) && text->end - after > 6 && after[0] == '\\' && after[1] == 'u') {
    text->at += 2;
    if (read_hex(text, &low) != 0) return -1;
    if (is_low(low)) code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    else text->at = after;
  }
  store_character(text, code);
  return 0;
}

/* `at` follows a backslash. */
static int read_escape(struct json_text *text, const char *opening) {
  static const char written[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
  if (text->at == text->end) return json_fail(text, opening, "unterminated string starting at");
  char c = *text->at++;
  if (c == 'u') return read_unicode(text);
  const char *found = c != '\0' ? strchr(written, c) : NULL;
  if (found == NULL) return json_fail(text, text->at - 2, "invalid \\escape");
  *text->store++ = meant[found - written];
  return 0;
}

int json_read_string(struct json_text *text, struct json *value) {
  const char *opening = text->at - 1;
  char *start = text->store;
  for (;;) {
    const char *run = text->at;
    while (text->at < text->end && *text->at != '"' && *text->at != '\\' &&
           (uint8_t)*text->at > 0x1f)
      text->at++;
    memcpy(text->store, run, (size_t)(text->at - run));
    text->store += text->at - run;
    if (text->at == text->end) return json_fail(text, opening, "unterminated string starting at");
    if (*text->at == '"') break;
    if (*text->at != '\\') return json_fail(text, text->at, "invalid control character at");
    text->at++;
    if (read_escape(text, opening) != 0) return -1;
  }
  text->at++;
  *value = (struct json){.type = JSON_TEXT, .size = (size_t)(text->store - start), .text = start};
  *text->store++ = '\0';
  return 0;
}

/* ---- Numbers */

static bool is_digit(const struct json_text *text, const char *at) {
  return at < text->end && *at >= '0' && *at <= '9';
}

static const char *skip_digits(const struct json_text *text, const char *at) {
  while (is_digit(text, at)) at++;
  return at;
}

struct number {
  const char *start, *point, *exponent, *end; /* point and exponent, or where they would be */
};

static int find_number(struct json_text *text, struct number *found) {
  const char *at = text->at;
  found->start = at;
  if (at < text->end && *at == '-') at++;
  if (!is_digit(text, at)) return json_fail(text, text->at, "expecting value");
  at = *at == '0' ? at + 1 : skip_digits(text, at);
  found->point = at;
  if (at < text->end && *at == '.' && is_digit(text, at + 1)) at = skip_digits(text, at + 1);
  found->exponent = found->end = at;
  if (at < text->end && (*at == 'e' || *at == 'E')) {
    at++;
    if (at < text->end && (*at == '+' || *at == '-')) at++;
    if (is_digit(text, at)) found->end = skip_digits(text, at);
  }
  return 0;
}

/* The exponent, within what strtod tells from zero and infinity. */
static int exponent_of(const struct number *found) {
  int value = 0, is_negative = 0;
  for (const char *at = found->exponent + 1; at < found->end; at++) {
    if (*at == '-') is_negative = 1;
    else if (*at != '+' && value < 100000) value = value * 10 + (*at - '0');
  }
  return is_negative ? -value : value;
}

/* strtod expects the locale's decimal point, so it gets the digits without a point, and an exponent
 * that makes up for it. The limits bound the digits. */
static int read_float(struct json_text *text, const struct number *found, struct json *value) {
  char copy[160];
  size_t whole = (size_t)(found->point - found->start), fraction = 0;
  if (found->exponent > found->point) fraction = (size_t)(found->exponent - found->point) - 1;
  int used = snprintf(copy, sizeof copy, "%.*s%.*se%d", (int)whole, found->start, (int)fraction,
                      found->point + 1, exponent_of(found) - (int)fraction);
  if (used < 0 || (size_t)used >= sizeof copy)
    return json_fail(text, found->start, "a long number");
  *value = (struct json){.type = JSON_NUMBER, .number = strtod(copy, NULL)};
  if (isfinite(value->number)) return 0;
  (void)snprintf(text->error, JSON_ERROR_SIZE, "%.*s, expected a finite number",
                 (int)(found->end - found->start), found->start);
  return -1;
}

static void read_integer(struct json_text *text, const struct number *found, struct json *value) {
  size_t size = (size_t)(found->end - found->start);
  char *digits = text->store;
  memcpy(digits, found->start, size);
  digits[size] = '\0';
  errno = 0;
  intmax_t integer = strtoimax(digits, NULL, 10);
  *value = (struct json){.type = JSON_INTEGER, .integer = integer};
  if (errno != ERANGE && integer >= INT64_MIN && integer <= INT64_MAX) return;
  *value = (struct json){.type = JSON_LARGE, .size = size, .text = digits};
  text->store += size + 1;
}

/* The words that Python's json takes for numbers, and its caller refuses. */
static int refuse_constant(struct json_text *text) {
  static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    size_t size = strlen(words[i]);
    if ((size_t)(text->end - text->at) < size || memcmp(text->at, words[i], size) != 0) continue;
    (void)snprintf(text->error, JSON_ERROR_SIZE, "%s, expected a finite number", words[i]);
    return -1;
  }
  return 0;
}

int json_read_number(struct json_text *text, struct json *value) {
  struct number found;
  if (refuse_constant(text) != 0 || find_number(text, &found) != 0) return -1;
  text->at = found.end;
  if (found.end > found.point) return read_float(text, &found, value);
  read_integer(text, &found, value);
  return 0;
}

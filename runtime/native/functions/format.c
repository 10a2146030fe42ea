/* Python's str.format, for arguments that are shown as text. */
#include "functions/format.h"

#include "abi/raised.h"

enum { MOST_WIDTH = 4096 };

/* The parts of a field: {number!conversion:fill align width .precision}. */
struct field {
  int64_t number; /* -1: the next one */
  char conversion, align;
  const char *fill; /* one character */
  size_t fill_size;
  int64_t width, precision; /* -1: none */
};

static int refuse(const char *function, const char *why) {
  return raised_format("ValueError", "%s: format: %s", function, why);
}

/* Read digits; -1 without any. */
static int64_t take_number(const char **at, const char *end) {
  int64_t number = -1;
  for (; *at < end && **at >= '0' && **at <= '9'; (*at)++) {
    number = (number < 0 ? 0 : number) * 10 + (**at - '0');
    if (number > INT32_MAX) number = INT32_MAX;
  }
  return number;
}

static int is_align(const char *at, const char *end) {
  return at < end && (*at == '<' || *at == '>' || *at == '^');
}

static size_t character_size(const char *at, const char *end) {
  size_t size = 1;
  while (at + size < end && ((unsigned char)at[size] & 0xc0) == 0x80) size++;
  return size;
}

static void take_spec(const char **at, const char *end, struct field *field) {
  size_t first = *at < end ? character_size(*at, end) : 0;
  if (first > 0 && is_align(*at + first, end)) {
    field->fill = *at;
    field->fill_size = first;
    *at += first;
  }
  if (is_align(*at, end)) field->align = *(*at)++;
  field->width = take_number(at, end);
  if (*at < end && **at == '.') {
    (*at)++;
    field->precision = take_number(at, end);
  }
  if (*at < end && **at == 's') (*at)++;
}

/* Read a field after its brace, up to the closing one. */
static int take_field(const char *function, const char **at, const char *end, struct field *field) {
  *field = (struct field){.align = '<', .fill = " ", .fill_size = 1, .precision = -1};
  field->number = take_number(at, end);
  if (*at < end && **at == '!') {
    field->conversion = *at + 1 < end ? (*at)[1] : '\0';
    *at += 2;
    if (field->conversion != 's' && field->conversion != 'r' && field->conversion != 'a')
      return refuse(function, "expected a conversion !s, !r or !a");
  }
  if (*at < end && **at == ':') {
    (*at)++;
    take_spec(at, end, field);
  }
  if (*at >= end || **at != '}')
    return refuse(function, "a field has an unknown part or no end, expected as {}, {0} or {:>8}");
  (*at)++;
  if (field->width <= MOST_WIDTH) return 0;
  return refuse(function, "a field is too wide, expected at most 4096 characters");
}

/* The number of characters, and the bytes of the first `most` of them. */
static int64_t count_characters(const char *data, size_t nbytes, int64_t most, size_t *kept) {
  int64_t count = 0;
  *kept = 0;
  for (size_t i = 0; i < nbytes; i++) {
    if (((unsigned char)data[i] & 0xc0) == 0x80) continue;
    if (count == most) return count;
    count++;
    *kept = i + character_size(data + i, data + nbytes);
  }
  return count;
}

static void fill(struct text *text, const struct field *field, int64_t count) {
  for (int64_t i = 0; i < count; i++) text_add(text, field->fill, field->fill_size);
}

static int add_field(struct text *text, const struct field *field, const dso_any *value) {
  struct text plain = {0}, quoted = {0};
  size_t kept;
  if (shown_value(&plain, value) != 0) {
    text_free(&plain);
    return -1;
  }
  if (field->conversion == 'r' || field->conversion == 'a')
    text_repr(&quoted, text_of(&plain), plain.size);
  const struct text *shown = quoted.size > 0 ? &quoted : &plain;
  int64_t count = count_characters(text_of(shown), shown->size, field->precision, &kept);
  int64_t missing = field->width > count ? field->width - count : 0;
  int64_t before = field->align == '>' ? missing : field->align == '^' ? missing / 2 : 0;
  fill(text, field, before);
  text_add(text, text_of(shown), kept);
  fill(text, field, missing - before);
  text_free(&plain);
  text_free(&quoted);
  return 0;
}

int format_values(struct text *text, const char *function, struct span format,
                  const dso_any *values, int32_t count) {
  const char *at = format.data, *end = at + format.size;
  int64_t next = 0;
  while (at < end) {
    struct field field;
    char brace = *at++;
    if (brace != '{' && brace != '}') {
      text_add(text, &brace, 1);
      continue;
    }
    if (at < end && *at == brace) {
      text_add(text, at++, 1);
      continue;
    }
    if (brace == '}') return refuse(function, "a single '}', expected '}}'");
    if (take_field(function, &at, end, &field) != 0) return -1;
    if (field.number < 0) field.number = next++;
    if (field.number >= count)
      return raised_format("IndexError", "%s: format: field %d, expected less than %d", function,
                           (int)field.number, (int)count);
    if (add_field(text, &field, &values[field.number]) != 0) return -1;
  }
  return 0;
}

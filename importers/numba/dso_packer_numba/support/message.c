/* The errors of Numba functions, and texts with values of the run. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"

enum { MARK = 1, STR_WORDS = 6 };

typedef struct {
  size_t length;
  char text[2048]; /* longer texts are truncated */
} text;

__attribute__((format(printf, 2, 3))) static void add(text *out, const char *format, ...) {
  size_t room = sizeof out->text - out->length;
  va_list values;
  va_start(values, format);
  int length = vsnprintf(out->text + out->length, room, format, values);
  va_end(values);
  if (length > 0) out->length += (size_t)length < room ? (size_t)length : room - 1;
}

/* The shortest decimals that are read as the same number, as Python writes them. */
static void add_double(text *out, double number) {
  char digits[40];
  if (isnan(number)) {
    add(out, "nan");
    return;
  }
  if (isinf(number)) {
    add(out, number < 0 ? "-inf" : "inf");
    return;
  }
  for (int precision = 0; precision < 17; precision++) {
    snprintf(digits, sizeof digits, "%.*e", precision, number);
    if (strtod(digits, NULL) == number) break;
  }
  char *mark = strchr(digits, 'e');
  int exponent = atoi(mark + 1);
  int count = (int)(mark - digits) - (digits[0] == '-') - (strchr(digits, '.') != NULL);
  if (exponent < -4 || exponent >= 16) {
    *mark = '\0';
    add(out, "%se%s%02d", digits, exponent < 0 ? "-" : "+", abs(exponent));
  } else {
    int decimals = count - 1 - exponent;
    add(out, "%.*f", decimals < 1 ? 1 : decimals, number);
  }
}

static void add_str(text *out, const uint64_t *words, int is_repr) {
  nb_str string;
  memcpy(&string, words, sizeof string);
  dso_any value = dso_none();
  NRT_incref(string.meminfo);
  if (nb_give_str(&value, &string)) return; /* a MemoryError is raised, and replaced */
  dso_byte_array bytes = dso_bytes_of(&value);
  const char *quote = strchr(bytes.data, '\'') && !strchr(bytes.data, '"') ? "\"" : "'";
  if (!is_repr) quote = "";
  add(out, "%s%s%s", quote, bytes.data, quote);
  dso_release(&value);
}

/* Add the value of a mark; return the number of its words. */
static int add_value(text *out, char mark, const uint64_t *words) {
  double number;
  memcpy(&number, words, sizeof number);
  switch (mark) {
    case 'i': add(out, "%lld", (long long)*words); return 1;
    case 'u': add(out, "%llu", (unsigned long long)*words); return 1;
    case 'b': add(out, "%s", *words & 1 ? "True" : "False"); return 1;
    case 'f': add_double(out, number); return 1;
    default: add_str(out, words, mark == 'r'); return STR_WORDS;
  }
}

static void fill(text *out, const char *format, const uint64_t *words) {
  for (const char *at = format; *at != '\0'; at++) {
    if (*at != MARK) add(out, "%c", *at);
    else words += add_value(out, *++at, words);
  }
}

int nb_fail(int32_t code, const nb_error *error, const dso_function *function) {
  if (code < 1 || error == NULL || error->exception == NULL)
    return dso_raise("RuntimeError", "a Numba function failed without an exception");
  nb_exception exception = *error->exception;
  text message = {.length = 0};
  if (error->is_allocated) {
    fill(&message, exception.text, error->values);
    exception.text = message.text;
  }
  if (exception.function[0] == '\0') exception.function = function->name;
  return nb_raise(&exception);
}

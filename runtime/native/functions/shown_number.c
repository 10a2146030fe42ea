/* Floats as text. */
#include "functions/shown_number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/half.h"

enum { MOST_DIGITS = 17 };

double round_real(double number, size_t nbytes) {
  if (nbytes == sizeof(uint16_t)) return half_value(half_of(number));
  return nbytes == sizeof(float) ? (double)(float)number : number;
}

/* The digits of a number: d.ddd * 10^exponent, without zeros at the end. */
struct digits {
  char text[MOST_DIGITS + 1];
  int count, exponent, is_negative;
};

/* `count` digits, correctly rounded. */
static struct digits digits_of(double number, int count) {
  char text[40];
  struct digits digits = {.is_negative = signbit(number) != 0};
  snprintf(text, sizeof text, "%.*e", count - 1, fabs(number));
  for (const char *at = text; *at != 'e'; at++)
    if (*at != '.') digits.text[digits.count++] = *at;
  digits.exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
  while (digits.count > 1 && digits.text[digits.count - 1] == '0') digits.count--;
  return digits;
}

static int gives_again(double number, size_t nbytes, int count) {
  char text[40];
  snprintf(text, sizeof text, "%.*e", count - 1, number);
  if (nbytes == sizeof(float)) return strtof(text, NULL) == (float)number;
  return round_real(strtod(text, NULL), nbytes) == number;
}

static struct digits shortest(double number, size_t nbytes) {
  int count = 1;
  while (count < MOST_DIGITS && !gives_again(number, nbytes, count)) count++;
  return digits_of(number, count);
}

static void append(char *to, const char *data, int count) {
  size_t size = strlen(to), most = SHOWN_SIZE - 1 - size;
  size_t kept = count < 0 ? 0 : (size_t)count < most ? (size_t)count : most;
  memcpy(to + size, data, kept);
  to[size + kept] = '\0';
}

static void append_zeros(char *to, int count) {
  for (int i = 0; i < count; i++) append(to, "0", 1);
}

void show_positional(double number, size_t nbytes, int most, struct shown_real *shown) {
  struct digits digits = shortest(number, nbytes);
  *shown = (struct shown_real){.exponent = 0};
  if (digits.count - 1 - digits.exponent >
      most) { /* round the fraction: as many digits as remain */
    char text[340];
    snprintf(text, sizeof text, "%.*f", most, number);
    const char *point = strchr(text, '.');
    append(shown->whole, text, (int)(point - text));
    append(shown->fraction, point + 1, most);
    for (size_t n = strlen(shown->fraction); n > 0 && shown->fraction[n - 1] == '0'; n--)
      shown->fraction[n - 1] = '\0';
    return;
  }
  int whole = digits.exponent + 1; /* digits before the point */
  if (digits.is_negative) append(shown->whole, "-", 1);
  if (whole <= 0) append(shown->whole, "0", 1);
  append(shown->whole, digits.text, whole < digits.count ? whole : digits.count);
  append_zeros(shown->whole, whole - digits.count);
  append_zeros(shown->fraction, number != 0 ? -whole : 0);
  if (number != 0 && whole < digits.count) {
    int first = whole > 0 ? whole : 0;
    append(shown->fraction, digits.text + first, digits.count - first);
  }
}

void show_scientific(double number, size_t nbytes, int least, int most, struct shown_real *shown) {
  struct digits digits = shortest(number, nbytes);
  *shown = (struct shown_real){.exponent = 0};
  if (digits.count - 1 > most) digits = digits_of(number, most + 1);
  if (digits.count - 1 < least) digits = digits_of(number, least + 1);
  if (digits.is_negative) append(shown->whole, "-", 1);
  append(shown->whole, digits.text, 1);
  append(shown->fraction, digits.text + 1, digits.count - 1);
  append_zeros(shown->fraction, least - (digits.count - 1));
  shown->exponent = digits.exponent;
}

const char *show_real(double number, size_t nbytes, char text[SHOWN_SIZE]) {
  struct shown_real shown;
  double magnitude = fabs(number), limit = nbytes == 2 ? 1e3 : nbytes == 4 ? 1e6 : 1e16;
  if (!isfinite(number))
    snprintf(text, SHOWN_SIZE, "%s", isnan(number) ? "nan" : number < 0 ? "-inf" : "inf");
  else if (magnitude == 0 || (magnitude >= round_real(1e-4, nbytes) && magnitude < limit)) {
    show_positional(number, nbytes, MOST_DIGITS + 4, &shown);
    snprintf(text, SHOWN_SIZE, "%.22s.%.24s", shown.whole,
             shown.fraction[0] ? shown.fraction : "0");
  } else {
    show_scientific(number, nbytes, 0, MOST_DIGITS, &shown);
    snprintf(text, SHOWN_SIZE, "%.3s%s%.20se%+03d", shown.whole, shown.fraction[0] ? "." : "",
             shown.fraction, shown.exponent);
  }
  return text;
}

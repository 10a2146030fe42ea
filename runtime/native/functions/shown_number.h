/* Floats as text: the shortest digits that give the number again, as Python and NumPy show them. */
#pragma once

#include <stddef.h>

enum { SHOWN_SIZE = 48, MOST_FRACTION = 8 };

/* The parts of a finite number: "-1", "25", and in the scientific form the exponent. */
struct shown_real {
  char whole[SHOWN_SIZE], fraction[SHOWN_SIZE];
  int exponent;
};

/* `nbytes` is the size of the number's type: 2, 4 or 8. At most `most` digits follow the point, and
 * in the scientific form at least `least`: if the shortest text has fewer, more digits follow. */
void show_positional(double number, size_t nbytes, int most, struct shown_real *shown);
void show_scientific(double number, size_t nbytes, int least, int most, struct shown_real *shown);

/* A single number, as str() shows it. Returns `text`. */
const char *show_real(double number, size_t nbytes, char text[SHOWN_SIZE]);

/* The number that is nearest to this one in a type of `nbytes`. */
double round_real(double number, size_t nbytes);

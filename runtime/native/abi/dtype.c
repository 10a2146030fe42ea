/* DLDataType to and from the struct module's format characters; the size of a compact tensor. */
#include "abi/dtype.h"

#include <string.h>

/* A format letter gives the kind only. The width comes from the item size, because 'l' has 8 bytes
 * in native size and 4 in standard size, and ctypes writes '<l' for the native type. */
static const struct {
  const char *letters;
  uint8_t code;
  uint8_t sizes; /* bit mask of the valid item sizes, all powers of two */
} kinds[] = {
    {"bhilqn", DTYPE_INT, 1 | 2 | 4 | 8}, {"BHILQNc", DTYPE_UINT, 1 | 2 | 4 | 8},
    {"efd", DTYPE_FLOAT, 2 | 4 | 8},      {"?", DTYPE_BOOL, 1},
    {"FD", DTYPE_COMPLEX, 8 | 16},        {"g", DTYPE_FLOAT, 16},
};

/* The format that dtype_format returns for each dtype. */
static const struct {
  uint8_t code, bits;
  const char *format;
} formats[] = {
    {DTYPE_INT, 8, "b"},    {DTYPE_INT, 16, "h"},       {DTYPE_INT, 32, "i"},
    {DTYPE_INT, 64, "q"},   {DTYPE_UINT, 8, "B"},       {DTYPE_UINT, 16, "H"},
    {DTYPE_UINT, 32, "I"},  {DTYPE_UINT, 64, "Q"},      {DTYPE_FLOAT, 16, "e"},
    {DTYPE_FLOAT, 32, "f"}, {DTYPE_FLOAT, 64, "d"},     {DTYPE_COMPLEX, 64, "Zf"},
    {DTYPE_BOOL, 8, "?"},   {DTYPE_COMPLEX, 128, "Zd"}, {DTYPE_FLOAT, 128, "g"},
};

/* Skip the byte order mark. Return 0 if it names the foreign order; items of one byte have none. */
static int skip_order(const char **format, size_t itemsize) {
  const uint16_t one = 1;
  const char foreign = *(const uint8_t *)&one == 1 ? '>' : '<';
  char mark = **format;
  if (mark == '\0' || strchr("@=<>!", mark) == NULL) return 1;
  ++*format;
  if (mark == '!') mark = '>'; /* network order */
  return mark != foreign || itemsize == 1;
}

static int is_power_of_two_up_to_16(size_t n) { return n > 0 && n <= 16 && (n & (n - 1)) == 0; }

int dtype_from_format(const char *format, size_t itemsize, DLDataType *dtype) {
  if (format == NULL) format = "B";
  if (!skip_order(&format, itemsize) || !is_power_of_two_up_to_16(itemsize)) return -1;
  char letter = format[0];
  if (letter == 'Z' && (format[1] == 'f' || format[1] == 'd')) /* complex, PEP 3118 */
    letter = *++format == 'f' ? 'F' : 'D';
  if (letter == '\0' || format[1] != '\0') return -1;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (strchr(kinds[i].letters, letter) == NULL || !(kinds[i].sizes & itemsize)) continue;
    dtype->code = kinds[i].code;
    dtype->bits = (uint8_t)(itemsize * 8);
    dtype->lanes = 1;
    return 0;
  }
  return -1;
}

const char *dtype_format(DLDataType dtype) {
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
    if (dtype.lanes == 1 && dtype.code == formats[i].code && dtype.bits == formats[i].bits)
      return formats[i].format;
  return NULL;
}

/* The count in bits can wrap only from 2^61 bytes on, beyond every address space. */
int dtype_nbytes(DLDataType dtype, int64_t ndim, const int64_t *dims, size_t *nbytes) {
  size_t bits = dtype_packed_bits(dtype);
  int is_empty = 0;
  if (bits == 0) return -1;
  for (int64_t i = 0; i < ndim; i++) {
    if (dims[i] < 0) return -1;
    if (dims[i] == 0) is_empty = 1;
    else if (__builtin_mul_overflow(bits, (size_t)dims[i], &bits)) return -1;
  }
  *nbytes = is_empty ? 0 : bits / 8 + (bits % 8 != 0);
  return 0;
}

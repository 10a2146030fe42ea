/* Names of data types, and back. */
#include "abi/dtype_name.h"

#include <stdio.h>
#include <string.h>

/* DLDataTypeCode; code 3 is TVM's handle. Types of a fixed size have no bits in their name. */
static const struct {
  const char *name;
  uint8_t code, bits;
} kinds[] = {
    {"int", 0, 0},
    {"uint", 1, 0},
    {"float", 2, 0},
    {"handle", 3, 0},
    {"bfloat", 4, 0},
    {"complex", 5, 0},
    {"float8_e3m4", 7, 8},
    {"float8_e4m3", 8, 8},
    {"float8_e4m3b11fnuz", 9, 8},
    {"float8_e4m3fn", 10, 8},
    {"float8_e4m3fnuz", 11, 8},
    {"float8_e5m2", 12, 8},
    {"float8_e5m2fnuz", 13, 8},
    {"float8_e8m0fnu", 14, 8},
    {"float6_e2m3fn", 15, 6},
    {"float6_e3m2fn", 16, 6},
    {"float4_e2m1fn", 17, 4},
};

enum { NUM_KINDS = sizeof kinds / sizeof *kinds };

struct part {
  const char *data;
  size_t size;
};

static int is(struct part part, const char *text) {
  return part.size == strlen(text) && memcmp(part.data, text, part.size) == 0;
}

static int is_digit(char c) { return c >= '0' && c <= '9'; }

/* Parse a number: at most 65536 for larger ones, or -1 if the text is not a number. */
static int number_of(struct part part) {
  int number = 0;
  for (size_t i = 0; i < part.size; i++) {
    if (!is_digit(part.data[i])) return -1;
    if (number <= 0xffff) number = number * 10 + (part.data[i] - '0');
  }
  return part.size > 0 ? number : -1;
}

static int kind_of(struct part name) {
  for (int i = 0; i < NUM_KINDS; i++)
    if (is(name, kinds[i].name)) return i;
  return -1;
}

/* Cut "x4" off; not the x of "complex64", before which no bits are, and no whole name. */
static int split_lanes(struct part *stem) {
  size_t cross = stem->size;
  while (cross > 0 && stem->data[cross - 1] != 'x') cross--;
  if (cross < 2) return 1;
  struct part before = {stem->data, cross - 1};
  int lanes = number_of((struct part){stem->data + cross, stem->size - cross});
  char last = before.data[before.size - 1];
  if (lanes < 0 || !(is_digit(last) || last == ']' || is(before, "bool") || kind_of(before) >= 0))
    return 1;
  *stem = before;
  return lanes;
}

static int store(int code, int bits, int lanes, DLDataType *dtype) {
  if (code < 0 || bits < 0 || code > 0xff || bits > 0xff || lanes > 0xffff) return -1;
  *dtype = (DLDataType){.code = (uint8_t)code, .bits = (uint8_t)bits, .lanes = (uint16_t)lanes};
  return 0;
}

static int custom_code(struct part name) {
  static const char start[] = "custom[";
  size_t size = sizeof start - 1;
  if (name.size <= size || memcmp(name.data, start, size) != 0) return -1;
  if (name.data[name.size - 1] != ']') return -1;
  return number_of((struct part){name.data + size, name.size - size - 1});
}

int dtype_from_name(const char *name, size_t nbytes, DLDataType *dtype) {
  struct part stem = {name, nbytes};
  if (is(stem, "handle")) return store(3, 64, 1, dtype);
  if (is(stem, "void")) return store(3, 0, 0, dtype);
  int lanes = split_lanes(&stem), kind = kind_of(stem);
  if (is(stem, "bool")) return store(6, 8, lanes, dtype);
  if (kind >= 0 && kinds[kind].bits > 0)
    return store(kinds[kind].code, kinds[kind].bits, lanes, dtype);
  struct part bits = {stem.data + stem.size, 0};
  while (bits.data > stem.data && is_digit(bits.data[-1])) bits.data--, bits.size++, stem.size--;
  kind = kind_of(stem);
  if (kind >= 0 && kinds[kind].bits > 0) return -1;
  return store(kind >= 0 ? kinds[kind].code : custom_code(stem), number_of(bits), lanes, dtype);
}

const char *dtype_name(DLDataType dtype, char name[DTYPE_NAME_SIZE]) {
  char lanes[16] = "";
  int row = 0;
  if (dtype.lanes != 1) (void)snprintf(lanes, sizeof lanes, "x%d", dtype.lanes);
  while (row < NUM_KINDS && kinds[row].code != dtype.code) row++;
  if (dtype.code == 3 && dtype.bits == 64 && dtype.lanes == 1)
    (void)snprintf(name, DTYPE_NAME_SIZE, "handle");
  else if (dtype.code == 3 && dtype.bits == 0 && dtype.lanes == 0)
    (void)snprintf(name, DTYPE_NAME_SIZE, "void");
  else if (dtype.code == 6 && dtype.bits == 8)
    (void)snprintf(name, DTYPE_NAME_SIZE, "bool%s", lanes);
  else if (row == NUM_KINDS || (kinds[row].bits > 0 && kinds[row].bits != dtype.bits))
    (void)snprintf(name, DTYPE_NAME_SIZE, "custom[%d]%d%s", dtype.code, dtype.bits, lanes);
  else if (kinds[row].bits > 0)
    (void)snprintf(name, DTYPE_NAME_SIZE, "%s%s", kinds[row].name, lanes);
  else (void)snprintf(name, DTYPE_NAME_SIZE, "%s%d%s", kinds[row].name, dtype.bits, lanes);
  return name;
}

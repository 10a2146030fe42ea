/* The elements of arrays as numbers of one C type. */
#pragma once

#include <string.h>

#include "abi/half.h"
#include "functions/arguments.h"

/* An element of an array of float16, float32 or float64. */
static inline double real_at(const struct array *array, int64_t index) {
  const char *data = array->data + index * (int64_t)array->itemsize;
  uint16_t half;
  float single;
  double number;
  switch (array->itemsize) {
    case sizeof half: memcpy(&half, data, sizeof half); return half_value(half);
    case sizeof single: memcpy(&single, data, sizeof single); return (double)single;
    default: memcpy(&number, data, sizeof number); return number;
  }
}

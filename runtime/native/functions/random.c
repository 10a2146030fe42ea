/* tvm.contrib.random.*: each thread has a generator, whose first seed is the time. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "abi/half.h"
#include "abi/raised.h"
#include "device/tensor_object.h"
#include "functions/global_functions.h"
#include "functions/random_engine.h"

static _Thread_local struct random_engine thread_engine;
static _Thread_local int has_engine;

static struct random_engine *engine_of_thread(void) {
  if (!has_engine) engine_seed(&thread_engine, (uint32_t)time(NULL));
  has_engine = 1;
  return &thread_engine;
}

GLOBAL_FUNCTION(global_random_seed) {
  int64_t seed;
  (void)handle, (void)result;
  if (value_count("tvm.contrib.random.seed", num_args, 1, 1) != 0 ||
      value_int("tvm.contrib.random.seed", args, 0, &seed) != 0)
    return -1;
  has_engine = 1;
  engine_seed(&thread_engine, (uint32_t)seed);
  return 0;
}

/* ---- Distributions of floats: [two seeds,] two parameters, output */

struct distribution {
  struct random_engine *engine;
  struct random_engine seeded;
  float first, second;
  struct array output;
};

/* Two seeds that are not both 0 give the same numbers at each call. */
static int take_engine(struct distribution *self, const char *function, const dso_any *args,
                       int32_t num_args) {
  int64_t seeds[2] = {0, 0};
  if (num_args != 3 && num_args != 5)
    return raised_format("TypeError", "%s: expected 3 or 5 arguments, found %d", function,
                         (int)num_args);
  for (int32_t i = 0; num_args == 5 && i < 2; i++)
    if (value_int(function, args, i, &seeds[i]) != 0) return -1;
  self->engine = &self->seeded;
  if (seeds[0] == 0 && seeds[1] == 0) self->engine = engine_of_thread();
  else engine_seed(self->engine, combined_seed(seeds[0], seeds[1]));
  return 0;
}

static int take_distribution(struct distribution *self, const char *function, const dso_any *args,
                             int32_t num_args) {
  double first, second;
  if (take_engine(self, function, args, num_args) != 0 ||
      take_float(function, args, num_args - 3, &first) != 0 ||
      take_float(function, args, num_args - 2, &second) != 0 ||
      take_output(function, args, num_args - 1, &self->output) != 0)
    return -1;
  if (!dtype_is(self->output.tensor->dtype, DTYPE_FLOAT, 32))
    return refuse_dtype(function, num_args - 1, "a tensor of float32", self->output.tensor->dtype);
  self->first = (float)first;
  self->second = (float)second;
  return 0;
}

GLOBAL_FUNCTION(global_random_uniform) {
  static const char function[] = "tvm.contrib.random.uniform";
  struct distribution self;
  (void)handle, (void)result;
  if (take_distribution(&self, function, args, num_args) != 0) return -1;
  if (!(self.second > self.first))
    return raised_format("ValueError", "%s: high %g, expected more than low, which is %g", function,
                         (double)self.second, (double)self.first);
  for (int64_t i = 0; i < self.output.size; i++) {
    float number = engine_uniform_float(self.engine, self.first, self.second);
    memcpy(self.output.data + i * (int64_t)sizeof number, &number, sizeof number);
  }
  return 0;
}

GLOBAL_FUNCTION(global_random_normal) {
  static const char function[] = "tvm.contrib.random.normal";
  struct distribution self;
  (void)handle, (void)result;
  if (take_distribution(&self, function, args, num_args) != 0) return -1;
  if (!(self.second > 0))
    return raised_format("ValueError", "%s: scale %g, expected more than 0", function,
                         (double)self.second);
  struct normal_numbers numbers = {.engine = self.engine};
  for (int64_t i = 0; i < self.output.size; i++) {
    float number = normal_next(&numbers, self.first, self.second);
    memcpy(self.output.data + i * (int64_t)sizeof number, &number, sizeof number);
  }
  return 0;
}

/* ---- Integers: low, high (exclusive), output */

static int has_range(DLDataType dtype) {
  return dtype.lanes == 1 && (dtype.code == DTYPE_INT || dtype.code == DTYPE_UINT) &&
         (dtype.bits == 8 || dtype.bits == 16 || dtype.bits == 32);
}

/* Limit the range to that of the data type. */
static void limit(DLDataType dtype, int64_t *low, int64_t *high) {
  int is_signed = dtype.code == DTYPE_INT;
  int64_t least = is_signed ? -((int64_t)1 << (dtype.bits - 1)) : 0;
  int64_t end = (int64_t)1 << (dtype.bits - is_signed);
  if (*low < least) *low = least;
  if (*high > end) *high = end;
}

GLOBAL_FUNCTION(global_random_randint) {
  static const char function[] = "tvm.contrib.random.randint";
  struct array output;
  int64_t low, high;
  (void)handle, (void)result;
  if (value_count(function, num_args, 3, 3) != 0 || value_int(function, args, 0, &low) != 0 ||
      value_int(function, args, 1, &high) != 0 || take_output(function, args, 2, &output) != 0)
    return -1;
  if (!has_range(output.tensor->dtype))
    return refuse_dtype(function, 2, "a tensor of int8, int16, int32, uint8, uint16 or uint32",
                        output.tensor->dtype);
  limit(output.tensor->dtype, &low, &high);
  if (high <= low)
    return raised_format("ValueError",
                         "%s: high %" PRId64 ", expected more than low, which is %" PRId64
                         ", in the range of the data type",
                         function, high, low);
  struct random_engine *engine = engine_of_thread();
  for (int64_t i = 0; i < output.size; i++) {
    int64_t number = low + (int64_t)engine_next(engine) % (high - low);
    memcpy(output.data + i * (int64_t)output.itemsize, &number,
           output.itemsize); /* little-endian */
  }
  return 0;
}

/* ---- random_fill: numbers from 1 to 10, whose form depends on the number of bits alone */

static void fill_one(char *data, size_t nbytes, double number) {
  uint8_t byte = (uint8_t)number;
  float single = (float)number;
  uint16_t half = half_of((double)single);
  switch (nbytes) {
    case sizeof byte: memcpy(data, &byte, sizeof byte); break;
    case sizeof half: memcpy(data, &half, sizeof half); break;
    case sizeof single: memcpy(data, &single, sizeof single); break;
    default: memcpy(data, &number, sizeof number); break;
  }
}

static int fill(const char *function, const struct array *array) {
  DLDataType dtype = array->tensor->dtype;
  if (dtype.lanes != 1 ||
      (dtype.bits != 8 && dtype.bits != 16 && dtype.bits != 32 && dtype.bits != 64))
    return refuse_dtype(function, 0, "a tensor of elements of 8, 16, 32 or 64 bits", dtype);
  for (int64_t i = 0; i < array->size; i++)
    fill_one(array->data + i * (int64_t)array->itemsize, array->itemsize,
             engine_uniform_double(engine_of_thread(), 1, 10));
  return 0;
}

GLOBAL_FUNCTION(global_random_fill) {
  static const char function[] = "tvm.contrib.random.random_fill";
  struct array array;
  dso_object *copy;
  (void)handle, (void)result;
  if (value_count(function, num_args, 1, 1) != 0 ||
      fetch_array(function, args, 0, &array, &copy) != 0)
    return -1;
  int status = copy == NULL ? take_output(function, args, 0, &array) : 0;
  if (status == 0) status = fill(function, &array);
  if (copy == NULL) return status;
  if (status == 0) status = tensor_copy(dso_tensor_of(&args[0]), array.tensor);
  object_release(copy);
  return status;
}

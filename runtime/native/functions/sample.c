/* vm.builtin.*: choosing a token from probabilities or logits, and changing logits in place.
 *
 * Sums are added in float, in the order that TVM adds them: a token at a border would be another
 * one with any other rounding. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "functions/global_functions.h"
#include "functions/pairs.h"

static float float_at(const struct array *array, int64_t index) {
  float number;
  memcpy(&number, array->data + index * (int64_t)sizeof number, sizeof number);
  return number;
}

/* The last extent of a tensor of float32 whose other extents are 1. */
static int take_line(const char *function, const struct array *array, int64_t *length) {
  const DLTensor *tensor = array->tensor;
  if (!dtype_is(tensor->dtype, DTYPE_FLOAT, 32))
    return refuse_dtype(function, 0, "a tensor of float32", tensor->dtype);
  *length = tensor->ndim > 0 ? tensor->shape[tensor->ndim - 1] : 0;
  if (*length > 0 && *length == array->size && *length <= INT32_MAX) return 0;
  return raised_format("ValueError",
                       "%s: argument 1, expected a tensor of one row, found %" PRId64
                       " elements and a last extent of %" PRId64,
                       function, array->size, *length);
}

static int no_memory(const char *function) {
  return raised_format("OutOfMemoryError", "%s: no memory to sort the tokens", function);
}

/* ---- sample_top_p_from_logits */

/* The probability of each token, then their running sum; the pairs are sorted. Returns the sum of
 * the tokens that top_p includes. */
static float accumulate(struct real_pair *pairs, int64_t count, double temperature, double top_p) {
  float largest = (float)-pairs[0].key, sum = 0, running = 0, included = 0;
  float scale = (float)(1.0 / temperature);
  for (int64_t i = 0; i < count; i++) {
    float power = expf(((float)-pairs[i].key - largest) * scale);
    sum += power;
    pairs[i].key = (double)power;
  }
  for (int64_t i = 0; i < count; i++) {
    float share = (float)pairs[i].key / sum;
    if ((double)running < top_p) included += share;
    running += share;
    pairs[i].key = (double)running;
  }
  return included;
}

/* The first token whose part of the included sum exceeds the uniform number, or -1. */
static int64_t pick(const struct real_pair *pairs, int64_t count, float included, double uniform) {
  for (int64_t i = 0; i < count; i++)
    if (uniform < (double)((float)pairs[i].key / included)) return pairs[i].index;
  return -1;
}

GLOBAL_FUNCTION(global_sample_top_p_from_logits) {
  static const char function[] = "vm.builtin.sample_top_p_from_logits";
  struct array logits;
  double temperature, top_p, uniform;
  int64_t count = 0;
  dso_object *copy = NULL;
  (void)handle;
  if (value_count(function, num_args, 4, 4) != 0 ||
      take_float(function, args, 1, &temperature) != 0 ||
      take_float(function, args, 2, &top_p) != 0 || take_float(function, args, 3, &uniform) != 0 ||
      fetch_array(function, args, 0, &logits, &copy) != 0)
    return -1;
  int status = take_line(function, &logits, &count);
  struct real_pair *pairs = status == 0 ? heap_new((size_t)count * sizeof *pairs) : NULL;
  if (pairs != NULL) {
    for (int64_t i = 0; i < count; i++)
      pairs[i] = (struct real_pair){-(double)float_at(&logits, i), i};
    real_sort(pairs, count);
    int64_t token = pairs[0].index;
    if (temperature >= (double)1e-6F)
      token = pick(pairs, count, accumulate(pairs, count, temperature, top_p), uniform);
    *result = (dso_any){.type_index = DSO_INT, .v_int64 = token >= 0 ? token : pairs[0].index};
    free(pairs);
  } else if (status == 0) status = no_memory(function);
  if (copy != NULL) object_release(copy);
  return status;
}

/* ---- sample_top_p_from_prob */

/* Choose among the probabilities of at least `least`. Returns the token, or -1 if they do not
 * suffice. */
static int64_t choose(const struct array *prob, float least, double top_p, double uniform,
                      struct real_pair *pairs) {
  int64_t count = 0;
  float running = 0, included = 0;
  for (int64_t i = 0; i < prob->size; i++)
    if (float_at(prob, i) >= least)
      pairs[count++] = (struct real_pair){-(double)float_at(prob, i), i};
  if (count == 0) return -1;
  real_sort(pairs, count);
  if (uniform < -pairs[0].key / top_p) return pairs[0].index;
  for (int64_t i = 0; i < count; i++) {
    float share = (float)-pairs[i].key;
    pairs[i].key = (double)share;
  }
  for (int64_t i = 0; i < count && (double)running < top_p; i++) {
    included += (float)pairs[i].key;
    running += (float)pairs[i].key;
    pairs[i].key = (double)running;
  }
  if ((double)running < top_p && least != 0) return -1;
  int64_t token = pick(pairs, count, included, uniform);
  return token >= 0 ? token : pairs[count - 1].index;
}

GLOBAL_FUNCTION(global_sample_top_p_from_prob) {
  static const char function[] = "vm.builtin.sample_top_p_from_prob";
  struct array prob;
  double top_p, uniform;
  int64_t count = 0, token = -1;
  dso_object *copy = NULL;
  (void)handle;
  if (value_count(function, num_args, 3, 3) != 0 || take_float(function, args, 1, &top_p) != 0 ||
      take_float(function, args, 2, &uniform) != 0 ||
      fetch_array(function, args, 0, &prob, &copy) != 0)
    return -1;
  int status = take_line(function, &prob, &count);
  struct real_pair *pairs = status == 0 ? heap_new((size_t)count * sizeof *pairs) : NULL;
  if (pairs != NULL) {
    if (top_p < 1) token = choose(&prob, (float)(top_p / 1024), top_p, uniform, pairs);
    if (token < 0) token = choose(&prob, 0, top_p, uniform, pairs);
    if (token < 0)
      status = raised_format("ValueError", "%s: expected a probability of at least 0, found none",
                             function);
    *result = token < 0 ? (dso_any){.type_index = DSO_NONE}
                        : (dso_any){.type_index = DSO_INT, .v_int64 = token};
    free(pairs);
  } else if (status == 0) status = no_memory(function);
  if (copy != NULL) object_release(copy);
  return status;
}

/* ---- multinomial_from_uniform: a token for each row */

static int check_multinomial(const char *function, const struct array *prob,
                             const struct array *uniform) {
  if (!dtype_is(prob->tensor->dtype, DTYPE_FLOAT, 32))
    return refuse_dtype(function, 0, "a tensor of float32", prob->tensor->dtype);
  if (!dtype_is(uniform->tensor->dtype, DTYPE_FLOAT, 32))
    return refuse_dtype(function, 1, "a tensor of float32", uniform->tensor->dtype);
  const DLTensor *tensor = prob->tensor;
  int64_t rows = tensor->ndim > 0 ? tensor->shape[0] : 0;
  int64_t size, is_wrong = tensor->ndim == 0;
  is_wrong |=
      __builtin_mul_overflow(rows, tensor->ndim > 0 ? tensor->shape[tensor->ndim - 1] : 0, &size);
  if (!is_wrong && size <= prob->size && uniform->size >= rows) return 0;
  return raised_format("ValueError",
                       "%s: expected probabilities of (rows, tokens), and a uniform number for "
                       "each row",
                       function);
}

static int choose_rows(const char *function, const struct array *prob, const struct array *uniform,
                       dso_any *result) {
  struct array tokens;
  if (check_multinomial(function, prob, uniform) != 0) return -1;
  int64_t rows = prob->tensor->shape[0], count = prob->tensor->shape[prob->tensor->ndim - 1];
  const DLDataType int64 = {.code = DTYPE_INT, .bits = 64, .lanes = 1};
  const int64_t shape[] = {rows, 1};
  dso_object *object = new_array(int64, 2, shape, &tokens);
  if (object == NULL) return -1;
  for (int64_t row = 0; row < rows; row++) {
    float sum = 0;
    int64_t token = 0;
    for (int64_t i = 0; i < count; i++) {
      token = i;
      sum += float_at(prob, row * count + i);
      if (sum > float_at(uniform, row)) break;
    }
    memcpy(tokens.data + row * (int64_t)sizeof token, &token, sizeof token);
  }
  *result = (dso_any){.type_index = DSO_TENSOR, .v_ptr = object};
  return 0;
}

GLOBAL_FUNCTION(global_multinomial_from_uniform) {
  static const char function[] = "vm.builtin.multinomial_from_uniform";
  struct array prob, uniform;
  dso_object *copies[2] = {NULL, NULL};
  (void)handle;
  if (value_count(function, num_args, 2, 2) != 0) return -1;
  int status = fetch_array(function, args, 0, &prob, &copies[0]);
  if (status == 0) status = fetch_array(function, args, 1, &uniform, &copies[1]);
  if (status == 0) status = choose_rows(function, &prob, &uniform, result);
  for (int i = 0; i < 2; i++)
    if (copies[i] != NULL) object_release(copies[i]);
  return status;
}

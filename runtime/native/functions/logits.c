/* vm.builtin.apply_*: logits of the next token, changed in place before one is chosen. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "abi/raised.h"
#include "functions/global_functions.h"

static int take_logits(const char *function, const dso_any *args, struct array *logits) {
  if (take_output(function, args, 0, logits) != 0) return -1;
  if (dtype_is(logits->tensor->dtype, DTYPE_FLOAT, 32)) return 0;
  return refuse_dtype(function, 0, "a tensor of float32", logits->tensor->dtype);
}

/* Read a tensor of int32; its last extent is the number of tokens. */
static int take_ints(const char *function, const dso_any *args, int32_t index,
                     struct array *array) {
  if (take_array(function, args, index, array) != 0) return -1;
  if (dtype_is(array->tensor->dtype, DTYPE_INT, 32)) return 0;
  return refuse_dtype(function, index, "a tensor of int32", array->tensor->dtype);
}

static int64_t last_extent(const struct array *array) {
  const DLTensor *tensor = array->tensor;
  int64_t extent = tensor->ndim > 0 ? tensor->shape[tensor->ndim - 1] : 0;
  return extent < array->size ? extent : array->size;
}

static int32_t int_at(const struct array *array, int64_t index) {
  int32_t number;
  memcpy(&number, array->data + index * (int64_t)sizeof number, sizeof number);
  return number;
}

/* The place of a token's logit, or NULL with IndexError raised. */
static char *logit_of(const char *function, const struct array *logits, int32_t token) {
  if (token >= 0 && token < logits->size)
    return logits->data + (int64_t)token * (int64_t)sizeof(float);
  return raised_null("IndexError", "%s: token %d, expected less than %" PRId64, function,
                     (int)token, logits->size);
}

GLOBAL_FUNCTION(global_apply_repetition_penalty) {
  static const char function[] = "vm.builtin.apply_repetition_penalty";
  struct array logits, tokens;
  double penalty;
  (void)handle, (void)result;
  if (value_count(function, num_args, 3, 3) != 0 || take_logits(function, args, &logits) != 0 ||
      take_ints(function, args, 1, &tokens) != 0 || take_float(function, args, 2, &penalty) != 0)
    return -1;
  for (int64_t i = 0; i < last_extent(&tokens); i++) {
    float logit;
    char *at = logit_of(function, &logits, int_at(&tokens, i));
    if (at == NULL) return -1;
    memcpy(&logit, at, sizeof logit);
    logit = (float)(logit <= 0 ? (double)logit * penalty : (double)logit / penalty);
    memcpy(at, &logit, sizeof logit);
  }
  return 0;
}

GLOBAL_FUNCTION(global_apply_presence_and_frequency_penalty) {
  static const char function[] = "vm.builtin.apply_presence_and_frequency_penalty";
  struct array logits, tokens, counts;
  double presence, frequency;
  (void)handle, (void)result;
  if (value_count(function, num_args, 5, 5) != 0 || take_logits(function, args, &logits) != 0 ||
      take_ints(function, args, 1, &tokens) != 0 || take_ints(function, args, 2, &counts) != 0 ||
      take_float(function, args, 3, &presence) != 0 ||
      take_float(function, args, 4, &frequency) != 0)
    return -1;
  if (counts.size < last_extent(&tokens))
    return raised_format("ValueError",
                         "%s: argument 3, expected %" PRId64 " elements, found %" PRId64, function,
                         last_extent(&tokens), counts.size);
  for (int64_t i = 0; i < last_extent(&tokens); i++) {
    float logit;
    char *at = logit_of(function, &logits, int_at(&tokens, i));
    if (at == NULL) return -1;
    memcpy(&logit, at, sizeof logit);
    logit = (float)((double)logit - (int_at(&counts, i) * frequency + presence));
    memcpy(at, &logit, sizeof logit);
  }
  return 0;
}

/* TVM's largest logit begins at the least positive float, and its sum is a double. */
GLOBAL_FUNCTION(global_apply_softmax_with_temperature) {
  static const char function[] = "vm.builtin.apply_softmax_with_temperature";
  struct array logits;
  double temperature, sum = 0;
  (void)handle, (void)result;
  if (value_count(function, num_args, 2, 2) != 0 || take_logits(function, args, &logits) != 0 ||
      take_float(function, args, 1, &temperature) != 0)
    return -1;
  float inverse = (float)(1.0 / temperature), largest = FLT_MIN;
  for (int64_t i = 0; i < last_extent(&logits); i++) {
    float x, before = largest;
    memcpy(&x, logits.data + i * (int64_t)sizeof x, sizeof x);
    x *= inverse;
    if (largest < x) largest = x;
    sum = sum * (double)expf(before - largest) + (double)expf(x - largest);
  }
  for (int64_t i = 0; i < last_extent(&logits); i++) {
    float x;
    memcpy(&x, logits.data + i * (int64_t)sizeof x, sizeof x);
    x = (float)((double)expf(x * inverse - largest) / sum);
    memcpy(logits.data + i * (int64_t)sizeof x, &x, sizeof x);
  }
  return 0;
}

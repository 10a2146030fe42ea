/* The loop that a call of an elementwise function uses: NumPy's choice among a ufunc's loops. */
#include "ufunc.h"

/* The type of an argument. A number of Python takes the type of its kind that others have. */
typedef struct {
  DLDataType type; /* no bits: none */
  int is_weak;
} input;

static const DLDataType NONE = {0, 0, 0};

static int is_number(const dso_any *value) {
  return dso_is_integer(value) || value->type_index == DSO_FLOAT;
}

static DLDataType type_of_tensor(const DLTensor *tensor) {
  DLDataType type = tensor->dtype;
  if (dso_is_legacy_bool(type)) return (DLDataType){DSO_DT_BOOL, 8, 1};
  int is_known = type.code == DSO_DT_BOOL || type.code == DSO_DT_COMPLEX ||
                 type.code <= DSO_DT_UINT || (type.code == DSO_DT_FLOAT && type.bits >= 16);
  return is_known && dso_is_on_cpu(tensor) && type.lanes == 1 && type.bits % 8 == 0 ? type : NONE;
}

static input input_of(const dso_any *value) {
  const DLTensor *tensor = dso_tensor_of(value);
  const dso_sequence *pair = dso_sequence_of(value);
  int is_beyond = value->type_index == DSO_INT && value->small_len == DSO_UNSIGNED;
  if (tensor) return (input){type_of_tensor(tensor), 0};
  if (value->type_index == DSO_BOOL) return (input){{DSO_DT_BOOL, 8, 1}, 0};
  if (nb_is_typed(value))
    return (input){{(uint8_t)nb_code_of(value), (uint8_t)nb_bits_of(value), 1}, 0};
  if (is_beyond) return (input){{DSO_DT_UINT, 64, 1}, 0};
  if (value->type_index == DSO_INT) return (input){{DSO_DT_INT, 64, 1}, 1};
  if (value->type_index == DSO_FLOAT) return (input){{DSO_DT_FLOAT, 64, 1}, 1};
  if (pair && pair->size == 2 && is_number(&pair->items[0]) && is_number(&pair->items[1]))
    return (input){{DSO_DT_COMPLEX, 128, 1}, !nb_is_typed(&pair->items[0])};
  return (input){NONE, 0};
}

/* Bool, integer, or floating and complex. */
static int level_of(DLDataType type) {
  return type.code == DSO_DT_BOOL ? 0 : type.code <= DSO_DT_UINT ? 1 : 2;
}

/* If the level of a Python number is above the levels of all typed arguments, Python numbers have
 * their usual types. */
static void widen_numbers(input *inputs, int32_t count) {
  int levels[2] = {0, 0};
  for (int32_t i = 0; i < count; i++) {
    int level = level_of(inputs[i].type);
    if (level > levels[inputs[i].is_weak]) levels[inputs[i].is_weak] = level;
  }
  for (int32_t i = 0; i < count; i++) inputs[i].is_weak &= levels[1] <= levels[0];
}

static int fits(const nb_operand *as, const input *given) {
  DLDataType to = {as->code, as->bits, 1}, from = given->type;
  if (from.bits == 0) return 0;
  if (!given->is_weak) return nb_is_safe(from, to);
  if (from.code == DSO_DT_INT) return to.code != DSO_DT_BOOL;
  return to.code == DSO_DT_COMPLEX || (to.code == DSO_DT_FLOAT && from.code == DSO_DT_FLOAT);
}

static int is_exact(const nb_operand *as, const input *given) {
  return !given->is_weak && given->type.code == as->code && given->type.bits == as->bits;
}

static int has_dims(const nb_operand *as, const dso_any *value) {
  const DLTensor *tensor = dso_tensor_of(value);
  int32_t outer = (tensor ? tensor->ndim : 0) - as->num_core;
  return outer >= 0 && outer <= NB_MOST_DIMS;
}

int32_t nb_ufunc_choose(const nb_ufunc *loops, int32_t count, int exact_first,
                        const dso_any *args) {
  input inputs[NB_MOST_OPERANDS];
  for (int32_t i = 0; i < loops->num_inputs; i++) {
    if (!has_dims(&loops->operands[i], &args[i])) return -1;
    inputs[i] = input_of(&args[i]);
  }
  widen_numbers(inputs, loops->num_inputs);
  for (int is_any = !exact_first; is_any <= 1; is_any++)
    for (int32_t k = 0; k < count; k++) {
      int is_fit = 1;
      for (int32_t i = 0; is_fit && i < loops->num_inputs; i++)
        is_fit = is_any ? fits(&loops[k].operands[i], &inputs[i])
                        : is_exact(&loops[k].operands[i], &inputs[i]);
      if (is_fit) return k;
    }
  return -1;
}

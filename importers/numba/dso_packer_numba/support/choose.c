/* The choice of a signature. */
#include "choose.h"

enum { MAX_DIMS = 64 };

static int greater(int one, int other) { return one > other ? one : other; }

/* Columns of the costs of a number, each followed by the wider types of its kind. */
enum {
  FROM_BOOL,
  FROM_INT8,
  FROM_UINT8 = 5,
  FROM_FLOAT16 = 9,
  FROM_COMPLEX64 = 12,
  NUM_COLUMNS = 14
};

/* Return the column of a type, whose kind begins with one of `least` bits. */
static int column_of(int code, int bits) {
  int is_complex = code == DSO_DT_COMPLEX, is_float = code == DSO_DT_FLOAT;
  int column = is_complex            ? FROM_COMPLEX64
               : is_float            ? FROM_FLOAT16
               : code == DSO_DT_UINT ? FROM_UINT8
                                     : FROM_INT8;
  for (int least = is_complex ? 64 : is_float ? 16 : 8; least < bits; least *= 2) column++;
  return column;
}

/* Return the column of a number; NUM_COLUMNS for another value. */
static int source_of(const dso_any *value) {
  const DLTensor *tensor = dso_tensor_of(value);
  if (value->type_index == DSO_BOOL) return FROM_BOOL;
  if (nb_is_typed(value)) return column_of(nb_code_of(value), nb_bits_of(value));
  if (value->type_index == DSO_INT)
    return column_of(value->small_len == DSO_UNSIGNED ? DSO_DT_UINT : DSO_DT_INT, 64);
  if (value->type_index == DSO_FLOAT) return column_of(DSO_DT_FLOAT, 64);
  if (nb_is_complex(value)) return column_of(DSO_DT_COMPLEX, 128);
  if (tensor && tensor->ndim == 0 && tensor->dtype.code == DSO_DT_COMPLEX)
    return column_of(DSO_DT_COMPLEX, tensor->dtype.bits);
  return NUM_COLUMNS;
}

static int cost_of_number(const dso_any *value, const nb_type *type) {
  int column = source_of(value);
  return column < NUM_COLUMNS ? type->costs[column] - '0' : NB_NO_FIT;
}

static int is_fit(const dso_any *value, const nb_type *type, char layout) {
  NB_ARRAY(MAX_DIMS) array;
  return type->count <= MAX_DIMS &&
         nb_read_array(value, type->code, type->bits, type->count, layout, type->is_mutable,
                       type->align, &array) == 0;
}

/* An array that is row-major and column-major has the type of a row-major one. */
static int cost_of_array(const dso_any *value, const nb_type *type) {
  if (!is_fit(value, type, type->layout)) return NB_NO_FIT;
  char own = is_fit(value, type, 'C') ? 'C' : is_fit(value, type, 'F') ? 'F' : 'A';
  if (own != type->layout) return type->layout == 'A' ? NB_SAFE : NB_UNSAFE;
  return type->is_mutable || nb_is_readonly(value) ? NB_EXACT : NB_SAFE;
}

static int cost_of_pointer(const dso_any *value, const nb_type *type) {
  void *address;
  return nb_read_pointer(value, type->code, type->bits, &address) ? NB_NO_FIT : NB_EXACT;
}

static int is_str(const dso_any *value) {
  return dso_bytes_of(value).data != NULL || (value->type_index == DSO_RAW_STR && value->v_c_str);
}

static int cost_of(const dso_any *value, const nb_type *type);

static int cost_of_tuple(const dso_any *value, const nb_type *type) {
  int cost = NB_EXACT;
  const dso_any *items = nb_items(value, type->count);
  if (!items) return NB_NO_FIT;
  for (int32_t i = 0; i < type->count; i++)
    cost = greater(cost, cost_of(&items[i], &type->items[i]));
  return cost;
}

static int cost_of(const dso_any *value, const nb_type *type) {
  int is_none = value->type_index == DSO_NONE;
  switch (type->kind) {
    case 'N': return cost_of_number(value, type);
    case 'A': return cost_of_array(value, type);
    case 'T': return cost_of_tuple(value, type);
    case 'O': return is_none ? NB_PROMOTE : greater(NB_PROMOTE, cost_of(value, type->items));
    case 'P': return cost_of_pointer(value, type);
    case 'S': return is_str(value) ? NB_EXACT : NB_NO_FIT;
    case 'B': return dso_raw_bytes_of(value).data ? NB_EXACT : NB_NO_FIT;
    default: return is_none ? NB_EXACT : NB_NO_FIT;
  }
}

/* How many arguments need each conversion; 0 if one does not fit. Without `is_any` only numbers are
 * converted. */
static int count_costs(const dso_any *args, int32_t count, const nb_type *types, int is_any,
                       int32_t costs[NB_NO_FIT]) {
  for (int i = 0; i < NB_NO_FIT; i++) costs[i] = 0;
  for (int32_t i = 0; i < count; i++) {
    int cost = cost_of(&args[i], &types[i]);
    if (cost == NB_NO_FIT || (cost != NB_EXACT && !is_any && types[i].kind != 'N')) return 0;
    costs[cost]++;
  }
  return 1;
}

/* The worst conversions decide: negative if `one` is better. */
static int compare(const int32_t *one, const int32_t *other) {
  for (int i = NB_UNSAFE; i > NB_EXACT; i--)
    if (one[i] != other[i]) return one[i] < other[i] ? -1 : 1;
  return 0;
}

/* Return how many signatures fit best, and the first of them. */
static int32_t find_best(const dso_any *args, int32_t count, const nb_type *types,
                         int32_t num_signatures, int is_any, int32_t *chosen) {
  int32_t best[NB_NO_FIT], costs[NB_NO_FIT], num_best = 0;
  for (int32_t k = 0; k < num_signatures; k++) {
    if (!count_costs(args, count, types + k * count, is_any, costs)) continue;
    int order = num_best == 0 ? -1 : compare(costs, best);
    if (order > 0) continue;
    num_best = order < 0 ? 1 : num_best + 1;
    if (order < 0) *chosen = k;
    for (int i = 0; i < NB_NO_FIT; i++) best[i] = costs[i];
  }
  return num_best;
}

int nb_choose(const dso_function *function, const dso_any *args, int32_t count,
              const nb_type *types, int32_t num_signatures, const char *signatures) {
  int32_t chosen = -1;
  int32_t num_best = find_best(args, count, types, num_signatures, 0, &chosen);
  if (num_best == 0) num_best = find_best(args, count, types, num_signatures, 1, &chosen);
  if (num_best == 1) return chosen;
  return nb_refuse_all(function, args, count, signatures, num_best);
}

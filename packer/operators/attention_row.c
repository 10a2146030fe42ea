/* Attention of one row of q, as of the next token: keys and values are read once, where they are.
 *
 * An item is one head of k and v, with all heads of q that share it. */
#include <math.h>
#include <string.h>

#include "parts.h"

/* Keys at once: their products, and their values in the second cache, serve all heads of q. */
enum { KEYS = 256, STEP = 4 * LANES };

struct plan {
  const struct dso_op_attention *attention;
  int64_t kv_heads, share, value_size, keys; /* keys: that the row sees */
  float scale;
};

/* The sums of one head of q, after some keys. */
struct head {
  float greatest, sum, change; /* change: the factor of earlier sums */
};

static float dot(const float *a, const float *b, int64_t size) {
  vec sums[4] = {splat(0), splat(0), splat(0), splat(0)};
  float rest = 0;
  int64_t i = 0;
  for (; i + STEP <= size; i += STEP) UNROLL
  for (int v = 0; v < 4; v++) sums[v] += load(a + i + v * LANES) * load(b + i + v * LANES);
  for (; i + LANES <= size; i += LANES) sums[0] += load(a + i) * load(b + i);
  for (; i < size; i++) rest += a[i] * b[i];
  return sum_of_lanes((sums[0] + sums[1]) + (sums[2] + sums[3])) + rest;
}

/* Turn the products of one head with `count` keys into exponentials; the rest of a vector is 0. */
static void softmax(struct head *head, int64_t count, float *products) {
  for (int64_t j = count; j % LANES; j++) products[j] = -INFINITY;
  vec most = splat(head->greatest), sum = splat(0);
  for (int64_t j = 0; j < count; j += LANES) most = greater(load(products + j), most);
  const float before = head->greatest, greatest = greatest_lane(most);
  const float zero = greatest == -INFINITY ? 0 : greatest; /* the row sees no key yet */
  for (int64_t j = 0; j < count; j += LANES) {
    const vec power = vec_exp_below(load(products + j) - zero);
    store(products + j, power);
    sum += power;
  }
  head->change = before == -INFINITY ? 0 : vec_exp_below(splat(before - zero))[0];
  head->sum = head->sum * head->change + sum_of_lanes(sum);
  head->greatest = greatest;
}

/* Add the values of `count` keys, each with its exponential, to a head's output. */
static void add_values(const struct dso_op_attention *attention, const float *v, int64_t count,
                       int64_t value_size, float change, const float *powers, float *out) {
  const int64_t row = attention->v_row;
  int64_t d = 0;
  for (; d + STEP <= value_size; d += STEP) {
    vec sums[4];
    UNROLL
    for (int i = 0; i < 4; i++) sums[i] = load(out + d + i * LANES) * change;
    for (int64_t j = 0; j < count; j++) UNROLL
    for (int i = 0; i < 4; i++) sums[i] += load(v + j * row + d + i * LANES) * powers[j];
    UNROLL
    for (int i = 0; i < 4; i++) store(out + d + i * LANES, sums[i]);
  }
  for (; d + LANES <= value_size; d += LANES) {
    vec sum = load(out + d) * change;
    for (int64_t j = 0; j < count; j++) sum += load(v + j * row + d) * powers[j];
    store(out + d, sum);
  }
  for (; d < value_size; d++) {
    float sum = out[d] * change;
    for (int64_t j = 0; j < count; j++) sum += v[j * row + d] * powers[j];
    out[d] = sum;
  }
}

/* One head of q: the keys from `begin` on. */
static void attend_some(const struct plan *plan, int64_t batch, int64_t head, int64_t begin,
                        int64_t count, struct head *known) {
  const struct dso_op_attention *attention = plan->attention;
  const int64_t kv = head / plan->share;
  const float *q = attention->q + batch * attention->q_batch + head * attention->q_head;
  const float *k =
      attention->k + batch * attention->k_batch + kv * attention->k_head + begin * attention->k_row;
  const float *v =
      attention->v + batch * attention->v_batch + kv * attention->v_head + begin * attention->v_row;
  float *out = attention->out + batch * attention->out_batch + head * attention->out_head;
  _Alignas(64) float products[KEYS];
  for (int64_t j = 0; j < count; j++)
    products[j] = dot(q, k + j * attention->k_row, attention->size) * plan->scale;
  if (attention->mask != NULL) {
    const float *added =
        attention->mask + batch * attention->mask_batch + head * attention->mask_head + begin;
    for (int64_t j = 0; j < count; j++) products[j] += added[j];
  }
  softmax(known, count, products);
  add_values(attention, v, count, plan->value_size, known->change, products, out);
}

static void finish(const struct plan *plan, int64_t batch, int64_t head, float sum) {
  const struct dso_op_attention *attention = plan->attention;
  float *out = attention->out + batch * attention->out_batch + head * attention->out_head;
  const float factor = sum > 0 ? 1 / sum : sum * 0;
  for (int64_t d = 0; d < plan->value_size; d++) out[d] *= factor;
}

enum { HEADS = 64 }; /* of q, whose sums are known together */

static void attend(const void *data, int64_t index) {
  const struct plan *plan = data;
  const struct dso_op_attention *attention = plan->attention;
  const int64_t batch = index / plan->kv_heads, kv = index % plan->kv_heads;
  for (int64_t first = 0; first < plan->share; first += HEADS) {
    const int64_t heads = min(plan->share - first, HEADS), head = kv * plan->share + first;
    struct head known[HEADS];
    for (int64_t h = 0; h < heads; h++) {
      known[h] = (struct head){.greatest = -INFINITY};
      memset(attention->out + batch * attention->out_batch + (head + h) * attention->out_head, 0,
             (size_t)plan->value_size * sizeof(float));
    }
    for (int64_t begin = 0; begin < plan->keys; begin += KEYS)
      for (int64_t h = 0; h < heads; h++)
        attend_some(plan, batch, head + h, begin, min(plan->keys - begin, KEYS), &known[h]);
    for (int64_t h = 0; h < heads; h++) finish(plan, batch, head + h, known[h].sum);
  }
}

int dso_op_attention_row(const struct dso_op_attention *attention) {
  const int64_t size = max(attention->size, 1), batches = max(attention->batch, 1);
  struct plan plan = {.attention = attention, .keys = attention->keys};
  plan.kv_heads = attention->kv_heads ? attention->kv_heads : attention->heads;
  plan.share = attention->heads / plan.kv_heads;
  plan.value_size = attention->value_size ? attention->value_size : attention->size;
  plan.scale = attention->scale != 0 ? attention->scale : (float)inverse_root((double)size);
  if (attention->is_causal) plan.keys = max(min(attention->past + 1, attention->keys), 0);
  return dso_op_parallel(attend, &plan, batches * plan.kv_heads,
                         batches * attention->heads * plan.keys * (size + plan.value_size));
}

/* The walk of rows through trees, for rows of one type: evaluate.c includes this for float and for
 * double. NUMBER is the type, NODE its struct, NAME(x) a name with the type's suffix.
 *
 * A leaf is its own child for the constant in slot 0, so all lanes take the same number of steps
 * without a branch. */

/* Return 1 if a category is not in a set; -2 is in each set, -1 in none. */
static inline uint32_t NAME(is_outside)(const struct forest *f, NUMBER set, NUMBER category) {
  if (!(category >= 0)) return category != -2;
  const struct span *one = (const struct span *)table_of(f, SETS) + (uint32_t)set;
  const uint32_t value = (uint32_t)category, word = value / 32;
  if (word >= one->count) return 1;
  return ~((const uint32_t *)table_of(f, WORDS))[one->first + word] >> value % 32 & 1;
}

static inline uint32_t NAME(step)(const struct forest *f, const NODE *nodes, const NUMBER *row,
                                  uint32_t i, int has_categories) {
  const NODE node = nodes[i];
  if (has_categories && node.slot >= IS_CATEGORY)
    return node.child + NAME(is_outside)(f, node.threshold, row[node.slot & ~IS_CATEGORY]);
  return node.child + !(row[node.slot] <= node.threshold);
}

/* Walk `LANES` pairs of a row and a node to leaves; `at` has the nodes. */
static inline void NAME(walk)(const struct forest *f, const NUMBER *const *rows, uint32_t *at,
                              uint32_t depth, int has_categories) {
  const NODE *nodes = table_of(f, NODES);
  while (depth) {
    const uint32_t steps = depth < 4 ? depth : 4;
    uint32_t moved = 0;
    for (uint32_t d = 0; d < steps; d++) {
      moved = 0;
      for (int k = 0; k < LANES; k++) {
        const uint32_t next = NAME(step)(f, nodes, rows[k], at[k], has_categories);
        moved |= next ^ at[k];
        at[k] = next;
      }
    }
    if (!moved) return;
    depth -= steps;
  }
}

/* Write the leaf that each of `num_rows` rows reaches in a tree, as its number in the forest. */
static inline void NAME(walk_tree)(const struct forest *f, const struct tree *tree,
                                   const NUMBER *rows, int64_t num_rows, uint32_t *leaves,
                                   int has_categories) {
  const NODE *nodes = table_of(f, NODES);
  const int64_t stride = (int64_t)f->num_slots + 1;
  for (int64_t r = 0; r < num_rows; r += LANES) {
    const NUMBER *lanes[LANES];
    uint32_t at[LANES];
    for (int k = 0; k < LANES; k++) {
      lanes[k] = rows + (r + k < num_rows ? r + k : num_rows - 1) * stride;
      at[k] = tree->root;
    }
    NAME(walk)(f, lanes, at, tree->depth, has_categories);
    for (int k = 0; k < LANES && r + k < num_rows; k++)
      leaves[r + k] = tree->first_leaf + (uint32_t)nodes[at[k]].threshold;
  }
}

/* Write the leaves that one row reaches in `count` trees, at most LANES. */
static inline void NAME(walk_row)(const struct forest *f, const struct tree *trees, uint32_t count,
                                  const NUMBER *row, uint32_t *leaves, int has_categories) {
  const NODE *nodes = table_of(f, NODES);
  const NUMBER *lanes[LANES];
  uint32_t at[LANES], depth = 0;
  for (uint32_t k = 0; k < LANES; k++) {
    const struct tree *tree = &trees[k < count ? k : count - 1];
    lanes[k] = row;
    at[k] = tree->root;
    depth = tree->depth > depth ? tree->depth : depth;
  }
  NAME(walk)(f, lanes, at, depth, has_categories);
  for (uint32_t k = 0; k < count; k++)
    leaves[k] = trees[k].first_leaf + (uint32_t)nodes[at[k]].threshold;
}

/* ---- Slots: the used columns, as the nodes test them ---- */

static inline NUMBER NAME(category)(NUMBER x, enum kind kind) {
  if (x != x) return kind == CATEGORY_LEFT ? -2 : -1;
  if (!((kind == TRUNCATED_RIGHT ? x > -1 : x >= 0) && x < 2147483648.0)) return -1;
  const NUMBER whole = (NUMBER)(int32_t)x;
  return kind == EXACT_RIGHT && whole != x ? -1 : whole;
}

static inline NUMBER NAME(prepared)(NUMBER x, double zero, enum kind kind) {
  switch (kind) {
    case NAN_RIGHT: return x;
    case NAN_LEFT: return x != x ? -(NUMBER)INFINITY : x;
    case ZERO_RIGHT: return zero >= -1e-35f && zero <= 1e-35f ? (NUMBER)NAN : x;
    case ZERO_LEFT: return x != x || (zero >= -1e-35f && zero <= 1e-35f) ? -(NUMBER)INFINITY : x;
    case NAN_ZERO: return x != x ? 0 : x;
    default: return NAME(category)(x, kind);
  }
}

/* Write a used column of rows, as its slot. */
static inline void NAME(prepare_column)(const struct rows *from, int64_t first, int64_t num_rows,
                                        uint32_t column, enum kind kind, NUMBER *to,
                                        size_t stride) {
  const size_t step = (size_t)from->stride;
  if (from->is_f64) {
    const double *x = (const double *)from->data + (size_t)first * step + column;
    for (int64_t r = 0; r < num_rows; r++, x += step, to += stride)
      *to = NAME(prepared)((NUMBER)*x, *x, kind);
  } else {
    const float *x = (const float *)from->data + (size_t)first * step + column;
    for (int64_t r = 0; r < num_rows; r++, x += step, to += stride)
      *to = NAME(prepared)((NUMBER)*x, (double)*x, kind);
  }
}

/* Write the slots of `num_rows` rows: slot s of row r at to[r * (num_slots + 1) + s]. */
static inline void NAME(prepare)(const struct forest *f, const struct rows *from, int64_t first,
                                 int64_t num_rows, NUMBER *to) {
  const struct slot *slots = table_of(f, SLOTS);
  const size_t stride = (size_t)f->num_slots + 1;
  for (int64_t r = 0; r < num_rows; r++) to[(size_t)r * stride] = 0;
  uint32_t s = 0;
  for (enum kind kind = 0; kind < NUM_KINDS; kind++)
    for (; s < f->kind_ends[kind]; s++)
      NAME(prepare_column)(from, first, num_rows, slots[s].column, kind, to + s + 1, stride);
}

/* ---- Bins: a slot is the number of cuts that are below a value ---- */

/* Write the ranks of values: of x the number of cuts t for which x <= t is false. */
static inline void NAME(rank)(const NUMBER *x, int64_t count, const NUMBER *cuts, uint32_t num_cuts,
                              uint32_t *ranks) {
  for (int64_t r = 0; r < count; r++) ranks[r] = 0;
  for (uint32_t left = num_cuts; left; left = left > 1 ? left - left / 2 : 0) {
    const uint32_t half = left > 1 ? left / 2 : 1;
    for (int64_t r = 0; r < count; r++)
      ranks[r] += half & -(uint32_t)!(x[r] <= cuts[ranks[r] + half - 1]);
  }
}

/* Return the rank of one value. */
static inline uint32_t NAME(rank_one)(NUMBER x, const NUMBER *cuts, uint32_t num_cuts) {
  uint32_t rank = 0;
  for (uint32_t left = num_cuts; left > 1; left -= left / 2)
    rank += left / 2 & -(uint32_t)!(x <= cuts[rank + left / 2 - 1]);
  return rank + !(x <= cuts[rank]);
}

static inline uint8_t NAME(bin)(uint32_t rank, uint32_t begin) {
  rank = rank < begin ? 0 : rank - begin;
  return (uint8_t)(rank < MOST_CUTS ? rank : MOST_CUTS);
}

/* Write the bins of `num_rows` rows: slot s of row r at to[s * MOST_TILE + r]. */
static inline void NAME(prepare_bins)(const struct forest *f, const struct rows *from,
                                      int64_t first, int64_t num_rows, uint8_t *to) {
  const struct slot *slots = table_of(f, SLOTS);
  const NUMBER *cuts = table_of(f, CUTS);
  NUMBER x[MOST_TILE];
  uint32_t ranks[MOST_TILE], s = 0;
  memset(to, 0, MOST_TILE);
  for (enum kind kind = 0; kind <= LAST_NUMBER; kind++)
    for (; s < f->kind_ends[kind]; s++) {
      const uint32_t count = slots[s].count;
      NAME(prepare_column)(from, first, num_rows, slots[s].column, kind, x, 1);
      NAME(rank)(x, num_rows, cuts, count, ranks);
      cuts += count;
      for (uint32_t begin = 0; begin < count; begin += MOST_CUTS) {
        to += MOST_TILE;
        for (int64_t r = 0; r < num_rows; r++) to[r] = NAME(bin)(ranks[r], begin);
      }
    }
}

/* Write the bins of one row. */
static inline void NAME(prepare_row)(const struct forest *f, const struct rows *from, int64_t row,
                                     uint8_t *to) {
  const struct slot *slots = table_of(f, SLOTS);
  const NUMBER *cuts = table_of(f, CUTS);
  uint32_t s = 0;
  *to++ = 0;
  for (enum kind kind = 0; kind <= LAST_NUMBER; kind++)
    for (; s < f->kind_ends[kind]; s++) {
      const uint32_t count = slots[s].count;
      NUMBER x;
      NAME(prepare_column)(from, row, 1, slots[s].column, kind, &x, 1);
      const uint32_t rank = NAME(rank_one)(x, cuts, count);
      cuts += count;
      for (uint32_t begin = 0; begin < count; begin += MOST_CUTS) *to++ = NAME(bin)(rank, begin);
    }
}

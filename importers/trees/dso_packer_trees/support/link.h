/* Links: scores of sums, in place. SUM is the type, NAME(x) a name with its suffix; the functions of
 * math.h are the macros OF(x). */

static inline SUM NAME(sigmoid)(SUM x) { return 1 / (1 + OF(exp)(-x)); }

static inline void NAME(softmax)(SUM *x, uint32_t count) {
  SUM most = x[0];
  double sum = 0;
  for (uint32_t i = 1; i < count; i++) most = x[i] > most ? x[i] : most;
  for (uint32_t i = 0; i < count; i++) {
    x[i] = OF(exp)(x[i] - most);
    sum += (double)x[i];
  }
  for (uint32_t i = 0; i < count; i++) x[i] /= (SUM)sum;
}

static inline SUM NAME(greatest)(const SUM *x, uint32_t count) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < count; i++)
    if (x[i] > x[best]) best = i;
  return (SUM)best;
}

static inline SUM NAME(linked)(SUM x, enum link link, double parameter) {
  switch (link) {
    case SIGMOID: return NAME(sigmoid)((SUM)parameter * x);
    case EXP: return OF(exp)(x);
    case STEP: return x > 0;
    case SIGNED_SQUARE: return x < 0 ? -(x * x) : x * x;
    case LOG1P_EXP: return OF(log1p)(OF(exp)(x));
    case UP_TO_ONE: return x > 1 ? 1 : x;
    case ISOLATION: return (SUM)parameter - OF(exp2)(-x);
    default: return x;
  }
}

/* Make the scores of one row from its sums. `scores` may be where the sums are. */
static inline void NAME(link)(const struct forest *f, SUM *sums, SUM *scores) {
  for (uint32_t i = 0; i < f->num_sums && f->divisor != 1; i++) sums[i] /= (SUM)f->divisor;
  const SUM *base = table_of(f, BASE);
  for (uint32_t i = 0; i < f->num_sums && f->is_base_last; i++) sums[i] += base[i];
  switch (f->link) {
    case IDENTITY: break;
    case SOFTMAX: NAME(softmax)(sums, f->num_sums); break;
    case CLASS: scores[0] = NAME(greatest)(sums, f->num_sums); return;
    case TWO_CLASSES:
      scores[1] = NAME(sigmoid)((SUM)f->parameter * sums[0]);
      scores[0] = 1 - scores[1];
      return;
    case COMPLEMENT:
      scores[1] = sums[0];
      scores[0] = 1 - scores[1];
      return;
    default:
      for (uint32_t i = 0; i < f->num_sums; i++)
        sums[i] = NAME(linked)(sums[i], f->link, f->parameter);
  }
  if (scores != sums) memcpy(scores, sums, f->num_sums * sizeof *sums);
}

/* Add the values of the leaves that rows reach in one tree. */
static inline void NAME(add)(const struct forest *f, const struct tree *tree,
                             const uint32_t *leaves, int64_t num_rows, SUM *sums) {
  const SUM *values = table_of(f, VALUES);
  const size_t width = f->width, stride = f->num_sums;
  SUM *to = sums + tree->target;
  if (width == 1) {
    for (int64_t r = 0; r < num_rows; r++) to[(size_t)r * stride] += values[leaves[r]];
    return;
  }
  for (int64_t r = 0; r < num_rows; r++)
    for (size_t k = 0; k < width; k++) to[(size_t)r * stride + k] += values[leaves[r] * width + k];
}

/* Add the values of the leaves of a group of trees to the one sum of each row. */
static inline void NAME(add_group)(const struct forest *f, uint32_t trees, const uint32_t *leaves,
                                   int64_t num_rows, SUM *sums) {
  const SUM *values = table_of(f, VALUES);
  for (int64_t r = 0; r < num_rows; r++) {
    SUM sum = sums[r];
    for (uint32_t k = 0; k < trees; k++) sum += values[leaves[k * MOST_TILE + r]];
    sums[r] = sum;
  }
}

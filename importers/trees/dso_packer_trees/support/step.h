/* The steps for numbers of one type: steps.c includes this for float and for double. NUMBER is the
 * type, NAME(x) a name with its suffix, OF(x) a function of math.h. */

/* Write the norm of a row: a row of zeros has 1. */
static NUMBER NAME(norm)(const NUMBER *x, uint32_t count, enum op op) {
  NUMBER norm = op == NORM_MOST ? -(NUMBER)INFINITY : 0;
  for (uint32_t k = 0; k < count; k++) {
    if (op == NORM_MOST) norm = x[k] > norm ? x[k] : norm;
    else norm += op == NORM_L2 ? x[k] * x[k] : OF(fabs)(x[k]);
  }
  if (op == NORM_L2) norm = OF(sqrt)(norm);
  return norm == 0 ? 1 : norm;
}

static void NAME(soften)(const NUMBER *x, uint32_t count, NUMBER *out) {
  NUMBER most = x[0], sum = 0;
  for (uint32_t k = 1; k < count; k++) most = x[k] > most ? x[k] : most;
  for (uint32_t k = 0; k < count; k++) sum += out[k] = OF(exp)(x[k] - most);
  for (uint32_t k = 0; k < count; k++) out[k] /= sum;
}

/* Write the squares of distances, or the products of a row with the columns of a matrix. */
static void NAME(multiply)(const NUMBER *x, uint32_t num_in, const NUMBER *numbers, uint32_t count,
                           NUMBER *out, enum op op) {
  for (uint32_t k = 0; k < count; k++) out[k] = 0;
  for (uint32_t i = 0; i < num_in; i++, numbers += count) {
    const NUMBER of_row = x[i];
    if (op == MATMUL) {
      for (uint32_t k = 0; k < count; k++) out[k] += of_row * numbers[k];
    } else {
      for (uint32_t k = 0; k < count; k++) {
        const NUMBER far = of_row - numbers[k];
        out[k] += far * far;
      }
    }
  }
}

/* Return the probability of class i against class j of a pair; pairs are in order. */
static double NAME(of_pair)(const NUMBER *pairs, uint32_t count, uint32_t i, uint32_t j) {
  if (i > j) return 1 - NAME(of_pair)(pairs, count, j, i);
  return (double)pairs[i * count - i * (i + 1) / 2 + (j - i - 1)];
}

/* Row i of the matrix Q of the method times p, and its element on the diagonal. */
static double NAME(row_of_pairs)(const NUMBER *pairs, uint32_t count, uint32_t i, const NUMBER *p,
                                 double *diagonal) {
  double sum = *diagonal = 0;
  for (uint32_t j = 0; j < count; j++) {
    if (j == i) continue;
    const double other = NAME(of_pair)(pairs, count, j, i);
    *diagonal += other * other;
    sum -= other * (1 - other) * (double)p[j];
  }
  return sum + *diagonal * (double)p[i];
}

/* Write the probabilities of classes that fit the ones of pairs best: the second method of Wu, Lin and
 * Weng, Probability Estimates for Multi-class Classification by Pairwise Coupling, JMLR 5, 2004. */
static void NAME(couple)(const NUMBER *pairs, uint32_t count, NUMBER *p) {
  const uint32_t most_rounds = count > 100 ? count : 100;
  for (uint32_t i = 0; i < count; i++) p[i] = (NUMBER)1 / (NUMBER)count;
  for (uint32_t round = 0; round < most_rounds; round++) {
    double whole = 0, diagonal, error = 0;
    for (uint32_t i = 0; i < count; i++)
      whole += (double)p[i] * NAME(row_of_pairs)(pairs, count, i, p, &diagonal);
    for (uint32_t i = 0; i < count; i++)
      error = fmax(error, fabs(NAME(row_of_pairs)(pairs, count, i, p, &diagonal) - whole));
    if (error < 0.005 / count) break;
    for (uint32_t i = 0; i < count; i++) {
      const double change = (whole - NAME(row_of_pairs)(pairs, count, i, p, &diagonal)) / diagonal;
      p[i] += (NUMBER)change;
      for (uint32_t j = 0; j < count; j++) p[j] /= (NUMBER)(1 + change);
      whole = 0;
      double unused;
      for (uint32_t j = 0; j < count; j++)
        whole += (double)p[j] * NAME(row_of_pairs)(pairs, count, j, p, &unused);
    }
  }
}

/* Replace keys by values, column by column; return 1 if a key is unknown. NaN is the last key. */
static int NAME(look_up)(const NUMBER *x, const NUMBER *table, uint32_t count, NUMBER *out) {
  int is_unknown = 0;
  for (uint32_t k = 0; k < count; k++) {
    const size_t keys = (size_t)table[0];
    const NUMBER *key = table + 2;
    size_t at = 0, left = keys;
    while (left > 1) {
      const size_t half = left / 2;
      if (!(x[k] < key[at + half])) at += half;
      left -= half;
    }
    if (x[k] != x[k]) at = keys - 1;
    else if (key[at] != key[at] && at) at--;
    const int is_known = key[at] == x[k] || (key[at] != key[at] && x[k] != x[k]);
    is_unknown |= !is_known;
    out[k] = is_known ? key[keys + at] : table[1];
    table += 2 + 2 * keys;
  }
  return is_unknown;
}

#define EACH(OP, VALUE)                                    \
  case OP:                                                 \
    for (uint32_t k = 0; k < count; k++) out[k] = (VALUE); \
    break

/* Run a step; return 1 if a category is unknown. */
static int NAME(run_step)(const struct steps *s, const struct step *step, NUMBER *work) {
  const NUMBER *x = work + step->in[0], *y = work + step->in[1], *z = work + step->in[2];
  const NUMBER *numbers = (const NUMBER *)numbers_of(s) + step->numbers;
  const uint32_t count = step->count, num_in = step->num_in;
  NUMBER *out = work + step->out;
  switch ((enum op)step->op) {
    EACH(ADD, x[k] + y[k]);
    EACH(SUB, x[k] - y[k]);
    EACH(MUL, x[k] * y[k]);
    EACH(DIV, x[k] / y[k]);
    EACH(POW, OF(pow)(x[k], y[k]));
    /* NaN if either is. */
    EACH(LEAST, x[k] < y[k] || x[k] != x[k] ? x[k] : y[k]);
    EACH(GREATEST, x[k] > y[k] || x[k] != x[k] ? x[k] : y[k]);
    EACH(LESS, x[k] < y[k]);
    EACH(LESS_EQUAL, x[k] <= y[k]);
    EACH(EQUAL, x[k] == y[k]);
    EACH(IS_NAN, x[k] != x[k]);
    EACH(WHERE, x[k] != 0 ? y[k] : z[k]);
    EACH(ABS, OF(fabs)(x[k]));
    EACH(SIGN, x[k] > 0 ? 1 : x[k] < 0 ? -1 : x[k]);
    EACH(TRUNC, OF(trunc)(x[k]));
    EACH(SQRT, OF(sqrt)(x[k]));
    EACH(EXP, OF(exp)(x[k]));
    EACH(LOG, OF(log)(x[k]));
    EACH(LOG1P, OF(log1p)(x[k]));
    EACH(TANH, OF(tanh)(x[k]));
    EACH(LOGISTIC, 1 / (1 + OF(exp)(-x[k])));
    EACH(FLOAT32, (NUMBER)(float)x[k]);
    EACH(COPY, x[(uint32_t)numbers[k]]);
    case NORM_L1:
    case NORM_L2:
    case NORM_MOST: {
      const NUMBER norm = NAME(norm)(x, num_in, step->op);
      for (uint32_t k = 0; k < count; k++) out[k] = norm;
      break;
    }
    case SOFTMAX: NAME(soften)(x, count, out); break;
    case COUPLE: NAME(couple)(x, count, out); break;
    case MATMUL:
    case DISTANCE: NAME(multiply)(x, num_in, numbers, count, out, step->op); break;
    case LOOKUP: NAME(look_up)(x, numbers, count, out); break;
    case LOOKUP_ALL: return NAME(look_up)(x, numbers, count, out);
    case NUM_OPS: break;
  }
  return 0;
}

#undef EACH

/* Evaluate rows in `work`; return 1 if a category is unknown. */
static int NAME(run)(const struct steps *s, const struct rows *rows, int64_t first, int64_t count,
                     NUMBER *work, NUMBER *result) {
  memcpy(work, numbers_of(s), s->num_constants * sizeof *work);
  NUMBER *row = work + s->num_constants;
  for (int64_t r = first; r < first + count; r++) {
    const int64_t at = r * rows->stride;
    for (uint32_t c = 0; c < s->num_features; c++)
      row[c] = rows->is_f64 ? (NUMBER)((const double *)rows->data)[at + c]
                            : (NUMBER)((const float *)rows->data)[at + c];
    for (uint32_t i = 0; i < s->num_steps; i++)
      if (NAME(run_step)(s, &steps_of(s)[i], work)) return 1;
    memcpy(result + (size_t)r * s->num_out, work + s->out, s->num_out * sizeof *work);
  }
  return 0;
}

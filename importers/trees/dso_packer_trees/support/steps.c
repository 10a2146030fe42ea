/* Steps on the numbers of a row: scalers, encoders, products and kernels, which steps.py lists.
 *
 * A row is evaluated in a workspace of numbers: the constants, the columns of the row, and the
 * results of steps. Each step reads ranges of it, and writes one. */
#include <math.h>
#include <stdlib.h>

#include "rows.h"

enum op {
  /* Of each column: x, y and z are the operands. */
  ADD,
  SUB,
  MUL,
  DIV,
  POW,
  LEAST,
  GREATEST,
  LESS,
  LESS_EQUAL,
  EQUAL,
  IS_NAN,
  WHERE, /* x != 0 ? y : z */
  ABS,
  SIGN,
  TRUNC,
  SQRT,
  EXP,
  LOG,
  LOG1P,
  TANH,
  LOGISTIC,
  FLOAT32, /* rounded to a float */
  /* Of a row. */
  SOFTMAX,
  NORM_L1, /* the norm, in each column; 1 instead of 0 */
  NORM_L2,
  NORM_MOST,  /* the greatest */
  COUPLE,     /* probabilities of classes, made of pairs */
  COPY,       /* numbers: the indices of columns */
  MATMUL,     /* numbers [num_in, count] */
  DISTANCE,   /* the squares of distances to points; numbers [num_in, count] */
  LOOKUP,     /* numbers for each column: count, default, keys in order, values */
  LOOKUP_ALL, /* an unknown key is an error */
  NUM_OPS
};

struct step {
  uint32_t op, count, num_in, out, in[3], unused;
  uint64_t numbers; /* the index of the first of the table */
};

struct steps {
  char magic[8];
  uint32_t version, checksum;
  uint32_t is_f64, num_features, num_constants, num_work, num_steps, out, num_out, unused;
  uint64_t num_numbers;
  uint64_t offsets[2]; /* of steps and numbers; the constants are the first numbers */
};

static const struct step *steps_of(const struct steps *s) {
  return (const void *)((const char *)s + s->offsets[0]);
}

static const void *numbers_of(const struct steps *s) { return (const char *)s + s->offsets[1]; }

/* ---- Checks, once: evaluation relies on all of them ---- */

static double number_at(const struct steps *s, uint64_t i) {
  const void *numbers = numbers_of(s);
  return s->is_f64 ? ((const double *)numbers)[i] : (double)((const float *)numbers)[i];
}

/* The indices of columns are integers below `num_in`. */
static const char *check_copy(const struct steps *s, const struct step *step) {
  for (uint32_t k = 0; k < step->count; k++) {
    const double index = number_at(s, step->numbers + k);
    if (!(index >= 0 && index < step->num_in)) return "index of a column";
  }
  return NULL;
}

/* Each column has a table of keys inside the numbers. */
static const char *check_lookup(const struct steps *s, const struct step *step) {
  uint64_t at = step->numbers;
  for (uint32_t k = 0; k < step->count; k++) {
    if (s->num_numbers - at < 2) return "table of keys";
    const double keys = number_at(s, at);
    at += 2;
    if (!(keys >= 1 && keys <= (double)((s->num_numbers - at) / 2))) return "number of keys";
    at += 2 * (uint64_t)keys;
  }
  return NULL;
}

static const char *check_step(const struct steps *s, const struct step *step) {
  const uint64_t work = s->num_work, count = step->count, num_in = step->num_in;
  const int is_product = step->op == MATMUL || step->op == DISTANCE;
  if (step->op >= NUM_OPS || !count || count > work || num_in > work) return "step";
  if (step->out < s->num_constants || step->out > work - count) return "result of a step";
  const uint64_t most = num_in > count ? num_in : count;
  for (int i = 0; i < 3; i++)
    if (step->in[i] > work - most) return "operand of a step";
  const uint64_t pairs = count * (count - 1) / 2;
  if (step->op == COUPLE && (count < 2 || num_in != pairs)) return "pairs of classes";
  const uint64_t numbers = is_product ? num_in * count : step->op == COPY ? count : 0;
  if (step->numbers > s->num_numbers || numbers > s->num_numbers - step->numbers)
    return "numbers of a step";
  if (step->op == COPY) return check_copy(s, step);
  return step->op == LOOKUP || step->op == LOOKUP_ALL ? check_lookup(s, step) : NULL;
}

#define MOST_WORK (1 << 24) /* a float counts them */

static const char *check_steps(const void *data, uint64_t nbytes) {
  const struct steps *s = data;
  if (memcmp(s->magic, "dsosteps", 8) != 0) return "magic";
  if (s->version != 1) return "version";
  if (s->is_f64 > 1) return "data type";
  if (!s->num_features || s->num_work > MOST_WORK || s->num_constants > s->num_work)
    return "counts";
  if (s->num_features > s->num_work - s->num_constants) return "number of features";
  if (!s->num_out || s->num_out > s->num_work || s->out > s->num_work - s->num_out) return "result";
  const uint64_t sizes[2] = {sizeof(struct step), s->is_f64 ? 8 : 4};
  const uint64_t counts[2] = {s->num_steps, s->num_numbers};
  for (int i = 0; i < 2; i++)
    if (s->offsets[i] % 64 || s->offsets[i] > nbytes ||
        counts[i] > (nbytes - s->offsets[i]) / sizes[i])
      return "offset of a table";
  if (s->num_constants > s->num_numbers) return "constants";
  const char *wrong = NULL;
  for (uint32_t i = 0; i < s->num_steps && !wrong; i++) wrong = check_step(s, &steps_of(s)[i]);
  return wrong;
}

/* ---- Steps ---- */

#define NUMBER float
#define NAME(x) x##_f32
#define OF(x) x##f
#include "step.h"
#undef NUMBER
#undef NAME
#undef OF

#define NUMBER double
#define NAME(x) x##_f64
#define OF(x) x
#include "step.h"
#undef NUMBER
#undef NAME
#undef OF

/* ---- The function of the library ---- */

#define ROWS_OF_ITEM 64

struct job {
  const struct steps *steps;
  const struct rows *rows;
  void *result;
  _Atomic int is_wrong; /* 1: an unknown category, 2: no memory */
};

static void run_rows(const void *data, int64_t index) {
  struct job *job = (struct job *)(uintptr_t)data;
  const struct steps *s = job->steps;
  double near[1024];
  const size_t nbytes = s->num_work * (size_t)(s->is_f64 ? 8 : 4);
  void *work = nbytes <= sizeof near ? near : malloc(nbytes);
  const int64_t first = index * ROWS_OF_ITEM, left = job->rows->count - first;
  const int64_t count = left < ROWS_OF_ITEM ? left : ROWS_OF_ITEM;
  int wrong = work ? 0 : 2;
  if (work && s->is_f64) wrong = run_f64(s, job->rows, first, count, work, job->result);
  else if (work) wrong = run_f32(s, job->rows, first, count, work, job->result);
  if (wrong) atomic_store(&job->is_wrong, wrong);
  if (work != near) free(work);
}

dso_status trees_transform(const DLTensor *steps, const DLTensor *x, DLTensor *y) {
  const struct steps *s = checked_weight(steps, "steps: ", sizeof *s, check_steps);
  struct rows rows;
  if (!s || rows_of(x, s->num_features, &rows)) return -1;
  if (check_result(y, &rows, s->num_out, 2, s->is_f64 ? 64 : 32)) return -1;
  struct job job = {s, &rows, (char *)y->data + y->byte_offset, 0};
  const int64_t items = (rows.count + ROWS_OF_ITEM - 1) / ROWS_OF_ITEM;
  const int64_t work = rows.count * (int64_t)(s->num_numbers + s->num_work);
  if (dso_op_parallel(run_rows, &job, items, work)) return -1;
  if (job.is_wrong == 2) return dso_raise("MemoryError", "rows: no memory for the steps");
  if (job.is_wrong)
    return dso_raise("ValueError", "rows: a category, expected one that the encoder knows; fit it "
                                   "with handle_unknown, or change the row");
  return 0;
}

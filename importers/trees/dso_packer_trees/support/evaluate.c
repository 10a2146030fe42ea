/* The functions of a forest: scores and leaves of rows.
 *
 * Rows are taken in tiles. Each tile is first prepared: its used columns become slots, where a
 * missing value, a zero or a category is a number that every test sends the right way. Then each
 * tree takes all rows of the tile; one row takes several trees at once. Values are added in the
 * order of the trees, as the libraries add them. One file has all of it, so that each CPU level
 * compiles the loops with their callers. */
#include <math.h>

#include "forest.h"
#include "rows.h"

#define LANES 8
#define STEPS 4
#define MOST_TILE 64
#define TILE_NBYTES 65536

#define NUMBER float
#define NODE struct node_f32
#define NAME(x) x##_f32
#include "walk.h"
#undef NUMBER
#undef NODE
#define SUM float
#define OF(x) x##f
#include "link.h"
#undef SUM
#undef OF
#undef NAME

#define NUMBER double
#define NODE struct node_f64
#define NAME(x) x##_f64
#include "walk.h"
#undef NUMBER
#undef NODE
#define SUM double
#define OF(x) x
#include "link.h"
#undef SUM
#undef OF
#undef NAME

#include "bins.h"

/* ---- Tiles ---- */

/* A few rows are evaluated one by one: bins of fewer than this cost more together. */
#define FEW_ROWS 4
#define FEW_BINS (VECTOR == 64 ? 12 : 7)

static int is_few(const struct forest *f, int64_t rows) {
  return rows <= (f->layout == BINS ? FEW_BINS : FEW_ROWS);
}

/* Return the bytes of a row of slots. */
static size_t row_nbytes(const struct forest *f) {
  const size_t number = f->layout == BINS ? 1 : f->is_row_f64 ? 8 : 4;
  return ((size_t)f->num_slots + 1) * number;
}

static void prepare(const struct forest *f, const struct rows *rows, int64_t first, int64_t count,
                    void *slots) {
  if (f->layout == BINS && is_few(f, count)) {
    for (int64_t r = 0; r < count; r++) {
      uint8_t *to = (uint8_t *)slots + (size_t)r * row_nbytes(f);
      if (f->is_row_f64) prepare_row_f64(f, rows, first + r, to);
      else prepare_row_f32(f, rows, first + r, to);
    }
  } else if (f->layout == BINS) {
    if (f->is_row_f64) prepare_bins_f64(f, rows, first, count, slots);
    else prepare_bins_f32(f, rows, first, count, slots);
  } else if (f->is_row_f64) {
    prepare_f64(f, rows, first, count, slots);
  } else {
    prepare_f32(f, rows, first, count, slots);
  }
}

/* Write the leaves of a tile in one tree. */
static void walk_tile(const struct forest *f, const struct tree *tree, const void *slots,
                      int64_t rows, uint32_t *leaves) {
  const int has_categories = f->num_columns > f->kind_ends[LAST_NUMBER];
  if (f->layout == BINS) {
    divide_tile(f, tree, slots, rows, leaves);
  } else if (!f->is_row_f64) {
    if (has_categories) walk_tree_f32(f, tree, slots, rows, leaves, 1);
    else walk_tree_f32(f, tree, slots, rows, leaves, 0);
  } else {
    if (has_categories) walk_tree_f64(f, tree, slots, rows, leaves, 1);
    else walk_tree_f64(f, tree, slots, rows, leaves, 0);
  }
}

/* Write the leaves of one row in at most LANES trees. */
static void walk_row(const struct forest *f, const struct tree *trees, uint32_t count,
                     const void *slots, uint32_t *leaves) {
  const int has_categories = f->num_columns > f->kind_ends[LAST_NUMBER];
  if (f->layout == BINS) {
    walk_bins(f, trees, count, slots, leaves);
  } else if (!f->is_row_f64) {
    if (has_categories) walk_row_f32(f, trees, count, slots, leaves, 1);
    else walk_row_f32(f, trees, count, slots, leaves, 0);
  } else {
    if (has_categories) walk_row_f64(f, trees, count, slots, leaves, 1);
    else walk_row_f64(f, trees, count, slots, leaves, 0);
  }
}

/* Gets the leaves of `rows` rows in `trees` trees: of row r and tree t at [t * MOST_TILE + r]. */
typedef void take_leaves(const struct forest *f, uint32_t first_tree, uint32_t trees, int64_t rows,
                         const uint32_t *leaves, void *tile);

static void evaluate_tile(const struct forest *f, const void *slots, int64_t rows,
                          take_leaves *take, void *tile) {
  const struct tree *trees = table_of(f, TREES);
  uint32_t leaves[LANES * MOST_TILE], found[LANES];
  for (uint32_t t = 0; t < f->num_trees; t += LANES) {
    const uint32_t count = f->num_trees - t < LANES ? f->num_trees - t : LANES;
    if (is_few(f, rows)) {
      for (int64_t r = 0; r < rows; r++) {
        walk_row(f, &trees[t], count, (const char *)slots + (size_t)r * row_nbytes(f), found);
        for (uint32_t k = 0; k < count; k++) leaves[k * MOST_TILE + r] = found[k];
      }
    } else {
      for (uint32_t k = 0; k < count; k++)
        walk_tile(f, &trees[t + k], slots, rows, leaves + k * MOST_TILE);
    }
    take(f, t, count, rows, leaves, tile);
  }
}

/* ---- Scores ---- */

static void add_leaves(const struct forest *f, uint32_t first_tree, uint32_t trees, int64_t rows,
                       const uint32_t *leaves, void *sums) {
  const struct tree *tree = (const struct tree *)table_of(f, TREES) + first_tree;
  if (f->num_sums == 1) {
    if (f->is_value_f64) add_group_f64(f, trees, leaves, rows, sums);
    else add_group_f32(f, trees, leaves, rows, sums);
    return;
  }
  for (uint32_t k = 0; k < trees; k++, leaves += MOST_TILE) {
    if (f->is_value_f64) add_f64(f, &tree[k], leaves, rows, sums);
    else add_f32(f, &tree[k], leaves, rows, sums);
  }
}

/* ---- Linear leaves ---- */

struct linear_tile {
  double *sums;
  const struct rows *rows;
  int64_t first; /* row */
};

static double value_of(const struct forest *f, uint32_t leaf, const struct rows *rows,
                       int64_t row) {
  const struct function function = ((const struct function *)table_of(f, FUNCTIONS))[leaf];
  const struct term *terms = (const struct term *)table_of(f, TERMS) + function.first;
  double value = function.constant;
  for (uint32_t k = 0; k < function.count; k++) {
    const int64_t at = row * rows->stride + terms[k].column;
    const double x =
        rows->is_f64 ? ((const double *)rows->data)[at] : (double)((const float *)rows->data)[at];
    if (x != x) return ((const double *)table_of(f, VALUES))[leaf];
    value += terms[k].coefficient * x;
  }
  return value;
}

static void add_linear(const struct forest *f, uint32_t first_tree, uint32_t trees, int64_t rows,
                       const uint32_t *leaves, void *tile) {
  const struct linear_tile *to = tile;
  const struct tree *tree = (const struct tree *)table_of(f, TREES) + first_tree;
  for (uint32_t k = 0; k < trees; k++)
    for (int64_t r = 0; r < rows; r++)
      to->sums[(size_t)r * f->num_sums + tree[k].target] +=
          value_of(f, leaves[k * MOST_TILE + r], to->rows, to->first + r);
}

static void write_leaves(const struct forest *f, uint32_t first_tree, uint32_t trees, int64_t rows,
                         const uint32_t *leaves, void *to) {
  const int32_t *ids = table_of(f, LEAF_IDS);
  for (int64_t r = 0; r < rows; r++)
    for (uint32_t k = 0; k < trees; k++)
      ((int32_t *)to)[(size_t)r * f->num_trees + first_tree + k] = ids[leaves[k * MOST_TILE + r]];
}

static void score_tile(const struct forest *f, const void *slots, const struct rows *from,
                       int64_t first, int64_t rows, void *sums, void *scores) {
  const size_t number = f->is_value_f64 ? 8 : 4, nbytes = f->num_sums * number;
  if (f->is_base_last) memset(sums, 0, (size_t)rows * nbytes);
  for (int64_t r = 0; r < rows && !f->is_base_last; r++)
    memcpy((char *)sums + (size_t)r * nbytes, table_of(f, BASE), nbytes);
  struct linear_tile linear = {sums, from, first};
  if (f->is_linear) evaluate_tile(f, slots, rows, add_linear, &linear);
  else evaluate_tile(f, slots, rows, add_leaves, sums);
  for (int64_t r = 0; r < rows; r++) {
    void *one = (char *)sums + (size_t)r * nbytes;
    void *to = (char *)scores + (size_t)r * f->num_scores * number;
    if (f->is_value_f64) link_f64(f, one, to);
    else link_f32(f, one, to);
  }
}

/* ---- Tiles on the threads of the loader ---- */

struct job {
  const struct forest *forest;
  const struct rows *rows;
  char *result;
  int is_leaves;
  int64_t tile;         /* rows */
  _Atomic int is_short; /* of memory */
};

static void evaluate_rows(const struct job *job, int64_t first, int64_t count, void *slots,
                          void *sums) {
  const struct forest *f = job->forest;
  const size_t value = f->is_value_f64 ? 8 : 4;
  prepare(f, job->rows, first, count, slots);
  if (job->is_leaves)
    evaluate_tile(f, slots, count, write_leaves, job->result + (size_t)first * f->num_trees * 4);
  else
    score_tile(f, slots, job->rows, first, count, sums,
               job->result + (size_t)first * f->num_scores * value);
}

static void run_tile(const void *data, int64_t index) {
  struct job *job = (struct job *)(uintptr_t)data;
  const struct forest *f = job->forest;
  const int64_t first = index * job->tile, left = job->rows->count - first;
  _Alignas(64) char near_slots[TILE_NBYTES];
  double near_sums[512];
  const int is_by_row = f->layout != BINS || is_few(f, job->tile);
  const size_t slots_nbytes = (size_t)(is_by_row ? job->tile : MOST_TILE) * row_nbytes(f);
  const size_t sums_nbytes =
      job->is_leaves ? 0 : (size_t)job->tile * f->num_sums * (f->is_value_f64 ? 8 : 4);
  char *slots = slots_nbytes <= sizeof near_slots
                    ? near_slots
                    : aligned_alloc(64, (slots_nbytes + 63) / 64 * 64);
  void *sums = sums_nbytes <= sizeof near_sums ? near_sums : malloc(sums_nbytes);
  if (!slots || !sums) atomic_store(&job->is_short, 1);
  else evaluate_rows(job, first, left < job->tile ? left : job->tile, slots, sums);
  if (slots != near_slots) free(slots);
  if (sums != near_sums) free(sums);
}

static int evaluate(const struct forest *f, const struct rows *rows, char *result, int is_leaves) {
  int64_t most = (int64_t)(TILE_NBYTES / row_nbytes(f));
  most = f->layout == BINS || most > MOST_TILE ? MOST_TILE : most < LANES ? LANES : most;
  if (most > rows->count) most = rows->count;
  if (most < 1) return 0;
  struct job job = {f, rows, result, is_leaves, most, 0};
  /* A step of a tree is worth two multiplications. */
  const int64_t work = 2 * rows->count * (int64_t)f->num_trees;
  if (dso_op_parallel(run_tile, &job, (rows->count + most - 1) / most, work)) return -1;
  return job.is_short ? dso_raise("MemoryError", "rows: no memory for a tile") : 0;
}

/* ---- Functions of the library ---- */

int64_t trees_is_batch(const DLTensor *x) { return x->ndim != 1; }

dso_status trees_predict(const DLTensor *forest, const DLTensor *x, DLTensor *y) {
  const struct forest *f = forest_of(forest);
  struct rows rows;
  if (!f || rows_of(x, f->num_features, &rows)) return -1;
  if (check_result(y, &rows, f->num_scores, 2, f->is_value_f64 ? 64 : 32)) return -1;
  return evaluate(f, &rows, (char *)y->data + y->byte_offset, 0);
}

dso_status trees_leaves(const DLTensor *forest, const DLTensor *x, DLTensor *y) {
  const struct forest *f = forest_of(forest);
  struct rows rows;
  if (!f || rows_of(x, f->num_features, &rows)) return -1;
  if (check_result(y, &rows, f->num_trees, 0, 32)) return -1;
  return evaluate(f, &rows, (char *)y->data + y->byte_offset, 1);
}

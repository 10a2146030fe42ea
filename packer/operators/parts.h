/* The parts that operators are made of: a tile of sums, its storing, and loops on threads. */
#ifndef DSO_OPERATORS_PARTS_H
#define DSO_OPERATORS_PARTS_H

#include <stddef.h>

#include "dso_operators.h"
#include "vector.h"

/* Quotients of numbers that are not negative. */
INLINE int64_t ceil_div(int64_t count, int64_t size) { return (count + size - 1) / size; }
INLINE int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
INLINE int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }

/* The first element of a part when `count` elements are divided into equal parts: parts differ by
 * one element at most. */
INLINE int64_t part_begin(int64_t count, int64_t parts, int64_t part) {
  return part * (count / parts) + min(part, count % parts);
}

/* The distance of a product of a batch of two dimensions from the first. */
INLINE int64_t offset(const int64_t *batches, const int64_t *distance, int64_t batch) {
  return batch / batches[1] * distance[0] + batch % batches[1] * distance[1];
}

/* An element of packed weights: floats, or halves. */
INLINE const void *element(const void *first, enum dso_op_type type, int64_t index) {
  return (const char *)first + index * (type == DSO_OP_FLOAT32 ? 4 : 2);
}

/* ---- tile.c: sums over all inputs, for some pixels and one panel of outputs ---- */

/* The inputs of a sum, in the order of the weights: for each block of input channels, for each tap
 * of the window, for each channel of the block. A matrix is an image of one tap whose pixels are
 * rows. Distances in floats. */
struct tile {
  int64_t step, below;     /* to the next pixel in a row, and to the next row of pixels */
  int64_t blocks;          /* of input channels */
  int64_t block, last;     /* channels in a block, and in the last one */
  int64_t taps[3], tap[3]; /* the window, and its distances: z, y, x */
  int64_t skipped[2];      /* taps of the weight before and after the window */
  const void *weight;      /* of the first output */
  enum dso_op_type type;   /* of the weight: float, or with a weight_step of PANEL a half */
  int64_t weight_step;     /* from input to input */
  int is_more;             /* set by dso_op_tiles: add to the sums */
  /* Weights are read in order, panel after panel: each position prefetches a share of the next
   * ones, from `next` and `next_step` floats for each input. */
  const float *next;
  int64_t next_step;
  const struct ending *ending; /* set by dso_op_tiles: how the sums are stored, or NULL */
};

/* The pixels of one tile: one row of at most PIXELS, or two rows of at most PIXELS / 2. */
struct position {
  const float *data; /* of the first pixel */
  const float *next; /* set by dso_op_tiles: of the next position */
  int64_t plane;     /* to the next block of input channels */
  int64_t at;        /* the distance of its first output from `out` and from the residual */
  int rows, columns;
};

enum { POSITIONS = 8 }; /* computed together, so that weights are read from the nearest cache */

/* Where the outputs of tiles are stored, and what is done first. The outputs of a pixel are in
 * blocks of 16 adjacent floats, or in planes of pixels that are adjacent in a row. */
struct place {
  const struct dso_op_after *after; /* bias is that of output 0 of the whole operator */
  float *out;
  int64_t step, below, plane; /* to the next pixel, row of pixels, and block or plane */
  int64_t first;              /* the number of the panel's first output */
  int is_planar;
  int is_padded; /* write zeros for the outputs that the last block does not have */
};

/* Compute sums[y * columns + x][PANEL] for each of `count` positions, and finish each of them. Without
 * a place, `count` is 1 and `sums` is read by the caller. `sums` is PIXELS * PANEL floats for each
 * position. Of the panel the first `outputs` are computed, possibly more. A sum adds its inputs in
 * their order, with any count. */
DSO_OP_API void dso_op_tiles(const struct tile *tile, const struct position *positions, int count,
                             int64_t outputs, float *sums, const struct place *place);

/* ---- finish.c: bias, residual, activation and store of a tile ---- */

DSO_OP_API void dso_op_finish(const struct place *place, const struct position *position,
                              int64_t outputs, float *sums);

/* ---- attention_row.c ---- */

/* dso_op_attention of one row; it needs no workspace. */
DSO_OP_API int dso_op_attention_row(const struct dso_op_attention *attention);

/* ---- pack.c ---- */

/* Copy a matrix into panels: packed[columns / PANEL, rounded up][rows][PANEL], one panel of them. */
DSO_OP_API void dso_op_pack_panel(const float *from, int64_t row, int64_t column, int64_t rows,
                                  int64_t columns, float *packed);

/* Copy rows of a matrix into blocks: packed[inner / BLOCK, rounded up][rows][BLOCK], multiplied by
 * `scale`. `plane` is the distance of blocks in `packed`. */
DSO_OP_API void dso_op_pack_rows(const float *from, int64_t row, int64_t column, int64_t rows,
                                 int64_t inner, float scale, float *packed, int64_t plane);

#endif

/* Convolution and matrix product of packer.operators for the tensors of TVM's relax.
 *
 * Tensors are compact and images planar (NCHW). Weights are packed (docs/operators.md). */
#include <stdlib.h>

#include "dso_operators.h"
#include "dso_packer.h"

static float *workspace(int64_t floats) {
  return floats ? aligned_alloc(64, ((size_t)floats * sizeof(float) + 63) / 64 * 64) : NULL;
}

static struct dso_op_image planar(const DLTensor *x) {
  const int64_t row = x->shape[3], plane = x->shape[2] * row;
  return (struct dso_op_image){.data = x->data, .channels = x->shape[1], .height = x->shape[2],
                               .width = row, .block = 1, .batch = x->shape[1] * plane,
                               .plane = plane, .row = row};
}

dso_status conv2d(const DLTensor *x, const float *packed, int64_t kernel_y, int64_t kernel_x,
                  int64_t stride_y, int64_t stride_x, int64_t dilation_y, int64_t dilation_x,
                  int64_t top, int64_t left, int64_t groups, const DLTensor *out) {
  struct dso_op_conv2d conv = {.batch = x->shape[0], .in = planar(x), .out = planar(out),
                               .groups = groups, .kernel = {kernel_y, kernel_x},
                               .stride = {stride_y, stride_x},
                               .dilation = {dilation_y, dilation_x}, .pad = {top, left},
                               .weight = packed};
  conv.workspace = workspace(dso_op_conv2d_workspace(&conv));
  const int status = dso_op_conv2d(&conv);
  free(conv.workspace);
  return status;
}

static int64_t count(const DLTensor *x, int dimensions) {
  int64_t product = 1;
  for (int i = 0; i < dimensions; i++) product *= x->shape[i];
  return product;
}

static dso_status multiply(struct dso_op_matmul product) {
  product.workspace = workspace(dso_op_matmul_workspace(&product));
  const int status = dso_op_matmul(&product);
  free(product.workspace);
  return status;
}

/* (..., inner) times a packed weight. */
dso_status dense(const DLTensor *a, const float *packed, const DLTensor *out) {
  const int last = a->ndim - 1;
  const int64_t inner = a->shape[last], columns = out->shape[last];
  return multiply((struct dso_op_matmul){.rows = count(a, last), .inner = inner,
                                         .columns = columns, .a = a->data, .a_row = inner,
                                         .a_column = 1, .b = packed, .b_is_packed = 1,
                                         .out = out->data, .out_row = columns});
}

/* (..., rows, inner) times (..., inner, columns), with the same extents before them. */
dso_status matmul(const DLTensor *a, const DLTensor *b, const DLTensor *out) {
  const int last = a->ndim - 1;
  const int64_t rows = a->shape[last - 1], inner = a->shape[last], columns = b->shape[last];
  return multiply((struct dso_op_matmul){
      .batch = {1, count(a, last - 1)}, .rows = rows, .inner = inner, .columns = columns,
      .a = a->data, .a_batch = {0, rows * inner}, .a_row = inner, .a_column = 1,
      .b = b->data, .b_batch = {0, inner * columns}, .b_row = columns, .b_column = 1,
      .out = out->data, .out_batch = {0, rows * columns}, .out_row = columns});
}

/* Operators between arrays, for benchmarks/operators.py. */
#include <stddef.h>

#include "dso_operators.h"

/* A load sets this variable, which the operators define. */
typedef int launch(int (*task)(int id, void *group, void *data), void *data, int num_task);
extern launch *__TVMBackendParallelLaunch;

/* Run operators on the loader's threads, or with 0 in the calling thread. */
void use_threads(int64_t is_used) {
  static launch *loaders;
  if (loaders == NULL) loaders = __TVMBackendParallelLaunch;
  __TVMBackendParallelLaunch = is_used ? loaders : NULL;
}

int64_t product_workspace(int64_t rows, int64_t inner, int64_t columns) {
  const struct dso_op_matmul product = {
      .rows = rows, .inner = inner, .columns = columns, .a_column = 1, .b_is_packed = 1};
  return dso_op_matmul_workspace(&product);
}

int product(const float *a, const float *packed, float *out, float *workspace, int64_t rows,
            int64_t inner, int64_t columns) {
  const struct dso_op_matmul product = {.rows = rows, .inner = inner, .columns = columns,
                                        .a = a, .a_row = inner, .a_column = 1,
                                        .b = packed, .b_is_packed = 1,
                                        .out = out, .out_row = columns,
                                        .workspace = workspace};
  return dso_op_matmul(&product);
}

static struct dso_op_image padded(float *data, int64_t channels, int64_t side) {
  const int64_t row = (side + 2) * 16;
  return (struct dso_op_image){.data = data + row + 16, .channels = channels, .height = side,
                                 .width = side, .block = 16, .padding = 1,
                                 .plane = (side + 2) * row, .row = row};
}

/* An even number of equal convolutions, one after the other, between two padded images. */
int convolutions(float *first, float *second, const float *packed, int64_t channels, int64_t side,
                 int64_t window, int64_t groups, int64_t count) {
  struct dso_op_conv2d conv = {.batch = 1, .groups = groups,
                               .in = padded(first, channels, side),
                               .out = padded(second, channels, side),
                               .kernel = {window, window}, .stride = {1, 1}, .dilation = {1, 1},
                               .pad = {window / 2, window / 2}, .weight = packed};
  for (int64_t i = 0; i < count; i++) {
    if (dso_op_conv2d(&conv)) return -1;
    const struct dso_op_image in = conv.in;
    conv.in = conv.out, conv.out = in;
  }
  return 0;
}

int64_t attention_workspace(int64_t heads, int64_t rows, int64_t size) {
  const struct dso_op_attention attention = {
      .batch = 1, .heads = heads, .rows = rows, .keys = rows, .size = size};
  return dso_op_attention_workspace(&attention);
}

int attention(const float *q, const float *k, const float *v, float *out, float *workspace,
              int64_t heads, int64_t rows, int64_t size) {
  const int64_t head = rows * size;
  const struct dso_op_attention attention = {
      .batch = 1, .heads = heads, .rows = rows, .keys = rows, .size = size,
      .q = q, .k = k, .v = v, .q_head = head, .q_row = size, .k_head = head, .k_row = size,
      .v_head = head, .v_row = size, .out = out, .out_head = head, .out_row = size,
      .workspace = workspace};
  return dso_op_attention(&attention);
}

/* Products and convolutions of uint8 by int8, with results of uint8. */
static const uint8_t zero = 128;
static const float scale = 0x1p-12f;

int64_t integers(const uint8_t *a, const int8_t *packed, uint8_t *out, uint8_t *workspace,
                 int64_t rows, int64_t inner, int64_t columns) {
  const struct dso_op_lowp_matmul product = {
      .rows = rows, .inner = inner, .columns = columns,
      .a_type = DSO_OP_UINT8, .b_type = DSO_OP_INT8, .out_type = DSO_OP_UINT8,
      .a = a, .a_row = inner, .a_column = 1, .a_zero = &zero, .b = packed, .b_is_packed = 1,
      .out = out, .out_row = columns, .after = {.scale = &scale, .zero = &zero},
      .workspace = workspace};
  return workspace ? dso_op_lowp_matmul(&product) : dso_op_lowp_matmul_workspace(&product);
}

/* `count` equal convolutions, one after the other, between two images in blocks. */
int64_t integer_convolutions(uint8_t *first, uint8_t *second, const int8_t *packed,
                             uint8_t *workspace, int64_t channels, int64_t side, int64_t window,
                             int64_t groups, int64_t count) {
  struct dso_op_lowp_conv2d conv = {
      .batch = 1, .in = {first, channels, side, side, 32}, .out = {second, channels, side, side, 32},
      .in_type = DSO_OP_UINT8, .weight_type = DSO_OP_INT8, .out_type = DSO_OP_UINT8,
      .groups = groups, .kernel = {window, window}, .stride = {1, 1}, .dilation = {1, 1},
      .pad = {window / 2, window / 2}, .weight = packed, .a_zero = &zero,
      .after = {.scale = &scale, .zero = &zero}, .workspace = workspace};
  if (workspace == NULL) return dso_op_lowp_conv2d_workspace(&conv);
  for (int64_t i = 0; i < count; i++) {
    conv.in.data = i % 2 ? second : first;
    conv.out.data = i % 2 ? first : second;
    if (dso_op_lowp_conv2d(&conv)) return -1;
  }
  return 0;
}

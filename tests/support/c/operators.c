/* Operators beside plain loops in double precision; prints the greatest error of each. For machines
 * that are emulated, where there is no NumPy. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "dso_operators.h"

static float *floats(int64_t count) {
  float *made = malloc((size_t)(count + 1) * sizeof *made);
  for (int64_t i = 0; i < count; i++) made[i] = (float)rand() / (float)RAND_MAX - 0.5f;
  return made;
}

/* The greater error; NaN is the greatest. */
static double worse(double a, double b) { return isnan(a) || a >= b ? a : b; }

static double gelu(double x) { return x / 2 * (1 + erf(x / sqrt(2))); }

static double product(int rows, int inner, int columns) {
  float *a = floats(rows * inner), *b = floats(inner * columns), *bias = floats(columns);
  float *out = floats(rows * columns);
  struct dso_op_matmul p = {.rows = rows, .inner = inner, .columns = columns,
                            .a = a, .a_row = inner, .a_column = 1,
                            .b = b, .b_row = columns, .b_column = 1,
                            .out = out, .out_row = columns,
                            .after = {.bias = bias, .activation = DSO_OP_GELU}};
  p.workspace = floats(dso_op_matmul_workspace(&p));
  double worst = dso_op_matmul(&p) ? NAN : 0;
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns; j++) {
      double sum = bias[j];
      for (int k = 0; k < inner; k++) sum += (double)a[i * inner + k] * b[k * columns + j];
      worst = worse(worst, fabs(gelu(sum) - out[i * columns + j]));
    }
  free(a), free(b), free(bias), free(out), free(p.workspace);
  return worst;
}

/* A planar image, 3 x 3, with a pad of 1. */
static double convolution(int channels, int outputs, int side) {
  const int plane = side * side;
  float *in = floats(channels * plane), *weight = floats(outputs * channels * 9);
  float *out = floats(outputs * plane);
  struct dso_op_image from = {in, channels, side, side, 1, 0, 0, plane, side};
  struct dso_op_image to = {out, outputs, side, side, 1, 0, 0, plane, side};
  struct dso_op_conv2d c = {.batch = 1, .in = from, .out = to, .kernel = {3, 3},
                            .stride = {1, 1}, .dilation = {1, 1}, .pad = {1, 1}};
  float *packed = floats(dso_op_conv2d_packed_size(&c));
  dso_op_conv2d_pack(&c, weight, packed);
  c.weight = packed;
  c.workspace = floats(dso_op_conv2d_workspace(&c));
  double worst = dso_op_conv2d(&c) ? NAN : 0;
  for (int i = 0; i < outputs * plane; i++) {
    const int o = i / plane, y = i / side % side, x = i % side;
    double sum = 0;
    for (int k = 0; k < channels * 9; k++) {
      const int row = y + k / 3 % 3 - 1, column = x + k % 3 - 1;
      if (row >= 0 && row < side && column >= 0 && column < side)
        sum += (double)in[k / 9 * plane + row * side + column] * weight[o * channels * 9 + k];
    }
    worst = worse(worst, fabs(sum - out[i]));
  }
  free(in), free(weight), free(out), free(packed), free(c.workspace);
  return worst;
}

/* A planar image, 3 x 3 of stride 2, with a pad of 1. */
static double pooling(int channels, int side, int is_average) {
  const int plane = side * side, half = (side + 1) / 2;
  float *in = floats(channels * plane), *out = floats(channels * half * half);
  struct dso_op_image from = {in, channels, side, side, 1, 0, 0, plane, side};
  struct dso_op_image to = {out, channels, half, half, 1, 0, 0, half * half, half};
  struct dso_op_pooling p = {.batch = 1, .in = from, .out = to, .kernel = {3, 3}, .stride = {2, 2},
                          .dilation = {1, 1}, .pad = {1, 1}, .is_average = is_average};
  double worst = dso_op_pooling(&p) ? NAN : 0;
  for (int i = 0; i < channels * half * half; i++) {
    const int y = i / half % half * 2 - 1, x = i % half * 2 - 1;
    double sum = 0, most = -INFINITY, count = 0;
    for (int k = 0; k < 9; k++) {
      const int row = y + k / 3, column = x + k % 3;
      if (row < 0 || row >= side || column < 0 || column >= side) continue;
      const double tap = in[i / (half * half) * plane + row * side + column];
      sum += tap, count++, most = fmax(most, tap);
    }
    worst = worse(worst, fabs((is_average ? sum / count : most) - out[i]));
  }
  free(in), free(out);
  return worst;
}

static double normalization(int rows, int size, enum dso_op_normalization kind) {
  float *x = floats(rows * size), *out = floats(rows * size);
  const struct dso_op_normalize n = {.rows = rows, .size = size, .kind = kind, .x = x, .out = out,
                                     .x_row = size, .out_row = size, .epsilon = 1e-5f};
  double worst = dso_op_normalize(&n) ? NAN : 0;
  for (int i = 0; i < rows; i++) {
    double sum = 0, squares = 0, powers = 0;
    for (int j = 0; j < size; j++) sum += x[i * size + j], powers += exp(x[i * size + j]);
    const double mean = kind == DSO_OP_LAYER ? sum / size : 0;
    for (int j = 0; j < size; j++) squares += (x[i * size + j] - mean) * (x[i * size + j] - mean);
    for (int j = 0; j < size; j++) {
      double wanted = (x[i * size + j] - mean) / sqrt(squares / size + 1e-5);
      if (kind == DSO_OP_LOG_SOFTMAX) wanted = x[i * size + j] - log(powers);
      if (kind == DSO_OP_SOFTMAX) wanted = exp(x[i * size + j]) / powers;
      worst = worse(worst, fabs(wanted - out[i * size + j]));
    }
  }
  free(x), free(out);
  return worst;
}

/* Integers of 8 bits with zeros: how many sums differ. */
static double integers(int rows, int inner, int columns) {
  uint8_t *a = malloc((size_t)(rows * inner));
  int8_t *b = malloc((size_t)(inner * columns));
  int32_t *out = malloc((size_t)(rows * columns) * sizeof *out);
  const uint8_t a_zero = 200;
  const int8_t b_zero = -3;
  for (int i = 0; i < rows * inner; i++) a[i] = (uint8_t)rand();
  for (int i = 0; i < inner * columns; i++) b[i] = (int8_t)rand();
  struct dso_op_lowp_matmul p = {.rows = rows, .inner = inner, .columns = columns,
                                   .a_type = DSO_OP_UINT8, .b_type = DSO_OP_INT8,
                                   .out_type = DSO_OP_INT32,
                                   .a = a, .a_row = inner, .a_column = 1, .a_zero = &a_zero,
                                   .b = b, .b_row = columns, .b_column = 1, .b_zero = &b_zero,
                                   .out = out, .out_row = columns};
  p.workspace = floats(dso_op_lowp_matmul_workspace(&p) / 4);
  double wrong = dso_op_lowp_matmul(&p) ? NAN : 0;
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns; j++) {
      int sum = 0;
      for (int k = 0; k < inner; k++)
        sum += (a[i * inner + k] - a_zero) * (b[k * columns + j] - b_zero);
      wrong += sum != out[i * columns + j];
    }
  free(a), free(b), free(out), free(p.workspace);
  return wrong;
}

/* Planar images of integers, 3 x 3, with a pad of 1: how many sums differ. */
static double images(int channels, int outputs, int side, int groups) {
  const int plane = side * side, of_group = channels / groups;
  int8_t *in = malloc((size_t)(channels * plane));
  int8_t *weight = malloc((size_t)(outputs * of_group * 9));
  int32_t *out = malloc((size_t)(outputs * plane) * sizeof *out);
  const int8_t zero = -20;
  for (int i = 0; i < channels * plane; i++) in[i] = (int8_t)rand();
  for (int i = 0; i < outputs * of_group * 9; i++) weight[i] = (int8_t)rand();
  struct dso_op_lowp_conv2d c = {
      .batch = 1, .in = {in, channels, side, side, 1}, .out = {out, outputs, side, side, 1},
      .in_type = DSO_OP_INT8, .weight_type = DSO_OP_INT8, .out_type = DSO_OP_INT32,
      .groups = groups, .kernel = {3, 3}, .stride = {1, 1}, .dilation = {1, 1}, .pad = {1, 1},
      .a_zero = &zero};
  void *packed = floats(dso_op_lowp_conv2d_packed_size(&c) / 4);
  dso_op_lowp_conv2d_pack(&c, weight, packed);
  c.weight = packed;
  c.workspace = floats(dso_op_lowp_conv2d_workspace(&c) / 4);
  double wrong = dso_op_lowp_conv2d(&c) ? NAN : 0;
  for (int i = 0; i < outputs * plane; i++) {
    const int o = i / plane, y = i / side % side, x = i % side;
    const int8_t *from = in + o / (outputs / groups) * of_group * plane;
    int sum = 0;
    for (int k = 0; k < of_group * 9; k++) {
      const int row = y + k / 3 % 3 - 1, column = x + k % 3 - 1;
      if (row >= 0 && row < side && column >= 0 && column < side)
        sum += (from[k / 9 * plane + row * side + column] - zero) * weight[o * of_group * 9 + k];
    }
    wrong += sum != out[i];
  }
  free(in), free(weight), free(out), free(packed), free(c.workspace);
  return wrong;
}

int main(void) {
  double of_product = 0, of_convolution = 0, of_pooling = 0, of_normalization = 0;
  for (int rows = 1; rows < 20; rows += 3)
    for (int inner = 1; inner < 400; inner += 57)
      for (int columns = 1; columns < 70; columns += 17)
        of_product = worse(of_product, product(rows, inner, columns));
  for (int channels = 3; channels < 50; channels += 14)
    for (int outputs = 1; outputs < 70; outputs += 23)
      for (int side = 1; side < 17; side += 4)
        of_convolution = worse(of_convolution, convolution(channels, outputs, side));
  for (int side = 1; side < 40; side += 6)
    for (int is_average = 0; is_average < 2; is_average++)
      of_pooling = worse(of_pooling, pooling(3, side, is_average));
  for (int size = 1; size < 99; size += 7)
    for (int kind = DSO_OP_LAYER; kind <= DSO_OP_LOG_SOFTMAX; kind++)
      of_normalization =
          worse(of_normalization, normalization(5, size, (enum dso_op_normalization)kind));
  double wrong = 0;
  for (int rows = 1; rows < 20; rows += 3)
    for (int inner = 1; inner < 150; inner += 37)
      for (int columns = 1; columns < 70; columns += 17) wrong += integers(rows, inner, columns);
  for (int channels = 4; channels < 50; channels += 16)
    for (int groups = 1; groups <= channels; groups = groups < 4 ? 4 : groups < channels ? channels : channels + 1)
      wrong += images(channels, channels, 9, groups);
  printf("%g %g %g %g %g\n", of_product, of_convolution, of_pooling, of_normalization, wrong);
  return 0;
}

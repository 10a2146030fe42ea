/* The operators of ResNet-18 for one thread, each fused with the operations that follow it.
 *
 * Layouts, all row-major float32:
 *   picture      [1][3][H][W]               the same as in ONNX
 *   framed       [3][H + 6][W + 6][1]       the picture with the zeros that a 7 x 7 window reads
 *   activation   [C/16][H + 2][W + 2][16]   16 adjacent channels, framed for 3 x 3 windows
 *   weight       [O/32][C/B][K][K][B][32]   in the order in which a tile reads them; B as the input
 * Heights are 2 at least, widths a multiple of 7 (tile.h), channels of 32.
 *
 * packer.toml compiles this file once for each level of processors. */
#include <stdint.h>
#include <string.h>

#include "dso_packer.h"
#include "tile.h"

const char *instruction_set(void) {
  return LANES == 16 ? "avx512" : LANES == 8 ? "avx2" : "baseline";
}

static float *floats(const DLTensor *tensor) {
  return (float *)((char *)tensor->data + tensor->byte_offset);
}

/* Operators share storages, so the frame contains values of other operators. */
static void clear_frame(const DLTensor *tensor) {
  const int64_t *shape = tensor->shape, row = shape[2] * CHANNELS, plane = shape[1] * row;
  for (int64_t block = 0; block < shape[0]; block++) {
    float *first = floats(tensor) + block * plane, *last = first + plane - row;
    memset(first, 0, (size_t)row * sizeof *first);
    memset(last, 0, (size_t)row * sizeof *first);
    for (float *line = first + row; line < last; line += row) {
      memset(line, 0, CHANNELS * sizeof *line);
      memset(line + row - CHANNELS, 0, CHANNELS * sizeof *line);
    }
  }
}

static float *inside(const DLTensor *tensor) {
  return floats(tensor) + (tensor->shape[2] + 1) * CHANNELS * FRAME;
}

static void convolve(const DLTensor *data, const DLTensor *weight, const DLTensor *bias,
                     const DLTensor *residual, DLTensor *out, int relu) {
  const int64_t *from = data->shape, *window = weight->shape, *to = out->shape;
  const int64_t frame = from[3] == 1 ? PICTURE_FRAME : FRAME, kernel = window[2];
  struct conv conv = {
      .weight = floats(weight),
      .bias = floats(bias),
      .residual = residual ? inside(residual) : NULL,
      .out = inside(out),
      .inputs = from[0],
      .block = from[3],
      .kernel = kernel,
      .outputs = window[0],
      .height = to[1] - 2 * FRAME,
      .width = to[2] - 2 * FRAME,
      .row = from[2] * from[3],
      .plane = from[1] * from[2] * from[3],
      .out_row = to[2] * CHANNELS,
      .out_plane = to[1] * to[2] * CHANNELS,
      .relu = relu,
  };
  conv.stride = (from[1] - 2 * frame) / conv.height;
  /* A window that is smaller than the frame allows begins nearer to the centre. */
  conv.data = floats(data) + (frame - kernel / 2) * (conv.row + conv.block);
  convolve_tiles(&conv);
  clear_frame(out);
}

void conv(DLTensor *data, DLTensor *weight, DLTensor *bias, DLTensor *out) {
  convolve(data, weight, bias, NULL, out, 0);
}

void conv_relu(DLTensor *data, DLTensor *weight, DLTensor *bias, DLTensor *out) {
  convolve(data, weight, bias, NULL, out, 1);
}

void conv_add_relu(DLTensor *data, DLTensor *weight, DLTensor *bias, DLTensor *residual,
                   DLTensor *out) {
  convolve(data, weight, bias, residual, out, 1);
}

/* From bytes to the input of ImageNet's networks: from each colour its mean is subtracted, and the
 * result is divided by its standard deviation. */
void normalize(const uint8_t *rgb, float *picture, int64_t pixels) {
  static const float mean[] = {0.485f, 0.456f, 0.406f}, deviation[] = {0.229f, 0.224f, 0.225f};
  for (int colour = 0; colour < 3; colour++)
    for (int64_t i = 0; i < pixels; i++)
      *picture++ = (rgb[3 * i + colour] / 255.0f - mean[colour]) / deviation[colour];
}

void frame_picture(DLTensor *picture, DLTensor *framed) {
  const int64_t *shape = picture->shape, width = shape[3] + 2 * PICTURE_FRAME;
  const int64_t plane = width * framed->shape[1];
  const float *from = floats(picture);
  memset(floats(framed), 0, (size_t)(shape[1] * plane) * sizeof *from);
  for (int64_t colour = 0; colour < shape[1]; colour++) {
    float *to = floats(framed) + colour * plane + PICTURE_FRAME * (width + 1);
    for (int64_t y = 0; y < shape[2]; y++, from += shape[3], to += width)
      memcpy(to, from, (size_t)shape[3] * sizeof *from);
  }
}

static void take_greater(float *restrict most, const float *restrict values) {
  for (int i = 0; i < CHANNELS; i++) most[i] = values[i] > most[i] ? values[i] : most[i];
}

/* 3 x 3, stride 2. Results of ReLU are not below the frame's zeros. */
void max_pool(DLTensor *data, DLTensor *out) {
  const int64_t *from = data->shape, *to = out->shape, row = from[2] * CHANNELS;
  for (int64_t block = 0; block < to[0]; block++)
    for (int64_t y = 0; y < to[1] - 2 * FRAME; y++) {
      const float *window = floats(data) + (block * from[1] + 2 * y) * row;
      float *pixel = inside(out) + (block * to[1] + y) * to[2] * CHANNELS;
      for (int64_t x = 0; x < to[2] - 2 * FRAME; x++, window += 2 * CHANNELS, pixel += CHANNELS) {
        float most[CHANNELS] = {0};
        for (int64_t i = 0; i < 9; i++) take_greater(most, window + i / 3 * row + i % 3 * CHANNELS);
        memcpy(pixel, most, sizeof most);
      }
    }
  clear_frame(out);
}

void average_pool(DLTensor *data, DLTensor *out) {
  const int64_t *shape = data->shape, pixels = shape[1] * shape[2];
  const int64_t inner = (shape[1] - 2 * FRAME) * (shape[2] - 2 * FRAME);
  for (int64_t block = 0; block < shape[0]; block++) {
    const float *pixel = floats(data) + block * pixels * CHANNELS;
    float sum[CHANNELS] = {0};
    for (int64_t i = 0; i < pixels; i++, pixel += CHANNELS) /* the frame adds zeros */
      for (int c = 0; c < CHANNELS; c++) sum[c] += pixel[c];
    for (int c = 0; c < CHANNELS; c++) floats(out)[block * CHANNELS + c] = sum[c] / (float)inner;
  }
}

/* weight is [inputs][outputs], so that one loop adds to the sums of all outputs. */
void dense(DLTensor *data, DLTensor *weight, DLTensor *bias, DLTensor *out) {
  const int64_t inputs = weight->shape[0], outputs = weight->shape[1];
  const float *value = floats(data), *row = floats(weight);
  float *restrict sum = floats(out);
  memcpy(sum, floats(bias), (size_t)outputs * sizeof *sum);
  for (int64_t i = 0; i < inputs; i += 4, value += 4, row += 4 * outputs)
    for (int64_t o = 0; o < outputs; o++)
      sum[o] += value[0] * row[o] + value[1] * row[o + outputs] + value[2] * row[o + 2 * outputs] +
                value[3] * row[o + 3 * outputs];
}

/* The operators of ResNet-18 for OpenCL; layouts as in kernels.c, pixels of 16 channels as float16.
 *
 * A work-item of `conv` computes 7 pixels in a row, of 16 output channels: a weight vector is read
 * once for 7 pixels. Kernels that write an activation also write its frame of zeros. */

#define COLUMNS 7
#define FRAME 1
#define PICTURE_FRAME 3

/* Return true if a pixel belongs to the frame of an image with these sides. */
int is_frame(int x, int y, int width, int height) {
  return x < FRAME || y < FRAME || x >= width - FRAME || y >= height - FRAME;
}

/* Groups: output channels / 16, width / 7, height. `first` is the offset of the first window. */
__kernel void conv_cl(__global const float *restrict data, __global const float16 *restrict weight,
                      __global const float16 *restrict bias,
                      __global const float16 *restrict residual, __global float16 *restrict out,
                      int inputs, int block, int window, int stride, int row, int plane, int first,
                      int relu) {
  const int channel = get_group_id(0), x = COLUMNS * get_group_id(1), y = get_group_id(2);
  const int step = stride * block, taps = inputs * window * window * block;
  __global const float *corner = data + first + y * stride * row + x * step;
  __global const float16 *next = weight + channel / 2 * 2 * taps + channel % 2;
  float16 sums[COLUMNS];
  for (int i = 0; i < COLUMNS; i++) sums[i] = bias[channel];
  for (int b = 0; b < inputs; b++)
    for (int ky = 0; ky < window; ky++)
      for (int kx = 0; kx < window; kx++) {
        __global const float *pixel = corner + b * plane + ky * row + kx * block;
        for (int c = 0; c < block; c++, next += 2)
          for (int i = 0; i < COLUMNS; i++)
            sums[i] = fma(*next, (float16)(pixel[i * step + c]), sums[i]);
      }

  const int width = COLUMNS * get_num_groups(1) + 2 * FRAME, height = get_num_groups(2) + 2 * FRAME;
  const int at = (channel * height + y + FRAME) * width + x + FRAME;
  for (int i = 0; i < COLUMNS; i++) {
    const float16 sum = residual ? sums[i] + residual[at + i] : sums[i];
    out[at + i] = relu ? fmax(sum, 0.0f) : sum;
  }
}

/* Groups: width, height and blocks of the framed image; writes zeros into the frame. */
__kernel void clear_frame_cl(__global float16 *out) {
  const int x = get_group_id(0), y = get_group_id(1);
  const int width = get_num_groups(0), height = get_num_groups(1);
  if (is_frame(x, y, width, height)) out[(get_group_id(2) * height + y) * width + x] = 0.0f;
}

/* Groups: width, height and colours of the picture with its frame. */
__kernel void frame_picture_cl(__global const float *picture, __global float *framed) {
  const int x = get_group_id(0), y = get_group_id(1), colour = get_group_id(2);
  const int width = get_num_groups(0), height = get_num_groups(1);
  const int from_x = x - PICTURE_FRAME, from_y = y - PICTURE_FRAME;
  const int from_width = width - 2 * PICTURE_FRAME, from_height = height - 2 * PICTURE_FRAME;
  const int inside = from_x >= 0 && from_y >= 0 && from_x < from_width && from_y < from_height;
  framed[(colour * height + y) * width + x] =
      inside ? picture[(colour * from_height + from_y) * from_width + from_x] : 0.0f;
}

/* 3 x 3, stride 2. Groups: width, height and blocks of the result with its frame. */
__kernel void max_pool_cl(__global const float16 *data, __global float16 *out, int from_width,
                          int from_height) {
  const int x = get_group_id(0), y = get_group_id(1), block = get_group_id(2);
  const int width = get_num_groups(0), height = get_num_groups(1);
  float16 most = 0.0f; /* results of ReLU are not less */
  if (!is_frame(x, y, width, height))
    for (int i = 0; i < 9; i++) {
      const int from_x = 2 * (x - FRAME) + i % 3, from_y = 2 * (y - FRAME) + i / 3;
      most = fmax(most, data[(block * from_height + from_y) * from_width + from_x]);
    }
  out[(block * height + y) * width + x] = most;
}

/* Groups: blocks. The frame adds zeros. */
__kernel void average_pool_cl(__global const float16 *data, __global float16 *out, int pixels,
                              int inner) {
  const int block = get_group_id(0);
  float16 sum = 0.0f;
  for (int i = 0; i < pixels; i++) sum += data[block * pixels + i];
  out[block] = sum / (float)inner;
}

/* Groups: outputs. */
__kernel void dense_cl(__global const float *data, __global const float *weight,
                       __global const float *bias, __global float *out, int inputs) {
  const int output = get_group_id(0), outputs = get_num_groups(0);
  float sum = bias[output];
  for (int i = 0; i < inputs; i++) sum += data[i] * weight[i * outputs + output];
  out[output] = sum;
}

/* The filter bank for a device: one work item per pixel and filter.
 *
 * The driver compiles it when host.c first launches it on a device. A machine without OpenCL loads
 * the library too. */
__kernel void convolve_cl(__global const float *image, __global const float *bank,
                          __global float *responses, int height, int width, int size) {
  const int x = get_global_id(0), y = get_global_id(1), f = get_global_id(2);
  if (x >= width || y >= height) return;
  float sum = 0;
  for (int i = 0; i < size; ++i)
    for (int j = 0; j < size; ++j) {
      const int row = clamp(y + i - size / 2, 0, height - 1);
      const int column = clamp(x + j - size / 2, 0, width - 1);
      sum += bank[(f * size + i) * size + j] * image[row * width + column];
    }
  responses[(f * height + y) * width + x] = sum;
}

/* Host code of the photo example: grey values, a filter bank, and colours for its responses.
 *
 * Plain C. packer.toml declares the functions that can be called, and so their checks. */
#include <math.h>
#include <stdint.h>

#include "dso_packer.h"

/* The filter bank, (filters, size, size) float32. It is stored in the library's blob, not in this
 * code: const_loader passes it when `convolve` is looked up for the first time. */
static const float *bank;
static int64_t filters, size;

void __init_convolve(DLTensor *constant) {
  bank = (const float *)((const char *)constant->data + constant->byte_offset);
  filters = constant->shape[0];
  size = constant->shape[1];
}

static int64_t clamp(int64_t i, int64_t n) { return i < 0 ? 0 : i < n ? i : n - 1; }

/* Luma of ITU-R BT.709; 0 is black, 1 is white. */
void gray(const uint8_t *rgb, float *out, int64_t pixels) {
  for (int64_t i = 0; i < pixels; ++i, rgb += 3)
    out[i] = (0.2126f * rgb[0] + 0.7152f * rgb[1] + 0.0722f * rgb[2]) / 255;
}

/* One response image per filter; beyond the border the nearest pixel is used. */
void convolve(const float *image, float *responses, int64_t height, int64_t width) {
  for (int64_t f = 0; f < filters; ++f)
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x) {
        const float *weight = bank + f * size * size;
        float sum = 0;
        for (int64_t dy = -(size / 2); dy <= size / 2; ++dy)
          for (int64_t dx = -(size / 2); dx <= size / 2; ++dx)
            sum += *weight++ * image[clamp(y + dy, height) * width + clamp(x + dx, width)];
        *responses++ = sum;
      }
}

/* The same on a device: the kernel is in a module that this library imports. After its arguments
 * the call has the blocks along x, y and z, and the threads of a block. */
dso_status convolve_on_device(DLTensor *image, DLTensor *weights, DLTensor *responses) {
  const int64_t *shape = responses->shape; /* filters, height, width */
  return dso_call("convolve_cl", NULL, dso_tensor(image), dso_tensor(weights),
                  dso_tensor(responses), dso_int(shape[1]), dso_int(shape[2]),
                  dso_int(weights->shape[1]), dso_int((shape[2] + 63) / 64), dso_int(shape[1]),
                  dso_int(shape[0]), dso_int(64));
}

/* The brightness of a pixel is the strength of its edge. Each filter adds its colour, weighted with
 * the square of its share of the energy, so that the best fitting filter dominates. */
void paint(const float *responses, const float *colours, float *rgb, int64_t pixels) {
  for (int64_t i = 0; i < pixels; ++i, rgb += 3) {
    float energy = 0;
    for (int64_t f = 0; f < filters; ++f)
      energy += responses[f * pixels + i] * responses[f * pixels + i];
    rgb[0] = rgb[1] = rgb[2] = 0;
    for (int64_t f = 0; f < filters && energy > 0; ++f) {
      const float share = responses[f * pixels + i] * responses[f * pixels + i] / energy;
      for (int64_t c = 0; c < 3; ++c)
        rgb[c] += sqrtf(energy) * share * share * colours[3 * f + c];
    }
  }
}

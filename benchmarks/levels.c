/* Five kernels that compilers vectorise: the same code at every level of processors. */
#include <stdint.h>

void polynomial(const float *restrict x, float *restrict y, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    float sum = 0.125f;
    for (int k = 1; k < 12; k++) sum = sum * x[i] + 1.0f / (float)k;
    y[i] = sum;
  }
}

void saxpy(float a, const float *restrict x, float *restrict y, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] += a * x[i];
}

/* The frame of the picture is input only. */
void convolution(const float *restrict picture, const float *restrict weights, float *restrict out,
                 int64_t height, int64_t width) {
  for (int64_t row = 1; row + 1 < height; row++)
    for (int64_t x = 1; x + 1 < width; x++) {
      const float *centre = picture + row * width + x;
      float sum = 0;
      for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) sum += weights[3 * dy + dx + 4] * centre[dy * width + dx];
      out[row * width + x] = sum;
    }
}

void gather(const float *restrict table, const int32_t *restrict index, float *restrict out,
            int64_t n) {
  for (int64_t i = 0; i < n; i++) out[i] = table[index[i]];
}

int32_t dot(const int8_t *restrict a, const int8_t *restrict b, int64_t n) {
  int32_t sum = 0;
  for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

int64_t add(int64_t a, int64_t b) { return a + b; }

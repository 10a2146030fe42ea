/* A convolution; LANES and VECTORS depend on the CPU level that is compiled.
 *
 * It computes a matrix product without making the matrix: weights are packed already, and a pixel's
 * inputs are read in place. A tile is ROWS x COLUMNS pixels of VECTORS x LANES output channels. Its
 * sums stay in registers during the loop over all inputs: a weight vector is read once for 14
 * pixels, a pixel once for VECTORS vectors. 14 sums per vector hide the latency of additions. */
#include <stdint.h>

enum { CHANNELS = 16, OUTPUTS = 32, FRAME = 1, PICTURE_FRAME = 3 };

#if defined(__AVX512F__) /* x86-64-v4 */
enum { LANES = 16, VECTORS = 2 };
#elif defined(__AVX2__) /* x86-64-v3 */
enum { LANES = 8, VECTORS = 1 };
#else /* SSE2, NEON */
enum { LANES = 4, VECTORS = 1 };
#endif
enum { WIDTH = LANES * VECTORS, ROWS = 2, COLUMNS = 7 };
#define UNROLL _Pragma("GCC unroll 8")

/* Loads and stores may be unaligned: a caller's arrays may be, unlike the example's. */
typedef float vector __attribute__((vector_size(4 * LANES), aligned(4)));
typedef int32_t mask __attribute__((vector_size(4 * LANES)));

/* The view of a convolution that its tiles use; distances in floats. */
struct conv {
  const float *data, *weight, *bias, *residual; /* no residual: NULL */
  float *out;
  int64_t inputs, block, kernel; /* blocks of input channels, channels in one, the window's side */
  int64_t outputs, height, width; /* blocks of OUTPUTS channels, and the size without its frame */
  int64_t stride, row, plane;     /* of the input */
  int64_t out_row, out_plane;
  int relu;
};

/* Add the residual, apply ReLU and store: `at` is the first pixel's first channel in `out`. */
static inline void store(const struct conv *conv, vector sum, int64_t at) {
  if (conv->residual) sum += *(const vector *)(conv->residual + at);
  const mask positive = sum > (vector){0};
  if (conv->relu) sum = (vector)(positive & (mask)sum);
  *(vector *)(conv->out + at) = sum;
}

/* One tile. `step` from pixel to pixel is a constant in every inlined call. */
static inline __attribute__((always_inline)) void tile(
    const struct conv *conv, const float *data, const float *weight, const float *bias, int64_t at,
    const int64_t step) {
  const int64_t below = conv->stride * conv->row;
  vector sums[ROWS][COLUMNS][VECTORS];
  UNROLL for (int y = 0; y < ROWS; y++)
    UNROLL for (int x = 0; x < COLUMNS; x++)
      UNROLL for (int v = 0; v < VECTORS; v++)
        sums[y][x][v] = *(const vector *)(bias + v * LANES);

  for (int64_t block = 0; block < conv->inputs; block++)
    for (int64_t ky = 0; ky < conv->kernel; ky++)
      for (int64_t kx = 0; kx < conv->kernel; kx++) {
        const float *pixel = data + block * conv->plane + ky * conv->row + kx * conv->block;
        for (int64_t c = 0; c < conv->block; c++, pixel++, weight += OUTPUTS) {
          UNROLL for (int y = 0; y < ROWS; y++)
            UNROLL for (int x = 0; x < COLUMNS; x++)
              UNROLL for (int v = 0; v < VECTORS; v++)
                sums[y][x][v] += *(const vector *)(weight + v * LANES) * pixel[y * below + x * step];
        }
      }

  UNROLL for (int y = 0; y < ROWS; y++)
    UNROLL for (int x = 0; x < COLUMNS; x++)
      UNROLL for (int v = 0; v < VECTORS; v++) {
        const int64_t channel = v * LANES;
        const int64_t offset = channel / CHANNELS * conv->out_plane + channel % CHANNELS;
        store(conv, sums[y][x][v], at + offset + y * conv->out_row + x * CHANNELS);
      }
}

/* The whole convolution: the weights of a few output channels stay in the cache during the loop
 * over the pixels. An odd last row is computed again together with the row above it. */
static void convolve_tiles(const struct conv *conv) {
  const int64_t taps = conv->inputs * conv->block * conv->kernel * conv->kernel;
  const int64_t step = conv->stride * conv->block;
  for (int64_t channel = 0; channel < conv->outputs * OUTPUTS; channel += WIDTH)
    for (int64_t i = 0; i < conv->height; i += ROWS)
      for (int64_t x = 0; x < conv->width; x += COLUMNS) {
        const int64_t y = i + ROWS > conv->height ? conv->height - ROWS : i;
        const float *data = conv->data + y * conv->stride * conv->row + x * step;
        const float *weight =
            conv->weight + channel / OUTPUTS * OUTPUTS * taps + channel % OUTPUTS;
        const float *bias = conv->bias + channel;
        const int64_t at = channel / CHANNELS * conv->out_plane + channel % CHANNELS +
                           y * conv->out_row + x * CHANNELS;
        if (step == CHANNELS)
          tile(conv, data, weight, bias, at, CHANNELS);
        else if (step == 2 * CHANNELS)
          tile(conv, data, weight, bias, at, 2 * CHANNELS);
        else
          tile(conv, data, weight, bias, at, 2); /* the picture's stride */
      }
}

/* Rows of images of bytes from one layout to another. */
#include <string.h>

#include "window_lowp.h"

/* Pixels of four planes as words, `step` bytes apart; planes that are missing are 0. */
static void interleave(const uint8_t *const *planes, int64_t count, uint8_t flip, uint8_t *to,
                       int64_t step) {
  words flips = {0};
  for (int c = 0; c < WORD; c++)
    if (planes[c] != NULL) flips |= (int32_t)((uint32_t)flip << 8 * c);
  int64_t x = 0;
  for (; x + LANES <= count; x += LANES) {
    words all = flips;
    for (int c = 0; c < WORD; c++)
      if (planes[c] != NULL) all ^= bytes_at(planes[c] + x) << 8 * c;
    for (int lane = 0; lane < LANES; lane++) {
      const int32_t word = all[lane];
      memcpy(to + (x + lane) * step, &word, sizeof word);
    }
  }
  for (; x < count; x++)
    for (int c = 0; c < WORD; c++) to[x * step + c] = planes[c] == NULL ? 0 : planes[c][x] ^ flip;
}

void dso_op_lowp_copy_row(const struct dso_op_lowp_image *in, const uint8_t *data, int64_t first,
                          int64_t channels, int64_t y, uint8_t flip, uint8_t *to, int64_t block) {
  const int64_t plane = in->height * in->width;
  if (in->block > 1) {
    const uint8_t *from = data + (first / block * plane + y * in->width) * block;
    if (!flip) {
      memcpy(to, from, (size_t)(in->width * block));
      return;
    }
    for (int64_t x = 0; x < in->width; x++, from += block, to += block) {
      for (int64_t c = 0; c < channels; c++) to[c] = from[c] ^ flip;
      memset(to + channels, 0, (size_t)(block - channels));
    }
    return;
  }
  for (int64_t c = 0; c < block; c += WORD) {
    const uint8_t *planes[WORD] = {NULL};
    for (int64_t i = 0; i < WORD && c + i < channels; i++)
      planes[i] = data + (first + c + i) * plane + y * in->width;
    interleave(planes, in->width, flip, to + c, block);
  }
}

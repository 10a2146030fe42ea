/* The loop of tile_lowp.c's kernels, SUM_UP, for one way to multiply bytes: included for each.
 *
 * TARGET is an attribute of each function, DOT(sum, a, b) adds products of bytes. */

INLINE TARGET void SUM_UP(const struct lowp_tile *tile, const struct lowp_position *position,
                          int64_t first, int32_t *sums, const int columns, const int64_t step,
                          const int is_bfloat16) {
  const uint8_t *weight = tile->weight + first * WORD;
  sums += first;
  words sum[LOWP_PIXELS][VECTORS];
  UNROLL
  for (int p = 0; p < columns; p++) UNROLL
  for (int v = 0; v < VECTORS; v++) sum[p][v] = (words){0};
  if (tile->is_more) UNROLL
  for (int p = 0; p < columns; p++) UNROLL
  for (int v = 0; v < VECTORS; v++) sum[p][v] = words_at(sums + p * PANEL + v * LANES);

  for (int64_t i = 0; i < tile->blocks; i++) {
    const int64_t count = i + 1 < tile->blocks ? tile->words : tile->last;
    const uint8_t *block = position->data + i * position->plane;
    for (int64_t y = 0; y < tile->taps[0]; y++)
      for (int64_t x = 0; x < tile->taps[1]; x++) {
        const uint8_t *pixel = block + y * tile->tap[0] + x * tile->tap[1];
        for (int64_t c = 0; c < count; c++, pixel += WORD, weight += WORD_PANEL) {
          words factor[VECTORS];
          UNROLL
          for (int v = 0; v < VECTORS; v++) factor[v] = words_at(weight + v * LANES * WORD);
          UNROLL
          for (int p = 0; p < columns; p++) {
            const words input = splat_word(pixel + p * step);
            UNROLL
            for (int v = 0; v < VECTORS; v++)
              sum[p][v] = is_bfloat16 ? dot_bfloat16(sum[p][v], input, factor[v])
                                      : DOT(sum[p][v], input, factor[v]);
          }
        }
      }
  }
  UNROLL
  for (int p = 0; p < columns; p++) UNROLL
  for (int v = 0; v < VECTORS; v++) store_words(sums + p * PANEL + v * LANES, sum[p][v]);
}

/* The loop of matmul_bits_rows.c's kernels, MULTIPLY, for one way to multiply bytes: included for each.
 *
 * TARGET is an attribute of each function, DOT(sum, a, b) adds products of bytes. */

INLINE TARGET void MULTIPLY(const struct dso_op_matmul_bits *product, const char *rows,
                            const uint32_t *panel, float *to, const int width, const int digits,
                            const int count) {
  const int64_t block = product->block, before = words_before(product);
  const int64_t row = dso_op_bits_row(product, digits), step = words_of_block(product);
  vec sums[BITS_ROWS][COLUMN_VECTORS];
  UNROLL
  for (int r = 0; r < count; r++) UNROLL
  for (int v = 0; v < COLUMN_VECTORS; v++) sums[r][v] = splat(0);
  for (int64_t b = blocks_of(product); b > 0; b--, panel += step) {
    if (count == 1)
      for (int64_t i = 0; i < step; i += LINE) __builtin_prefetch(panel + AHEAD + i);
    UNROLL
    for (int first = 0; first < COLUMN_VECTORS; first += VECTORS) {
      const uint32_t *words_of = panel + before + first * LANES;
      words parts[BITS_ROWS][MOST_DIGITS][VECTORS];
      UNROLL
      for (int r = 0; r < count; r++) UNROLL
      for (int d = 0; d < digits; d++) UNROLL
      for (int v = 0; v < VECTORS; v++)
        parts[r][d][v] = (words){0} + factor_at(rows + r * row)->start[d];
      const char *inputs = rows + sizeof(struct factor);
      for (int64_t k = 0; k < block; k += LEAST_BLOCK) UNROLL
      for (int word = 0; word < LEAST_BLOCK * width / 32; word++, words_of += PANEL) {
        words factors[VECTORS];
        UNROLL
        for (int v = 0; v < VECTORS; v++)
          factors[v] = words_at(words_of + v * LANES) ^ flip_of(width);
        for (int part = 0; part < 8 / width; part++) UNROLL
        for (int r = 0; r < count; r++) UNROLL
        for (int d = 0; d < digits; d++) {
          const int64_t at = d * block + k + word * (32 / width) + part * WORD;
          const words input = splat_word(inputs + r * row + at);
          UNROLL
          for (int v = 0; v < VECTORS; v++)
            parts[r][d][v] = DOT(parts[r][d][v], bytes_of(factors[v], part, width), input);
        }
      }
      UNROLL
      for (int r = 0; r < count; r++) UNROLL
      for (int v = 0; v < VECTORS; v++)
        sums[r][first + v] += scaled(parts[r], v, digits, factor_at(rows + r * row),
                                     panel + (first + v) * LANES, before > PANEL);
    }
    rows += sizeof(struct factor) + (size_t)(digits * block);
  }
  UNROLL
  for (int r = 0; r < count; r++) UNROLL
  for (int v = 0; v < COLUMN_VECTORS; v++) store(to + r * PANEL + v * LANES, sums[r][v]);
}

TARGET static void NAME(const struct dso_op_matmul_bits *product, int digits, const char *rows,
                        int count, const uint32_t *panel, float *to) {
  const int is_four = product->bits == 4;
  if (digits > 1 && is_four) MULTIPLY(product, rows, panel, to, 4, MOST_DIGITS, 1);
  else if (digits > 1) MULTIPLY(product, rows, panel, to, 8, MOST_DIGITS, 1);
  else if (count == BITS_ROWS && is_four) MULTIPLY(product, rows, panel, to, 4, 1, BITS_ROWS);
  else if (count == BITS_ROWS) MULTIPLY(product, rows, panel, to, 8, 1, BITS_ROWS);
  else
    for (int r = 0; r < count; r++, rows += dso_op_bits_row(product, 1), to += PANEL)
      if (is_four) MULTIPLY(product, rows, panel, to, 4, 1, 1);
      else MULTIPLY(product, rows, panel, to, 8, 1, 1);
}

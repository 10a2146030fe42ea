/* Matrices in the order in which tiles read them. */
#include <string.h>

#include "parts.h"

void dso_op_pack_panel(const float *from, int64_t row, int64_t column, int64_t rows,
                       int64_t columns, float *packed) {
  const int64_t width = min(columns, PANEL);
  if (column == 1) {
    for (int64_t i = 0; i < rows; i++, from += row, packed += PANEL) {
      memcpy(packed, from, (size_t)width * sizeof *packed);
      memset(packed + width, 0, (size_t)(PANEL - width) * sizeof *packed);
    }
    return;
  }
  if (width < PANEL) memset(packed, 0, (size_t)(rows * PANEL) * sizeof *packed);
  /* A few rows at once: what is written fits into the nearest cache. */
  for (int64_t begin = 0; begin < rows; begin += BLOCK) {
    const int64_t end = min(begin + BLOCK, rows);
    int64_t j = 0;
    if (row == 1 && end - begin == BLOCK)
      for (; j + 4 <= width; j += 4)
        for (int64_t i = begin; i < end; i += 4)
          transpose(from + i + j * column, column, packed + i * PANEL + j, PANEL);
    for (; j < width; j++)
      for (int64_t i = begin; i < end; i++) packed[i * PANEL + j] = from[i * row + j * column];
  }
}

void dso_op_pack_rows(const float *from, int64_t row, int64_t column, int64_t rows, int64_t inner,
                      float scale, float *packed, int64_t plane) {
  for (int64_t k = 0; k < inner; k += BLOCK, packed += plane) {
    const int64_t count = min(inner - k, BLOCK);
    for (int64_t i = 0; i < rows; i++) {
      const float *value = from + i * row + k * column;
      float *to = packed + i * BLOCK;
      if (column == 1 && count == BLOCK)
        for (int v = 0; v < BLOCK_VECTORS; v++)
          store(to + v * LANES, load(value + v * LANES) * scale);
      else
        for (int64_t c = 0; c < count; c++) to[c] = value[c * column] * scale;
    }
  }
}

/* Matrices of low-precision elements in the order in which tiles read them. */
#include <string.h>

#include "lowp.h"

/* Rows whose elements are adjacent: whole vectors, then the rest with zeros up to a word. */
static void copy_row(const uint8_t *from, int64_t nbytes, uint8_t flip, uint8_t *to,
                     int64_t plane) {
  typedef uint8_t lane __attribute__((vector_size(16), aligned(1), may_alias));
  for (; nbytes > 0; nbytes -= ROW_BLOCK, from += ROW_BLOCK, to += plane) {
    const int64_t count = min(nbytes, ROW_BLOCK);
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) *(lane *)(to + i) = *(const lane *)(from + i) ^ flip;
    for (; i < count; i++) to[i] = from[i] ^ flip;
    for (; i % WORD; i++) to[i] = 0;
  }
}

void dso_op_lowp_rows(const void *from, enum dso_op_type type, int64_t row, int64_t column,
                      int64_t rows, int64_t inner, uint8_t *packed) {
  const int64_t size = size_of(type), plane = rows * ROW_BLOCK;
  const uint8_t *data = from, flip = left_flip(type);
  for (int64_t i = 0; i < rows; i++, packed += ROW_BLOCK, data += row * size) {
    if (column == 1) {
      copy_row(data, inner * size, flip, packed, plane);
      continue;
    }
    uint8_t block[ROW_BLOCK];
    const int64_t elements = ROW_BLOCK / size;
    for (int64_t k = 0; k < inner; k += elements) {
      const int64_t count = min(inner - k, elements);
      for (int64_t c = 0; c < count; c++)
        memcpy(block + c * size, data + (k + c) * column * size, (size_t)size);
      copy_row(block, count * size, flip, packed + k / elements * plane, plane);
    }
  }
}

/* `size` is a constant where this is called. */
INLINE void panel(const uint8_t *from, int64_t row, int64_t column, int64_t inner, int64_t columns,
                  uint8_t flip, uint8_t *packed, const int64_t size) {
  const int64_t in_word = WORD / size;
  for (int64_t k = 0; k < inner; k += in_word, packed += WORD_PANEL) {
    const int64_t count = min(inner - k, in_word);
    for (int64_t c = 0; c < count; c++) {
      const uint8_t *line = from + (k + c) * row * size;
      for (int64_t j = 0; j < columns; j++)
        for (int64_t byte = 0; byte < size; byte++)
          packed[j * WORD + c * size + byte] = line[j * column * size + byte] ^ flip;
    }
  }
}

static void add_columns(const uint8_t *packed, int64_t num_words, int32_t *sums) {
  for (int64_t k = 0; k < num_words; k++, packed += WORD_PANEL)
    for (int j = 0; j < PANEL; j++)
      for (int c = 0; c < WORD; c++) sums[j] += (int8_t)packed[j * WORD + c];
}

void dso_op_lowp_panel(const void *from, enum dso_op_type type, int64_t row, int64_t column,
                       int64_t inner, int64_t columns, uint8_t *packed) {
  const int64_t width = min(columns, PANEL), num_words = ceil_div(inner, per_word(type));
  if (width < PANEL || inner % per_word(type)) memset(packed, 0, (size_t)(num_words * WORD_PANEL));
  if (is_bfloat16(type)) {
    panel(from, row, column, inner, width, 0, packed, 2);
    return;
  }
  if (column == 1) panel(from, row, 1, inner, width, right_flip(type), packed, 1);
  else panel(from, row, column, inner, width, right_flip(type), packed, 1);
  int32_t sums[PANEL] = {0};
  add_columns(packed, num_words, sums);
  memcpy(packed + num_words * WORD_PANEL, sums, sizeof sums);
}

/* Tensors as text, in the layout of NumPy's str(): columns of one width, lines of at most 75
 * characters, and of more than 1000 elements the first and the last three of each dimension. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "abi/dtype_name.h"
#include "functions/elements.h"
#include "functions/shown.h"
#include "functions/shown_number.h"

enum { LINE = 75, THRESHOLD = 1000, EDGE = 3, EDGES = 2 * EDGE, WORD = 2 * SHOWN_SIZE };

/* The form of all elements. */
struct form {
  const struct array *array;
  int is_summary;
  int is_scientific, left, right, exponent; /* of floats: digits of each part */
  int width;                                /* of integers */
  double most, least;                       /* magnitudes of finite numbers other than 0 */
  int has_infinite, has_negative_infinite, has_finite;
};

/* ---- Elements */

static int is_real(const struct array *array) { return array->tensor->dtype.code == DTYPE_FLOAT; }

static int show_integer(const struct array *array, int64_t index, char *word) {
  uint64_t bits = 0; /* little-endian */
  memcpy(&bits, array->data + index * (int64_t)array->itemsize, array->itemsize);
  int shift = 64 - 8 * (int)array->itemsize;
  switch (array->tensor->dtype.code) {
    case DTYPE_BOOL: return snprintf(word, WORD, "%s", bits != 0 ? "True" : "False");
    case DTYPE_INT: return snprintf(word, WORD, "%" PRId64, (int64_t)(bits << shift) >> shift);
    default: return snprintf(word, WORD, "%" PRIu64, bits);
  }
}

static void show_real_padded(const struct form *form, double number, char *word) {
  struct shown_real shown;
  if (!isfinite(number)) {
    const char *name = isnan(number) ? "nan" : number < 0 ? "-inf" : "inf";
    snprintf(word, WORD, "%*s", form->left + form->right + 1, name);
  } else if (form->is_scientific) {
    int digits = form->right - form->exponent - 2;
    show_scientific(number, form->array->itemsize, digits, MOST_FRACTION, &shown);
    snprintf(word, WORD, "%*s.%se%+0*d", form->left, shown.whole, shown.fraction,
             form->exponent + 1, shown.exponent);
  } else {
    show_positional(number, form->array->itemsize, MOST_FRACTION, &shown);
    snprintf(word, WORD, "%*s.%-*s", form->left, shown.whole, form->right, shown.fraction);
  }
}

/* ---- The first pass: sizes */

static void larger(int *of, size_t size) {
  if (*of < (int)size) *of = (int)size;
}

static void note_magnitude(struct form *form, int64_t index) {
  double number = real_at(form->array, index), magnitude = fabs(number);
  form->has_infinite |= !isfinite(number);
  form->has_negative_infinite |= isinf(number) && number < 0;
  form->has_finite |= isfinite(number) != 0;
  if (!isfinite(number) || magnitude == 0) return;
  if (form->most == 0 || magnitude > form->most) form->most = magnitude;
  if (form->least == 0 || magnitude < form->least) form->least = magnitude;
}

static void note_size(struct form *form, int64_t index) {
  struct shown_real shown;
  char word[WORD];
  if (!is_real(form->array)) {
    larger(&form->width, (size_t)show_integer(form->array, index, word));
    return;
  }
  double number = real_at(form->array, index);
  if (!isfinite(number)) return;
  if (form->is_scientific) {
    show_scientific(number, form->array->itemsize, 0, MOST_FRACTION, &shown);
    larger(&form->exponent, abs(shown.exponent) >= 100 ? 3 : 2);
  } else show_positional(number, form->array->itemsize, MOST_FRACTION, &shown);
  larger(&form->left, strlen(shown.whole));
  larger(&form->right, strlen(shown.fraction));
}

/* Visit the elements that are shown. */
/* NOLINTNEXTLINE(misc-no-recursion) one level for each dimension */
static void visit(struct form *form, void (*note)(struct form *form, int64_t index), int32_t dim,
                  int64_t base) {
  const DLTensor *tensor = form->array->tensor;
  if (dim == tensor->ndim) {
    note(form, base);
    return;
  }
  int64_t extent = tensor->shape[dim];
  for (int64_t i = 0; i < extent; i++) {
    if (form->is_summary && extent > EDGES && i == EDGE) i = extent - EDGE;
    visit(form, note, dim + 1, base * extent + i);
  }
}

static void measure(struct form *form) {
  size_t nbytes = form->array->itemsize;
  if (is_real(form->array)) {
    double limit = nbytes == 2 ? 1e3 : nbytes == 4 ? 1e6 : 1e8;
    visit(form, note_magnitude, 0, 0);
    form->is_scientific = form->most >= limit ||
                          (form->most > 0 && (form->least < round_real(1e-4, nbytes) ||
                                              round_real(form->most / form->least, nbytes) > 1000));
  }
  visit(form, note_size, 0, 0);
  if (form->is_scientific) form->right += form->exponent + 2;
  if (!form->has_infinite) return;
  larger(&form->left, (size_t)(form->right < 2 ? 2 - form->right : 0));
  if (form->has_negative_infinite)
    larger(&form->left, (size_t)(form->right < 3 ? 3 - form->right : 0));
}

/* ---- The second pass: lines */

static void add_spaces(struct text *text, int count) {
  for (int i = 0; i < count; i++) text_add(text, " ", 1);
}

/* Append a word to a line that has `column` characters, or to a new one. */
static void add_word(struct text *text, const char *word, int indent, int width, int *column) {
  int size = (int)strlen(word);
  if (*column + size > width && *column > indent) {
    while (text->size > 0 && text->data[text->size - 1] == ' ') text->size--;
    text_add(text, "\n", 1);
    add_spaces(text, indent);
    *column = indent;
  }
  text_add(text, word, (size_t)size);
  *column += size;
}

static void add_row(struct text *text, const struct form *form, int64_t base, int indent) {
  const DLTensor *tensor = form->array->tensor;
  int64_t extent = tensor->shape[tensor->ndim - 1];
  int width = LINE - tensor->ndim, column = indent;
  char word[WORD];
  for (int64_t i = 0; i < extent; i++) {
    if (form->is_summary && extent > EDGES && i == EDGE) {
      add_word(text, "...", indent, width, &column);
      text_add(text, " ", 1);
      column++;
      i = extent - EDGE;
    }
    if (is_real(form->array)) show_real_padded(form, real_at(form->array, base * extent + i), word);
    else {
      char plain[WORD];
      (void)show_integer(form->array, base * extent + i, plain);
      snprintf(word, WORD, "%*s", form->width, plain);
    }
    add_word(text, word, indent, width, &column);
    if (i + 1 < extent) text_add(text, " ", 1);
    column++;
  }
}

/* NOLINTNEXTLINE(misc-no-recursion) one level for each dimension */
static void add_dim(struct text *text, const struct form *form, int32_t dim, int64_t base) {
  const DLTensor *tensor = form->array->tensor;
  int64_t extent = tensor->shape[dim];
  text_add(text, "[", 1);
  if (dim == tensor->ndim - 1) add_row(text, form, base, dim + 1);
  for (int64_t i = 0; i < extent && dim < tensor->ndim - 1; i++) {
    if (form->is_summary && extent > EDGES && i == EDGE) {
      add_spaces(text, dim + 1);
      text_add(text, "...", 3);
      for (int32_t j = dim + 1; j < tensor->ndim; j++) text_add(text, "\n", 1);
      i = extent - EDGE;
    }
    if (i > 0) add_spaces(text, dim + 1);
    add_dim(text, form, dim + 1, base * extent + i);
    for (int32_t j = dim + 1; j < tensor->ndim && i + 1 < extent; j++) text_add(text, "\n", 1);
  }
  text_add(text, "]", 1);
}

static int is_shown(const struct array *array) {
  DLDataType dtype = array->tensor->dtype;
  int is_whole = dtype.bits == 8 || dtype.bits == 16 || dtype.bits == 32 || dtype.bits == 64;
  if (dtype.lanes != 1 || !is_whole) return 0;
  return dtype.code == DTYPE_INT || dtype.code == DTYPE_UINT || dtype.code == DTYPE_BOOL ||
         (dtype.code == DTYPE_FLOAT && dtype.bits > 8);
}

void shown_array(struct text *text, const struct array *array) {
  struct form form = {.array = array, .is_summary = array->size > THRESHOLD};
  char word[WORD], name[DTYPE_NAME_SIZE];
  if (!is_shown(array)) text_format(text, "<tensor of %s>", dtype_name(array->tensor->dtype, name));
  else if (array->size == 0) text_add(text, "[]", 2);
  else if (array->tensor->ndim > 0) {
    measure(&form);
    if (array->tensor->dtype.code == DTYPE_BOOL) form.width = (int)sizeof "False" - 1;
    add_dim(text, &form, 0, 0);
  } else {
    if (is_real(array)) (void)show_real(real_at(array, 0), array->itemsize, word);
    else (void)show_integer(array, 0, word);
    text_add(text, word, strlen(word));
  }
}

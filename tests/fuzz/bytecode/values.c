/* Values from outside a program, in memory of each kind. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "abi/dlpack.h"
#include "abi/dtype.h"
#include "program.h"
#include "device/tensor_object.h"

enum { MOST_LENT = 64, PAGES_NBYTES = 1 << 13, MOST_TENSOR = 512 };

/* ---- Data types and extents */

DLDataType draw_dtype(struct draws *draws) {
  static const DLDataType common[] = {
      {0, 64, 1}, {0, 32, 1}, {0, 8, 1},  {0, 4, 1},  {0, 1, 1},  {1, 1, 1},  {1, 8, 1}, {1, 4, 1},
      {1, 64, 1}, {2, 16, 1}, {2, 32, 1}, {2, 64, 1}, {3, 64, 1}, {4, 16, 1}, {5, 64, 1}, {6, 8, 1},
      {6, 1, 1},  {10, 8, 1}, {12, 8, 1}, {15, 6, 1}, {17, 4, 1}, {0, 2, 1},  {2, 32, 4}, {0, 4, 8},
  };
  enum { COUNT = sizeof common / sizeof *common };
  DLDataType dtype = common[draw(draws, COUNT)];
  if (draw(draws, 6) == 0) dtype.lanes = (uint16_t)(1 + draw(draws, 16));
  if (draw(draws, 16) == 0) dtype.bits = (uint8_t)(1 + draw(draws, 255));
  if (draw(draws, 16) == 0) dtype.code = (uint8_t)draw(draws, 20);
  return dtype;
}

size_t expected_nbytes(DLDataType dtype, int64_t ndim, const int64_t *dims) {
  size_t count = 1, bits = (size_t)dtype.bits * dtype.lanes;
  for (int64_t i = 0; i < ndim; i++) count *= (size_t)dims[i];
  if (dtype.code == DTYPE_UINT && bits == 1) return count;
  return (count * bits + 7) / 8;
}

void draw_extents(struct draws *draws, int64_t *ndim, int64_t *dims) {
  static const int64_t extents[] = {0, 1, 1, 2, 3, 4, 5, 8, 9, 16};
  *ndim = (int64_t)draw(draws, MOST_EXTENTS + 1);
  for (int64_t i = 0; i < *ndim; i++) dims[i] = extents[draw(draws, 10)];
}

static void draw_layout(struct draws *draws, struct value *known) {
  known->kind = TENSOR;
  known->dtype = draw_dtype(draws);
  do draw_extents(draws, &known->ndim, known->dims);
  while (expected_nbytes(known->dtype, known->ndim, known->dims) > MOST_TENSOR);
}

/* ---- Memory: of the heap to the byte, or pages that may only be read */

static void *lent[MOST_LENT];
static int num_lent;

void free_arguments(void) {
  while (num_lent > 0) free(lent[--num_lent]);
}

static void *lend(size_t nbytes) {
  if (num_lent == MOST_LENT) abort();
  return lent[num_lent++] = calloc(1, nbytes + (nbytes == 0));
}

static char *readonly_pages(void) {
  static char *pages;
  if (pages != NULL) return pages;
  pages = mmap(NULL, PAGES_NBYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) abort();
  for (int i = 0; i < PAGES_NBYTES; i++) pages[i] = (char)(i % 3 == 0);
  if (mprotect(pages, PAGES_NBYTES, PROT_READ) != 0) abort();
  return pages;
}

static int is_odd(struct draws *draws) { return draw(draws, 4) == 0; }

/* So that the last byte is the last of the pages, or at their start. */
static void *draw_readonly(struct draws *draws, size_t nbytes) {
  char *pages = readonly_pages();
  if (is_odd(draws)) return pages + PAGES_NBYTES - nbytes;
  return pages + 64 * draw(draws, 8);
}

static DLTensor layout_of(struct value *known) {
  return (DLTensor){.device = {DLPACK_CPU, 0}, .ndim = (int32_t)known->ndim, .dtype = known->dtype,
                    .shape = known->dims};
}

static dso_object *adopt(DLTensor tensor, unsigned flags, void *managed, void (*drop)(void *)) {
  dso_object *object = tensor_object_adopt(&tensor, managed, drop);
  if (object == NULL) abort();
  tensor_object_mark(object, flags);
  return object;
}

dso_object *readonly_tensor(struct draws *draws, struct value *known) {
  draw_layout(draws, known);
  DLTensor tensor = layout_of(known);
  tensor.data = draw_readonly(draws, expected_nbytes(known->dtype, known->ndim, known->dims));
  return adopt(tensor, TENSOR_READ_ONLY, NULL, NULL);
}

/* Separate memory, exact to the byte; sometimes unaligned. */
static dso_object *owned_tensor(struct draws *draws, struct value *known) {
  draw_layout(draws, known);
  DLTensor tensor = layout_of(known);
  size_t nbytes = expected_nbytes(known->dtype, known->ndim, known->dims);
  size_t skip = is_odd(draws) ? 1 + draw(draws, 63) : 0;
  char *block = NULL;
  size_t size = skip + nbytes + (skip + nbytes == 0);
  if (posix_memalign((void **)&block, 64, size) != 0) abort();
  memset(block, 0, size);
  tensor.data = block;
  if (is_odd(draws)) tensor.byte_offset = skip;
  else tensor.data = block + skip;
  return adopt(tensor, 0, block, free);
}

static dso_any lent_tensor(struct draws *draws, struct value *known) {
  DLTensor *tensor = lend(sizeof *tensor + 2 * MOST_EXTENTS * sizeof(int64_t));
  int64_t *dims = (int64_t *)(void *)(tensor + 1), *strides = dims + MOST_EXTENTS;
  draw_layout(draws, known);
  *tensor = layout_of(known);
  size_t nbytes = expected_nbytes(known->dtype, known->ndim, known->dims);
  tensor->shape = memcpy(dims, known->dims, sizeof known->dims);
  int is_readonly = draw(draws, 2) == 0;
  tensor->data = is_readonly ? draw_readonly(draws, nbytes) : lend(nbytes);
  if (known->dtype.bits % 8 == 0 && is_odd(draws)) { /* each element the same, or in a row */
    tensor->strides = strides;
    for (int64_t i = 0, stride = 1; i < known->ndim; stride *= known->dims[i++])
      strides[i] = is_readonly ? 0 : stride;
  }
  return (dso_any){.type_index = DSO_DLTENSOR_PTR,
                   .small_len = is_readonly ? DSO_READ_ONLY : 0,
                   .v_ptr = tensor};
}

/* ---- Arguments */

static dso_any draw_text(struct draws *draws, struct value *known) {
  static const char text[] = "a text of more bytes than a value has room for";
  dso_any value = {.type_index = DSO_RAW_STR, .v_c_str = text};
  known->kind = TEXT;
  if (draw(draws, 2) == 0 && object_make_string(&value, 1, text, draw(draws, sizeof text)) != 0)
    abort();
  return value;
}

static dso_any draw_bytes(struct draws *draws, struct value *known) {
  static const dso_byte_array array = {.data = "bytes\0behind", .size = 12};
  dso_any value = {.type_index = DSO_BYTE_ARRAY_PTR, .v_ptr = (void *)(uintptr_t)&array};
  known->kind = ANYTHING;
  if (draw(draws, 2) == 0 && object_make_string(&value, 0, array.data, draw(draws, 13)) != 0)
    abort();
  return value;
}

static dso_any draw_shape(struct draws *draws, struct value *known) {
  known->kind = SHAPE;
  draw_extents(draws, &known->ndim, known->dims);
  known->is_constant = 1;
  return any_of_object(shape_object_new((size_t)known->ndim, known->dims));
}

/* Nested, and with an item that occurs twice. */
static dso_any draw_tuple(struct draws *draws, struct value *known, int depth) {
  int64_t size = (int64_t)draw(draws, MOST_TUPLE);
  dso_array_object *array = array_object_new(size);
  struct value ignored;
  known->kind = ANYTHING;
  for (int64_t i = 0; i < size; i++) {
    memset(&ignored, 0, sizeof ignored);
    int is_same = i > 0 && is_odd(draws);
    dso_any item = is_same ? array->items[i - 1] : draw_argument(draws, &ignored, depth + 1);
    if (item.type_index >= DSO_DLTENSOR_PTR && item.type_index < DSO_SMALL_STR)
      item = (dso_any){.type_index = DSO_INT, .v_int64 = i}; /* a borrowed one cannot be in an array */
    else if (is_same) any_retain(&item);
    array->items[i] = item;
  }
  return any_of_object(array);
}

dso_any draw_argument(struct draws *draws, struct value *known, int depth) {
  switch (draw(draws, depth < 3 ? 14 : 11)) {
    case 0:
      known->kind = INT;
      return (dso_any){.type_index = DSO_INT, .v_int64 = (int64_t)draw(draws, 5)};
    case 1: known->kind = FLOAT; return (dso_any){.type_index = DSO_FLOAT, .v_float64 = 0.5};
    case 2:
      known->kind = BOOL;
      return (dso_any){.type_index = DSO_BOOL, .v_int64 = (int64_t)draw(draws, 2)};
    case 3: return draw_text(draws, known);
    case 4: return draw_bytes(draws, known);
    case 5:
      known->kind = DTYPE;
      known->dtype = draw_dtype(draws);
      return (dso_any){.type_index = DSO_DATA_TYPE, .v_dtype = known->dtype};
    case 6:
      known->kind = DEVICE;
      return (dso_any){.type_index = DSO_DEVICE, .v_device = {DLPACK_CPU, 0}};
    case 7: return draw_shape(draws, known);
    case 8: return any_of_object(owned_tensor(draws, known));
    case 9: return any_of_object(readonly_tensor(draws, known));
    case 10: known->kind = NOTHING; return (dso_any){.type_index = DSO_NONE};
    case 11: return draw_tuple(draws, known, depth);
    case 12: return lent_tensor(draws, known);
    default:
      known->kind = CLOSURE;
      known->routine = -1;
      object_retain(&host_functions[0]->object);
      return any_of_object(host_functions[0]);
  }
}

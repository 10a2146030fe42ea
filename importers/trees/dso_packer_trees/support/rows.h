/* The arguments of the functions: rows, a result, and the weight with the tables. */
#ifndef DSO_TREES_ROWS_H
#define DSO_TREES_ROWS_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "dso_packer.h"
#include "dso_operators.h"

struct rows {
  const void *data;
  int64_t count, stride; /* the elements from one row to the next */
  int is_f64;
};

static inline int refuse(const char *what, int64_t expected, int64_t found) {
  char text[160];
  snprintf(text, sizeof text, "%s, expected %lld, found %lld", what, (long long)expected,
           (long long)found);
  return dso_raise("ValueError", text);
}

static inline int rows_of(const DLTensor *x, int64_t num_features, struct rows *rows) {
  const DLDataType dtype = x->dtype;
  if (dtype.code != 2 || (dtype.bits != 32 && dtype.bits != 64) || dtype.lanes != 1)
    return dso_raise("TypeError", "rows: data type, expected float32 or float64; convert the rows");
  if (x->ndim < 1 || x->ndim > 2)
    return refuse("rows: number of dimensions, a row has 1 and rows have 2", 2, x->ndim);
  const int64_t features = x->shape[x->ndim - 1];
  if (features != num_features) return refuse("rows: number of features", num_features, features);
  if (x->device.device_type != 1)
    return dso_raise("ValueError", "rows: expected memory of the CPU");
  if (x->strides && x->strides[x->ndim - 1] != 1 && features > 1)
    return dso_raise("ValueError", "rows: expected contiguous rows");
  rows->data = (const char *)x->data + x->byte_offset;
  rows->count = x->ndim == 2 ? x->shape[0] : 1;
  rows->stride = x->ndim == 2 && x->strides && rows->count > 1 ? x->strides[0] : features;
  rows->is_f64 = dtype.bits == 64;
  return 0;
}

/* Check a result: a row has the extents of one, `width`; of a width of 1 it may be a scalar. */
static inline int check_result(const DLTensor *y, const struct rows *rows, int64_t width, int code,
                               int bits) {
  int64_t count = 1;
  for (int i = 0; i < y->ndim; i++) count *= y->shape[i];
  if (y->dtype.code != code || y->dtype.bits != bits)
    return dso_raise("TypeError", "result: data type, expected the one of the scores");
  if (count != rows->count * width) return refuse("result: elements", rows->count * width, count);
  return 0;
}

/* The weights that were checked, by address and checksum; one that is not among them is checked
 * again. */
static _Atomic uint64_t checked[16];

/* Checks all tables of a weight; returns what is wrong, or NULL. */
typedef const char *check_weight(const void *data, uint64_t nbytes);

/* Return the tables of a tensor of bytes; NULL with the error raised if they are damaged. They begin
 * with {char magic[8]; uint32_t version, checksum}. */
static inline const void *checked_weight(const DLTensor *tensor, const char *name,
                                         uint64_t header_nbytes, check_weight *check) {
  const char *data = (const char *)tensor->data + tensor->byte_offset;
  const int is_bytes = tensor->ndim == 1 && tensor->dtype.bits == 8 && tensor->dtype.lanes == 1;
  const uint64_t nbytes = is_bytes ? (uint64_t)tensor->shape[0] : 0;
  const char *wrong = NULL;
  if (!is_bytes || tensor->device.device_type != 1 || (uintptr_t)data % 64) wrong = "tensor";
  else if (nbytes < header_nbytes) wrong = "size";
  if (!wrong) {
    const uint64_t checksum = ((const uint32_t *)(const void *)data)[3];
    const uint64_t key = (uint64_t)(uintptr_t)data ^ checksum << 32 ^ nbytes << 8;
    _Atomic uint64_t *place = &checked[((uintptr_t)data >> 12 ^ (uintptr_t)data >> 6) % 16];
    if (atomic_load_explicit(place, memory_order_acquire) == key) return data;
    wrong = check(data, nbytes);
    if (!wrong) {
      atomic_store_explicit(place, key, memory_order_release);
      return data;
    }
  }
  char text[128];
  snprintf(text, sizeof text,
           "%s%s, expected what dso_packer_trees stores; export the library again", name, wrong);
  dso_raise("ValueError", text);
  return NULL;
}

#endif

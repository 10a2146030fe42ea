/* call.h: from the values of a safe call to the arguments of a Numba function, and back.
 *
 * The generated file of a module calls these functions. Each nb_read_ function returns 0, or a
 * negative number without an error raised: the value is not of this type, or cannot be
 * converted. */
#ifndef DSO_PACKER_NUMBA_CALL_H
#define DSO_PACKER_NUMBA_CALL_H

#include "array.h"
#include "calls.h"
#include "dso_packer.h"
#include "glue_array.h"
#include "glue_give.h"
#include "glue_number.h"
#include "glue_take.h"
#include "pending.h"
#include "nrt.h"

enum { NB_OK = 0, NB_NONE = -2 };

/* A Numba function that raises returns a pointer to one. */
typedef struct nb_error {
  const nb_exception *exception;
  int32_t unused;
  uint64_t *values; /* of the run, which the text has; NULL if it has none */
  void *unused_too;
  int32_t is_allocated; /* until the call ends, as the values are */
} nb_error;

typedef struct {
  void *data;
  int64_t length; /* in characters */
  int32_t kind;   /* bytes of a character: 1, 2 or 4 */
  int32_t is_ascii;
  int64_t hash; /* -1 if unknown */
  nrt_meminfo *meminfo;
  void *parent;
} nb_str;

typedef struct {
  float real, imag;
} nb_complex64;
typedef struct {
  double real, imag;
} nb_complex128;

/* An array of `ndim` dimensions; none: then `dims` has no elements, as GNU C allows. */
#define NB_ARRAY(ndim)        \
  struct {                    \
    nrt_meminfo *meminfo;     \
    void *parent;             \
    int64_t nitems, itemsize; \
    void *data;               \
    int64_t dims[2 * (ndim)]; \
  }

#pragma GCC visibility push(hidden)
extern char nb_argument; /* the MemInfo.info of texts that the wrapper made and releases */
int nb_fail(int32_t code, const nb_error *error, const dso_function *function);
int nb_refuse(const dso_function *function, const dso_any *value, int32_t index, int why);
int nb_refuse_all(const dso_function *function, const dso_any *args, int32_t count,
                  const char *signatures, int32_t num_fitting);
int nb_read_str(const dso_any *value, nb_str *out);
int nb_give_str(dso_any *result, const nb_str *string);
int nb_give_bytes(dso_any *result, const nb_array *array);
#pragma GCC visibility pop

/* ---- Exceptions */

/* Raise the pending exception of this thread and forget it: -1, or `status` if there is none or if
 * another exception is raised. */
DSO_FAST int nb_raise_pending(int status, const dso_function *function) {
  const nb_error *pending = nb_pending_replace(NULL);
  return pending != NULL && status == 0 ? nb_fail(1, pending, function) : status;
}

/* ---- Numbers */

/* Why a number cannot be converted. */
enum { NB_NO_NUMBER = -1, NB_BEYOND = -2, NB_NAN = -3 };

/* An int, or a float without its fraction. As in Numba's dispatcher, 64 bits are read, of which a
 * smaller type takes the lowest. */
DSO_FAST int nb_read_signed(const dso_any *value, int64_t *out) {
  double number = value->v_float64;
  if (dso_is_integer(value)) *out = value->v_int64;
  else if (value->type_index != DSO_FLOAT) return NB_NO_NUMBER;
  else if (number != number) return NB_NAN;
  else if (!(number >= -0x1p63 && number < 0x1p63)) return NB_BEYOND;
  else *out = (int64_t)number;
  return dso_is_beyond_int64(value) ? NB_BEYOND : 0;
}

DSO_FAST int nb_read_unsigned(const dso_any *value, uint64_t *out) {
  double number = value->v_float64;
  if (dso_is_integer(value)) *out = (uint64_t)value->v_int64;
  else if (value->type_index != DSO_FLOAT) return NB_NO_NUMBER;
  else if (number != number) return NB_NAN;
  else if (!(number > -1 && number < 0x1p64)) return NB_BEYOND;
  else *out = (uint64_t)number;
  return dso_is_integer(value) && value->v_int64 < 0 && !dso_is_beyond_int64(value) ? NB_BEYOND : 0;
}

/* Any number that is not 0 is true. */
DSO_FAST int nb_read_bool(const dso_any *value, uint8_t *out) {
  if (dso_is_integer(value)) *out = value->v_int64 != 0;
  else if (value->type_index == DSO_FLOAT) *out = value->v_float64 != 0;
  else return NB_NO_NUMBER;
  return 0;
}

DSO_FAST int nb_read_float(const dso_any *value, double *out) {
  if (value->type_index == DSO_FLOAT) *out = value->v_float64;
  else if (!dso_is_integer(value)) return -1;
  else
    *out = dso_is_beyond_int64(value) ? (double)(uint64_t)value->v_int64 : (double)value->v_int64;
  return 0;
}

DSO_INLINE int nb_read_complex(const dso_any *value, double parts[2]) {
  const dso_sequence *array = dso_sequence_of(value);
  parts[1] = 0;
  if (array && array->size == 2)
    return nb_read_float(&array->items[0], &parts[0]) || nb_read_float(&array->items[1], &parts[1])
               ? -1
               : 0;
  return dso_read_complex_tensor(value, parts) ? 0 : nb_read_float(value, &parts[0]);
}

/* 1 for a scalar of NumPy, which says its type. */
DSO_FAST int nb_is_typed(const dso_any *value) {
  return (value->type_index == DSO_INT || value->type_index == DSO_FLOAT) &&
         (value->small_len & 0xFF) == DSO_TYPED;
}

DSO_FAST int nb_code_of(const dso_any *value) { return value->small_len >> 8 & 0xFF; }

DSO_FAST int nb_bits_of(const dso_any *value) { return (int)(value->small_len >> 16); }

/* A complex number is an array of its parts. */
DSO_FAST int nb_is_complex(const dso_any *value) {
  const dso_sequence *array = dso_sequence_of(value);
  return array && array->size == 2 && array->items[0].type_index == DSO_FLOAT &&
         array->items[1].type_index == DSO_FLOAT;
}

/* ---- Arrays */

DSO_FAST int nb_is_readonly(const dso_any *value) {
  return value->type_index == DSO_DLTENSOR_PTR && value->small_len == DSO_READ_ONLY;
}

/* True if at most one dimension has more than one element: row-major is column-major. */
DSO_FAST int nb_is_flat(const DLTensor *tensor) {
  int32_t count = 0;
  for (int32_t i = 0; i < tensor->ndim; i++) count += tensor->shape[i] != 1;
  return count <= 1;
}

/* Read a tensor. `layout` is 'C', 'F' or 'A'; `align` is that of its elements in bytes. */
DSO_FAST int nb_read_array(const dso_any *value, int code, int bits, int32_t ndim, char layout,
                           int is_mutable, int align, void *out) {
  nb_array *array = out;
  const DLTensor *tensor = dso_tensor_of(value);
  const int64_t itemsize = bits / 8;
  int64_t nitems = 1, compact = itemsize;
  if (!tensor || !dso_is_on_cpu(tensor) || !dso_has_dtype(tensor, code, bits) ||
      tensor->ndim != ndim || (is_mutable && nb_is_readonly(value)))
    return -1;
  int64_t *shape = array->dims, *strides = array->dims + ndim;
  for (int32_t i = 0; i < ndim; i++) {
    shape[i] = tensor->shape[i];
    nitems *= shape[i];
  }
  int is_fit = 1;
  for (int32_t k = 0; k < ndim; k++) {
    int32_t i = layout == 'F' ? k : ndim - 1 - k;
    int64_t own = tensor->strides ? tensor->strides[i] * itemsize : compact;
    if (layout == 'A') strides[i] = own;
    else {
      is_fit &= own == compact || shape[i] == 1;
      strides[i] = compact;
    }
    compact *= shape[i];
  }
  if (layout == 'F' && !tensor->strides && ndim > 1) is_fit = nb_is_flat(tensor);
  if (!is_fit && nitems != 0) return -1;
  uintptr_t data = dso_address_of(tensor);
  if (data % (uintptr_t)align != 0 || (tensor->data == NULL && nitems != 0)) return -1;
  array->meminfo = NULL;
  array->parent = NULL;
  array->nitems = nitems;
  array->itemsize = itemsize;
  array->data = (void *)data;
  return 0;
}

/* Bytes are an array of uint8 that no code writes to. */
DSO_INLINE int nb_read_bytes(const dso_any *value, void *out) {
  nb_array *array = out;
  dso_byte_array bytes = dso_raw_bytes_of(value);
  if (!bytes.data) return -1;
  array->meminfo = NULL;
  array->parent = NULL;
  array->nitems = array->dims[0] = (int64_t)bytes.size;
  array->itemsize = array->dims[1] = 1;
  array->data = (void *)(uintptr_t)bytes.data;
  return 0;
}

/* ---- Others */

/* The items of a tuple; NULL if the value is not a tuple of this size. */
DSO_FAST const dso_any *nb_items(const dso_any *value, int64_t size) {
  const dso_sequence *array = dso_sequence_of(value);
  return array && array->size == size ? array->items : NULL;
}

DSO_INLINE int nb_read_pointer(const dso_any *value, int code, int bits, void **out) {
  const DLTensor *tensor = dso_tensor_of(value);
  if (tensor && dso_is_on_cpu(tensor) && dso_has_dtype(tensor, code, bits) &&
      dso_is_contiguous(tensor))
    *out = (void *)dso_address_of(tensor);
  else if (value->type_index == DSO_OPAQUE_PTR) *out = value->v_ptr;
  else if (value->type_index == DSO_NONE) *out = NULL;
  else return -1;
  return 0;
}

DSO_FAST int nb_give_none(dso_any *result) {
  *result = dso_none();
  return 0;
}

#endif

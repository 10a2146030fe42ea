/* An NDArray of a payload: u64 magic, u64 reserved 0, i32 device_type (1 = cpu), i32 device_id (0),
 * i32 ndim, DLDataType dtype, ndim x i64 shape, i64 data_byte_size, data.
 *
 * data_byte_size = prod(shape) * ceil(bits / 8) * lanes. Old versions of TVM left out the lanes. A
 * tensor packs elements of less than a byte, while TVM writes each in a byte. */
#include <string.h>

#include "abi/dtype.h"
#include "abi/raised.h"
#include "abi/text.h"
#include "blob/arrays.h"
#include "blob/decimal.h"

static const uint64_t NDARRAY_MAGIC = UINT64_C(0xdd5e40f096b4a13f);

enum { MOST_BITS = 128, MOST_CODE = 17 };

struct header {
  DLDataType dtype;
  int32_t ndim;
  int64_t shape[TENSOR_MAX_DIMS];
  size_t nbytes; /* of the data in the payload */
  int is_complete;
};

static int refuse_field(const struct reader *reader, size_t at, const char *name, uint64_t found,
                        uint64_t expected) {
  return reader_fail(reader, at, "NDArray %s 0x%llx, expected 0x%llx", name,
                     (unsigned long long)found, (unsigned long long)expected);
}

static int expect_u64(struct reader *reader, const char *name, uint64_t expected) {
  uint64_t found;
  size_t start = reader->offset;
  if (reader_u64(reader, &found) != 0) return -1;
  return found == expected ? 0 : refuse_field(reader, start, name, found, expected);
}

/* Python shows a negative number as -0x1. */
static int expect_i32(struct reader *reader, const char *name, int32_t expected) {
  int32_t found;
  size_t start = reader->offset;
  if (reader_i32(reader, &found) != 0) return -1;
  if (found == expected) return 0;
  uint32_t size = found < 0 ? 0 - (uint32_t)found : (uint32_t)found;
  return reader_fail(reader, start, "NDArray %s %s0x%x, expected 0x%x", name, found < 0 ? "-" : "",
                     (unsigned)size, (unsigned)expected);
}

static int read_ndim(struct reader *reader, struct header *header) {
  size_t start = reader->offset;
  if (reader_i32(reader, &header->ndim) != 0) return -1;
  if (header->ndim >= 0 && header->ndim <= TENSOR_MAX_DIMS) return 0;
  return reader_fail(reader, start, "ndim %d, expected 0 to %d", (int)header->ndim,
                     TENSOR_MAX_DIMS);
}

static int read_dtype(struct reader *reader, struct header *header) {
  DLDataType *dtype = &header->dtype;
  size_t start = reader->offset;
  if (reader_dtype(reader, dtype) != 0) return -1;
  if (dtype->code <= MOST_CODE && dtype->bits > 0 && dtype->bits <= MOST_BITS && dtype->lanes > 0)
    return 0;
  return reader_fail(reader, start,
                     "data type (%d, %d, %d), expected a known code, 1 to 128 bits, lanes",
                     dtype->code, dtype->bits, dtype->lanes);
}

/* ---- The shape and the size of the data */

static void show_shape(struct text *text, const int64_t *shape, int32_t ndim) {
  text_add(text, "(", 1);
  for (int32_t i = 0; i < ndim; i++)
    text_format(text, "%s%lld", i > 0 ? ", " : "", (long long)shape[i]);
  text_add(text, ndim == 1 ? ",)" : ")", ndim == 1 ? 2 : 1);
}

static int refuse_shape(const struct reader *reader, size_t at, const struct header *header) {
  struct text text = {0};
  show_shape(&text, header->shape, header->ndim);
  (void)reader_fail(reader, at, "shape %s, expected extents of at least 0", text_of(&text));
  text_free(&text);
  return -1;
}

static int read_shape(struct reader *reader, struct header *header) {
  size_t start = reader->offset;
  int is_negative = 0;
  for (int32_t i = 0; i < header->ndim; i++) {
    if (reader_i64(reader, &header->shape[i]) != 0) return -1;
    is_negative |= header->shape[i] < 0;
  }
  return is_negative ? refuse_shape(reader, start, header) : 0;
}

/* The expected size has more than 64 bits if the shape is invalid. */
static int refuse_nbytes(const struct reader *reader, size_t at, const struct header *header,
                         int64_t found, int is_addressable) {
  struct text text = {0};
  struct decimal expected = decimal_of((header->dtype.bits + 7U) / 8);
  for (int32_t i = 0; i < header->ndim; i++)
    decimal_multiply(&expected, (uint64_t)header->shape[i]);
  decimal_multiply(&expected, header->dtype.lanes);
  text_format(&text, "data_byte_size %lld, expected ", (long long)found);
  decimal_show(&expected, &text);
  if (!is_addressable) {
    text_add(&text, ", of a shape ", strlen(", of a shape "));
    show_shape(&text, header->shape, header->ndim);
    text_format(&text, " of %zu-byte elements is beyond the address space",
                dtype_itemsize(header->dtype));
  }
  (void)reader_fail(reader, at, "%s", text_of(&text));
  text_free(&text);
  return -1;
}

/* The products cannot wrap: dtype_nbytes has checked that of all extents but 0 and of the bits. */
static int read_nbytes(struct reader *reader, struct header *header) {
  DLDataType dtype = header->dtype;
  size_t own, start = reader->offset;
  int64_t found;
  uint64_t written = (dtype.bits + 7U) / 8;
  if (reader_i64(reader, &found) != 0) return -1;
  if (dtype_nbytes(dtype, header->ndim, header->shape, &own) != 0)
    return refuse_nbytes(reader, start, header, found, 0);
  for (int32_t i = 0; i < header->ndim; i++) written *= (uint64_t)header->shape[i];
  uint64_t nbytes = (uint64_t)found;
  if (found < 0 || (nbytes != written * dtype.lanes && nbytes != written && nbytes != own))
    return refuse_nbytes(reader, start, header, found, 1);
  header->nbytes = (size_t)nbytes;
  header->is_complete = nbytes == own;
  return 0;
}

static int read_header(struct reader *reader, struct header *header) {
  if (expect_u64(reader, "magic", NDARRAY_MAGIC) != 0 || expect_u64(reader, "reserved", 0) != 0 ||
      expect_i32(reader, "device_type", DLPACK_CPU) != 0 ||
      expect_i32(reader, "device_id", 0) != 0 || read_ndim(reader, header) != 0 ||
      read_dtype(reader, header) != 0 || read_shape(reader, header) != 0)
    return -1;
  return read_nbytes(reader, header);
}

/* ---- Tensors. One without complete data has none, and its byte_offset is the payload's size. */

static dso_tensor_object *make_view(const struct header *header, const uint8_t *data,
                                    dso_object *owner) {
  if (owner != NULL) object_retain(owner);
  dso_tensor_object *made = tensor_object_view(header->dtype, header->ndim, header->shape, owner);
  if (made == NULL) return NULL;
  made->tensor.device = (DLDevice){.device_type = DLPACK_CPU, .device_id = 0};
  if (header->is_complete) made->tensor.data = (void *)(uintptr_t)data;
  else made->tensor.byte_offset = header->nbytes;
  tensor_object_mark(&made->object,
                     TENSOR_READ_ONLY | (header->is_complete ? 0 : TENSOR_INCOMPLETE));
  return made;
}

dso_tensor_object *reader_ndarray(struct reader *reader) {
  struct header header;
  const uint8_t *data;
  if (read_header(reader, &header) != 0 ||
      reader_skip(reader, header.nbytes, "array data", &data) != 0)
    return NULL;
  return make_view(&header, data, reader->owner);
}

/* Vector code needs the largest power of two up to 16 that divides the size of an element. */
static int is_aligned(const DLTensor *tensor, size_t nbytes) {
  size_t itemsize = dtype_itemsize(tensor->dtype), power = itemsize & (0 - itemsize);
  return nbytes == 0 || (uintptr_t)tensor->data % (power < 16 ? power : 16) == 0;
}

static int refuse_incomplete(const DLTensor *tensor, size_t nbytes) {
  struct text shape = {0};
  show_shape(&shape, tensor->shape, tensor->ndim);
  (void)raised_format("ValueError", "incomplete: shape %s, expected %zu bytes, found %llu",
                      text_of(&shape), nbytes, (unsigned long long)tensor->byte_offset);
  text_free(&shape);
  return -1;
}

int ndarray_use(dso_tensor_object **tensor) {
  const DLTensor *from = &(*tensor)->tensor;
  size_t nbytes;
  if (dtype_nbytes(from->dtype, from->ndim, from->shape, &nbytes) != 0)
    return raised_format("ValueError", "tensor: the shape is beyond the address space");
  if (tensor_object_flags(&(*tensor)->object) & TENSOR_INCOMPLETE)
    return refuse_incomplete(from, nbytes);
  if (is_aligned(from, nbytes)) return 0;
  dso_object *copy = tensor_object_new(from->device, from->dtype, from->ndim, from->shape);
  if (copy == NULL) return raised_format("OutOfMemoryError", "no memory for a tensor");
  dso_tensor_object *made = (dso_tensor_object *)(void *)copy;
  memcpy(made->tensor.data, from->data, nbytes);
  tensor_object_mark(copy, TENSOR_READ_ONLY);
  object_release(&(*tensor)->object);
  *tensor = made;
  return 0;
}

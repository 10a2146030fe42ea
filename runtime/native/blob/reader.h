/* The primitives of a blob, read from memory: bounds-checked, and without a copy.
 *
 * All are little-endian and not padded (TVM, dmlc::Stream): a string is a u64 length and the bytes,
 * a vector is a u64 count and the elements. python/reader.c is this reader for Python. */
#pragma once

#include "abi/object.h"
#include "abi/proof.h"

enum dialect { DIALECT_TVM, DIALECT_TVM_FFI };

struct reader {
  const uint8_t *bytes; /* of the whole blob, without its nbytes header */
  size_t offset, end;   /* both count from `bytes` */
  struct proof *proof;  /* asked before bytes are read; NULL if they were verified */
  dso_object *owner;    /* keeps the bytes valid; objects that view them retain it; or NULL */
  const char *path;     /* of the library, or NULL; for messages */
  const char *where;    /* the name of the bytes in messages: usually the blob's symbol */
  enum dialect dialect;
  int is_last_entry;
};

/* A view of bytes in the blob; no NUL follows. */
struct span {
  const char *data;
  size_t size;
};

/* Less than, equal to or greater than 0, as memcmp; of texts with the same start the shorter is less. */
int span_compare(struct span a, struct span b);

static inline size_t reader_remaining(const struct reader *self) {
  return self->end - self->offset;
}

/* Raise BlobFormatError "<path>: <where> at 0x<at>: <text>". Returns -1. */
__attribute__((format(printf, 3, 4))) int reader_fail(const struct reader *self, size_t at,
                                                      const char *format, ...);

/* Return `at` of this thread's last reader_fail, once; then 0. */
size_t reader_take_place(void);

/* Each returns 0, or -1 with the error raised. `what` is the name of the bytes in messages. */
int reader_raw(struct reader *self, uint64_t nbytes, const char *what, const uint8_t **bytes);
int reader_u64(struct reader *self, uint64_t *value);
int reader_i64(struct reader *self, int64_t *value);
int reader_u32(struct reader *self, uint32_t *value);
int reader_i32(struct reader *self, int32_t *value);
int reader_dtype(struct reader *self, DLDataType *dtype);
int reader_bytes(struct reader *self, struct span *bytes);
int reader_string(struct reader *self, struct span *text); /* text: TVM permits any bytes */

/* As reader_raw, without a proof: for the data of tensors, which is verified when it is used. */
int reader_skip(struct reader *self, uint64_t nbytes, const char *what, const uint8_t **bytes);

/* Read a count of elements that take at least `min_nbytes` each, and of which a valid vector has at
 * most `most`. Nothing was allocated for them yet. */
int reader_count(struct reader *self, size_t min_nbytes, uint64_t most, size_t *count);

/* Read a length; `inner` reads that many bytes, and its offsets continue the offsets of `self`. */
int reader_sized(struct reader *self, struct reader *inner);

/* True if a payload can end here: at the blob's end, or before another key. For a type key with two
 * layouts this decides which of them was written. */
int reader_ends_entry(const struct reader *self);

/* A copy with a NUL after it; the text may contain others, as in Python. NULL with OutOfMemoryError
 * raised. Freed by free(). */
char *span_copy(struct span text);

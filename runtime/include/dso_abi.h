/* dso_abi.h: the safe-call ABI: values, objects, errors. C99 and C++11.
 *
 * A safe-call function is exported as __tvm_ffi_<name>. Arguments are borrowed. *result is zeroed
 * by the caller, and owned by the caller after the call. The function returns 0, or -1 with the
 * error raised (dso_raise). Layouts: TVM FFI c_api.h (TVMFFIAny, TVMFFIObject), DLPack dlpack.h
 * (DLTensor). */
#ifndef DSO_ABI_H
#define DSO_ABI_H

#include <stdint.h>

/* The version of this ABI. It grows by one when a layout, a number or the meaning of a declaration
 * changes, so that code compiled with an older header is no longer compatible. Additions leave it
 * unchanged. */
#define DSO_ABI_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

#ifdef _WIN32
#define DSO_EXPORT __declspec(dllexport)
#else
#define DSO_EXPORT __attribute__((visibility("default")))
#endif

/* If dlpack.h is already included, its definitions are used. */
#ifndef DLPACK_DLPACK_H_
typedef struct {
  int32_t device_type;
  int32_t device_id;
} DLDevice;

typedef struct {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} DLDataType;

typedef struct {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides;
  uint64_t byte_offset;
} DLTensor;
#endif

/* TVMFFITypeIndex: the types that a safe call can receive or return. */
enum {
  DSO_NONE = 0,
  DSO_INT = 1,
  DSO_BOOL = 2,
  DSO_FLOAT = 3,
  DSO_OPAQUE_PTR = 4,
  DSO_DATA_TYPE = 5,
  DSO_DEVICE = 6,
  DSO_DLTENSOR_PTR = 7,
  DSO_RAW_STR = 8,
  DSO_BYTE_ARRAY_PTR = 9,
  DSO_RVALUE_REF = 10,
  DSO_SMALL_STR = 11,
  DSO_SMALL_BYTES = 12,
  DSO_OBJECT = 64,
  DSO_STR = 65,
  DSO_BYTES = 66,
  DSO_ERROR = 67,
  DSO_FUNCTION = 68,
  DSO_SHAPE = 69,
  DSO_TENSOR = 70,
  DSO_ARRAY = 71,
  DSO_MODULE = 73,
  DSO_BIG_INT = 78
};

/* TVMFFIAny, 16 bytes. */
typedef struct {
  int32_t type_index;
  uint32_t small_len;   /* length of a small string; a mark (below); else 0 */
  __extension__ union { /* unnamed: standard since C11, always supported by GCC and Clang */
    int64_t v_int64;
    double v_float64;
    void *v_ptr;
    const char *v_c_str;
    char v_bytes[8];
    DLDataType v_dtype;
    DLDevice v_device;
  };
} dso_any;

/* Marks in small_len. DSO_UNSIGNED: the DSO_INT is a uint64 beyond INT64_MAX. DSO_READ_ONLY: the
 * DSO_DLTENSOR_PTR, passed to a virtual machine, points to read-only memory. DSO_TYPED: the DSO_INT or
 * DSO_FLOAT, passed for a parameter of any type, was a scalar of NumPy; the higher bytes are the code
 * and the bits of its DLDataType. DSO_UNREPORTED, in the None that a caller passes for the result: no
 * call will raise an error of the function, so that it reports the error itself. */
enum { DSO_UNSIGNED = 1, DSO_READ_ONLY = 1, DSO_TYPED = 2, DSO_UNREPORTED = 3 };

/* TVMFFIObject, the 24-byte header of every heap object. */
typedef struct {
  uint64_t combined_ref_count; /* strong in the low 32 bits, weak in the high */
  int32_t type_index;
  uint32_t padding;
  void (*deleter)(void *self, int flags); /* DSO_DELETE_STRONG, DSO_DELETE_WEAK, or both */
} dso_object;

/* STRONG: the last strong reference was dropped; free what the object owns. WEAK: the last weak
 * reference was dropped; free the object's memory. */
enum { DSO_DELETE_STRONG = 1, DSO_DELETE_WEAK = 2 };

/* Take and drop one strong reference. All strong references together hold one weak reference. */
static inline void dso_object_retain(dso_object *object) {
  __atomic_fetch_add(&object->combined_ref_count, (uint64_t)1, __ATOMIC_RELAXED);
}

static inline void dso_object_release(dso_object *object) {
  const uint64_t strong_one = 1, weak_one = (uint64_t)1 << 32;
  uint64_t *count = &object->combined_ref_count;
  uint64_t before = __atomic_fetch_sub(count, strong_one, __ATOMIC_ACQ_REL);
  if ((uint32_t)before != 1 || !object->deleter) return;
  if (before == (strong_one | weak_one)) {
    object->deleter(object, DSO_DELETE_STRONG | DSO_DELETE_WEAK);
    return;
  }
  object->deleter(object, DSO_DELETE_STRONG);
  before = __atomic_fetch_sub(count, weak_one, __ATOMIC_ACQ_REL);
  if (before >> 32 == 1) object->deleter(object, DSO_DELETE_WEAK);
}

/* The tensor of a value, or NULL if it is not a tensor, or one with axes and without a shape. In a
 * Tensor object it follows the header. */
static inline DLTensor *dso_tensor_of(const dso_any *value) {
  if ((value->type_index != DSO_DLTENSOR_PTR && value->type_index != DSO_TENSOR) || !value->v_ptr)
    return 0;
  int nbytes = value->type_index == DSO_TENSOR ? (int)sizeof(dso_object) : 0;
  DLTensor *tensor = (DLTensor *)(void *)((char *)value->v_ptr + nbytes);
  return tensor->ndim <= 0 || tensor->shape ? tensor : 0;
}

/* TVMFFIByteArray. It follows the header of a Str or Bytes object. */
typedef struct {
  const char *data;
  uint64_t size;
} dso_byte_array;

typedef int (*dso_safe_call)(void *handle, const dso_any *args, int32_t num_args, dso_any *result);

/* A Function object: TVMFFIFunctionCell follows the header. Its handle is the object itself. */
typedef struct {
  dso_object object;
  dso_safe_call safe_call;
  void *cpp_call; /* NULL for functions made in C */
} dso_function_object;

/* The result type of a declared function that can fail: 0, or -1 with the error raised. */
typedef int dso_status;

/* A context symbol, which the loader of the library fills (docs/format.md). */
extern void (*__TVMFFIErrorSetRaisedFromCStr)(const char *kind, const char *message);

#ifndef _WIN32
extern void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message)
    __attribute__((weak));
#endif

/* Raise an error of a Python kind ("ValueError", ...) and return -1: `return dso_raise(...)`. The
 * loader's function is preferred, then a TVM FFI in the process; without both the text is lost. */
static inline int dso_raise(const char *kind, const char *message) {
  if (__TVMFFIErrorSetRaisedFromCStr) {
    __TVMFFIErrorSetRaisedFromCStr(kind, message);
#ifndef _WIN32
  } else if (TVMFFIErrorSetRaisedFromCStr) {
    TVMFFIErrorSetRaisedFromCStr(kind, message);
#endif
  }
  return -1;
}

#ifdef __cplusplus
}
#endif

#endif

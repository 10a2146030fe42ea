/* dso_abi.h: the safe-call ABI: values, objects, raising. C99 and C++11.
 *
 * A safe-call function is exported as __tvm_ffi_<name>. Arguments are borrowed; *result is zeroed
 * by the caller and owned by it afterwards; 0 is success, -1 failure with the error raised
 * (dso_raise). Layouts: TVM FFI c_api.h (TVMFFIAny, TVMFFIObject), DLPack dlpack.h (DLTensor). */
#ifndef DSO_ABI_H
#define DSO_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef _WIN32
#define DSO_EXPORT __declspec(dllexport)
#else
#define DSO_EXPORT __attribute__((visibility("default")))
#endif

/* dlpack.h may have been included first; then its own definitions serve. */
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

/* TVMFFITypeIndex, as far as a safe call meets them. */
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
  DSO_MODULE = 73
};

/* TVMFFIAny, 16 bytes. */
typedef struct {
  int32_t type_index;
  uint32_t small_len;   /* length of a small string; a mark below; else 0 */
  __extension__ union { /* unnamed: new in C11, and in GCC and Clang always */
    int64_t v_int64;
    double v_float64;
    void *v_ptr;
    const char *v_c_str;
    char v_bytes[8];
    DLDataType v_dtype;
    DLDevice v_device;
  };
} dso_any;

/* Marks in small_len: of a DSO_INT, that it is a uint64 beyond INT64_MAX; of a DSO_DLTENSOR_PTR that
 * is passed to a virtual machine, that its memory may only be read. */
enum { DSO_UNSIGNED = 1, DSO_READ_ONLY = 1 };

/* TVMFFIObject, the 24-byte header of every heap object. */
typedef struct {
  uint64_t combined_ref_count; /* strong in the low 32 bits, weak in the high */
  int32_t type_index;
  uint32_t padding;
  void (*deleter)(void *self, int flags); /* DSO_DELETE_STRONG, DSO_DELETE_WEAK, or both */
} dso_object;

/* STRONG: the last strong reference went, what the object owns goes. WEAK: its memory goes. */
enum { DSO_DELETE_STRONG = 1, DSO_DELETE_WEAK = 2 };

/* Take and drop one strong reference. All strong ones together hold one weak one. */
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

/* The tensor behind a value, or NULL when it is none; it follows the header of a Tensor object. */
static inline DLTensor *dso_tensor_of(const dso_any *value) {
  if (value->type_index == DSO_DLTENSOR_PTR) return (DLTensor *)value->v_ptr;
  if (value->type_index != DSO_TENSOR || !value->v_ptr) return 0;
  return (DLTensor *)(void *)((dso_object *)value->v_ptr + 1);
}

/* TVMFFIByteArray; follows the header of a Str and a Bytes object. */
typedef struct {
  const char *data;
  uint64_t size;
} dso_byte_array;

typedef int (*dso_safe_call)(void *handle, const dso_any *args, int32_t num_args, dso_any *result);

/* A Function object: TVMFFIFunctionCell follows the header. Its handle is the object itself. */
typedef struct {
  dso_object object;
  dso_safe_call safe_call;
  void *cpp_call; /* NULL: made in C */
} dso_function_object;

/* What a declared function returns that may fail: 0, or -1 with the error raised. */
typedef int dso_status;

/* Context symbol, filled by whoever loads the library (formats: context symbols). */
extern void (*__TVMFFIErrorSetRaisedFromCStr)(const char *kind, const char *message);

#ifndef _WIN32
extern void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message)
    __attribute__((weak));
#endif

/* Raise an error of a Python kind ("ValueError", ...) and return -1: `return dso_raise(...)`.
 * The loader's pointer comes first, then a TVMFFI provider in the process; with neither the text is lost. */
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

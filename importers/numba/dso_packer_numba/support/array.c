/* Arrays of Numba as Tensor objects, and errors. */
#include "array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A load sets this variable. It is weak, since other code of the library may define it too. */
__attribute__((weak,
               visibility("default"))) void (*__TVMFFIErrorSetRaisedFromCStr)(const char *kind,
                                                                              const char *message);

/* The words before an object that TVM FFI reserves: NULL means that they are unused. */
struct owned_tensor {
  void *python_wrapper;
  void (*delete_space)(void *object);
  dso_object object;
  DLTensor tensor;
  nrt_meminfo *meminfo;
  dso_object *owner; /* of the argument that the tensor shares; NULL if it has its own memory */
  int64_t dims[];
};

static struct owned_tensor *holding(void *object) {
  return (struct owned_tensor *)(void *)((char *)object - offsetof(struct owned_tensor, object));
}

static void delete_tensor(void *object, int flags) {
  struct owned_tensor *self = holding(object);
  if (flags & DSO_DELETE_STRONG) {
    NRT_decref(self->meminfo);
    if (self->owner != NULL) dso_object_release(self->owner);
  }
  if (flags & DSO_DELETE_WEAK) free(self);
}

/* A tensor of compact layout without memory. */
static struct owned_tensor *make(const nb_array *array, int32_t ndim, DLDataType dtype) {
  size_t count = (size_t)ndim;
  struct owned_tensor *self = calloc(1, sizeof *self + 2 * count * sizeof(int64_t));
  if (self == NULL) return NULL;
  self->object = (dso_object){.combined_ref_count = 1 | (uint64_t)1 << 32,
                              .type_index = DSO_TENSOR,
                              .deleter = delete_tensor};
  self->tensor = (DLTensor){.device = {.device_type = 1 /* kDLCPU */},
                            .ndim = ndim,
                            .dtype = dtype,
                            .shape = self->dims,
                            .strides = self->dims + ndim};
  if (ndim > 0) memcpy(self->dims, array->dims, count * sizeof(int64_t));
  int64_t compact = 1;
  for (int32_t i = ndim - 1; i >= 0; i--) {
    self->tensor.strides[i] = compact;
    compact *= self->dims[i];
  }
  return self;
}

/* ---- Memory of an argument */

static uintptr_t last_byte(const DLTensor *tensor, uintptr_t *first) {
  uintptr_t low = (uintptr_t)tensor->data + (uintptr_t)tensor->byte_offset, high = low;
  int64_t itemsize = (tensor->dtype.bits + 7) / 8 * tensor->dtype.lanes, compact = 1;
  for (int32_t i = tensor->ndim - 1; i >= 0; i--) {
    int64_t stride = tensor->strides != NULL ? tensor->strides[i] : compact;
    int64_t span = (tensor->shape[i] - 1) * stride * itemsize;
    compact *= tensor->shape[i];
    if (span >= 0) high += (uintptr_t)span;
    else low -= (uintptr_t)-span;
  }
  *first = low;
  return high + (uintptr_t)itemsize - 1;
}

/* The object of the argument with this address; NULL if there is none. */
static dso_object *find_owner(uintptr_t address, const dso_any *args, int32_t num_args) {
  for (int32_t i = 0; i < num_args; i++) {
    const DLTensor *tensor = args[i].type_index == DSO_TENSOR ? dso_tensor_of(&args[i]) : NULL;
    uintptr_t first;
    if (tensor == NULL) continue;
    if (address <= last_byte(tensor, &first) && address >= first) return args[i].v_ptr;
  }
  return NULL;
}

/* ---- Copies: compact, row-major */

static char *copy_items(char *to, const char *from, const nb_array *array, int32_t ndim,
                        int32_t axis) {
  size_t itemsize = (size_t)array->itemsize;
  if (axis == ndim) {
    memcpy(to, from, itemsize);
    return to + itemsize;
  }
  for (int64_t i = 0; i < array->dims[axis]; i++)
    to = copy_items(to, from + i * array->dims[ndim + axis], array, ndim, axis + 1);
  return to;
}

static int copy(struct owned_tensor *self, const nb_array *array) {
  size_t nbytes = (size_t)array->itemsize;
  for (int32_t i = 0; i < self->tensor.ndim; i++) nbytes *= (size_t)self->dims[i];
  self->meminfo = NRT_MemInfo_alloc_aligned(nbytes, 64);
  if (self->meminfo == NULL) return -1;
  self->tensor.data = self->meminfo->data;
  if (nbytes > 0) copy_items(self->tensor.data, array->data, array, self->tensor.ndim, 0);
  return 0;
}

static int has_whole_strides(const nb_array *array, int32_t ndim, DLDataType dtype) {
  if (array->itemsize * 8 != (int64_t)dtype.bits * dtype.lanes) return 0;
  for (int32_t i = ndim; i < 2 * ndim; i++)
    if (array->dims[i] % array->itemsize != 0) return 0;
  return 1;
}

/* Share the memory of the array: 0, or -1 if it must be copied. */
static int share(struct owned_tensor *self, const nb_array *array, const dso_any *args,
                 int32_t num_args) {
  int32_t ndim = self->tensor.ndim;
  if (!has_whole_strides(array, ndim, self->tensor.dtype)) return -1;
  if (array->meminfo != NULL) {
    self->meminfo = array->meminfo;
    NRT_MemInfo_acquire(self->meminfo);
  } else {
    self->owner = find_owner((uintptr_t)array->data, args, num_args);
    if (self->owner == NULL) return -1;
    dso_object_retain(self->owner);
  }
  self->tensor.data = array->data;
  for (int32_t i = 0; i < ndim; i++)
    self->tensor.strides[i] = array->dims[ndim + i] / array->itemsize;
  return 0;
}

int nb_give_array(dso_any *result, const nb_array *array, int32_t ndim, DLDataType dtype,
                  const dso_any *args, int32_t num_args) {
  struct owned_tensor *self = make(array, ndim, dtype);
  int status =
      self == NULL || (share(self, array, args, num_args) != 0 && copy(self, array) != 0) ? -1 : 0;
  NRT_decref(array->meminfo);
  if (status != 0) {
    free(self);
    return dso_raise("MemoryError", "no memory for the array that the function returned");
  }
  *result = (dso_any){.type_index = DSO_TENSOR, .v_ptr = &self->object};
  return 0;
}

/* ---- Errors */

int nb_raise(const nb_exception *exception) {
  char message[2048]; /* longer texts are truncated */
  const char *between = exception->text[0] != '\0' ? "; " : "";
  if (exception->line > 0)
    snprintf(message, sizeof message, "%s%sraised by %s (%s:%d)", exception->text, between,
             exception->function, exception->file, (int)exception->line);
  else
    snprintf(message, sizeof message, "%s%sraised by %s", exception->text, between,
             exception->function);
  return dso_raise(exception->kind, message);
}

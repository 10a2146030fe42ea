/* Copying tensors: on the CPU, to a device, from a device, and between two devices. */
#include <stdlib.h>
#include <string.h>

#include "device/device_api.h"
#include "abi/dtype.h"
#include "abi/heap.h"
#include "abi/raised.h"
#include "abi/strides.h"
#include "device/tensor_object.h"

static int is_on_cpu(DLDevice device) {
  return device.device_type == DLPACK_CPU || device.device_type == DLPACK_CUDA_HOST;
}

/* Pinned memory is copied by the CPU's table, like all memory of the CPU. */
static struct device_memory memory_of(const DLTensor *tensor) {
  DLDevice cpu = {.device_type = DLPACK_CPU, .device_id = 0};
  return (struct device_memory){.device = is_on_cpu(tensor->device) ? cpu : tensor->device,
                                .data = tensor->data,
                                .offset = (size_t)tensor->byte_offset};
}

static struct device_memory memory_at(void *bytes) {
  return (struct device_memory){.device = {.device_type = DLPACK_CPU}, .data = bytes};
}

/* ---- Compact tensors */

static int copy_by(DLDevice device, const struct device_memory *to,
                   const struct device_memory *from, size_t nbytes) {
  const struct device_api *api = device_api(device.device_type);
  return api != NULL ? api->copy(to, from, nbytes) : -1;
}

/* Copy between two kinds of device. No driver can access memory of another kind. */
static int copy_through_cpu(const struct device_memory *to, const struct device_memory *from,
                            size_t nbytes) {
  void *bytes = heap_new(nbytes);
  if (bytes == NULL) return raised_format("OutOfMemoryError", "no memory to copy a tensor");
  struct device_memory between = memory_at(bytes);
  int status = copy_by(from->device, &between, from, nbytes);
  if (status == 0) status = copy_by(to->device, to, &between, nbytes);
  free(bytes);
  return status;
}

static int transfer(const struct device_memory *to, const struct device_memory *from,
                    size_t nbytes) {
  int to_type = to->device.device_type, from_type = from->device.device_type;
  if (to_type != from_type && to_type != DLPACK_CPU && from_type != DLPACK_CPU)
    return copy_through_cpu(to, from, nbytes);
  return copy_by(to_type == DLPACK_CPU ? from->device : to->device, to, from, nbytes);
}

/* ---- Tensors with strides, on the CPU */

/* The first dimension from which on all elements are contiguous; *run is their size in bytes. */
static int first_of_run(const DLTensor *tensor, size_t *run) {
  int first = tensor->ndim;
  int64_t count = 1;
  for (; first > 0; first--) {
    if (tensor->shape[first - 1] != 1 && tensor->strides[first - 1] != count) break;
    count *= tensor->shape[first - 1];
  }
  *run = (size_t)count * dtype_itemsize(tensor->dtype);
  return first;
}

/* Advance to the next index of `ndim` dimensions. Returns 0 after the last one. */
static int advance(const DLTensor *tensor, int ndim, int64_t *index, int64_t *element) {
  for (int i = ndim; i-- > 0;) {
    *element += tensor->strides[i];
    if (++index[i] < tensor->shape[i]) return 1;
    *element -= tensor->strides[i] * tensor->shape[i];
    index[i] = 0;
  }
  return 0;
}

/* Gather the elements in row-major order, or scatter them. The tensor is not empty. */
static void move_strided(const DLTensor *tensor, char *bytes, int is_gather) {
  int64_t index[TENSOR_MAX_DIMS] = {0}, element = 0;
  size_t run, itemsize = dtype_itemsize(tensor->dtype);
  int ndim = first_of_run(tensor, &run);
  char *start = (char *)tensor->data + tensor->byte_offset;
  do {
    char *place = start + element * (int64_t)itemsize;
    if (is_gather) memcpy(bytes, place, run);
    else memcpy(place, bytes, run);
    bytes += run;
  } while (advance(tensor, ndim, index, &element));
}

/* Copy through a compact buffer, so that the tensors may overlap. */
static int copy_strided(const DLTensor *to, const DLTensor *from, size_t nbytes) {
  char *bytes = heap_new(nbytes);
  if (bytes == NULL) return raised_format("OutOfMemoryError", "no memory to copy a tensor");
  struct device_memory between = memory_at(bytes), source = memory_of(from), goal = memory_of(to);
  int status = 0;
  if (tensor_is_compact(from)) status = transfer(&between, &source, nbytes);
  else move_strided(from, bytes, 1);
  if (status == 0 && tensor_is_compact(to)) status = transfer(&goal, &between, nbytes);
  else if (status == 0) move_strided(to, bytes, 0);
  free(bytes);
  return status;
}

/* ---- All tensors */

static int is_alike(const DLTensor *to, const DLTensor *from) {
  if (to->ndim != from->ndim || to->dtype.code != from->dtype.code ||
      to->dtype.bits != from->dtype.bits || to->dtype.lanes != from->dtype.lanes)
    return 0;
  for (int i = 0; i < to->ndim; i++)
    if (to->shape[i] != from->shape[i]) return 0;
  return to->ndim <= TENSOR_MAX_DIMS;
}

int tensor_copy(const DLTensor *to, const DLTensor *from) {
  size_t nbytes;
  if (!is_alike(to, from) || dtype_nbytes(to->dtype, to->ndim, to->shape, &nbytes) != 0)
    return raised_format("ValueError", "copy: expected tensors of the same shape and data type");
  if (nbytes == 0) return 0;
  int is_plain_to = tensor_is_compact(to), is_plain_from = tensor_is_compact(from);
  if ((!is_plain_to && !is_on_cpu(to->device)) || (!is_plain_from && !is_on_cpu(from->device)))
    return raised_format("ValueError",
                         "copy: expected a contiguous tensor on the device, found strides");
  if ((!is_plain_to || !is_plain_from) && dtype_shares_bytes(to->dtype))
    return raised_format("ValueError",
                         "copy: expected contiguous tensors, as their elements share bytes, "
                         "found strides");
  if (!is_plain_to || !is_plain_from) return copy_strided(to, from, nbytes);
  struct device_memory goal = memory_of(to), source = memory_of(from);
  return transfer(&goal, &source, nbytes);
}

/* glue_callback.h: functions that C code calls during a call.
 *
 * Each parameter that is a function pointer has a trampoline in glue.c: a C function of its type. It
 * finds the Function to call in a thread-local variable, which the wrapper sets for the call. */
#ifndef DSO_PACKER_GLUE_CALLBACK_H
#define DSO_PACKER_GLUE_CALLBACK_H

#include "glue_array.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*dso_code)(void);

/* One call of a declared function that has callbacks. */
typedef struct {
  const dso_function *function;
  int status; /* of the first callback that failed; further ones are not called */
} dso_calling;

/* One callback during one call. */
typedef struct dso_callback {
  dso_calling *calling;
  dso_object *function;
  struct dso_callback **slot; /* the thread's variable, and its value before the call */
  struct dso_callback *before;
} dso_callback;

DSO_INLINE void dso_leave_callback(dso_callback *callback) { *callback->slot = callback->before; }
#define DSO_CALLBACK __attribute__((cleanup(dso_leave_callback)))

DSO_INLINE void dso_enter_callback(dso_callback *callback) {
  callback->before = *callback->slot;
  *callback->slot = callback;
}

DSO_INLINE int dso_take_function(const dso_function *function, const dso_any *args, int32_t index,
                                 dso_object **out) {
  const dso_any *value = &args[index];
  *out = NULL;
  if (DSO_LIKELY(value->type_index == DSO_FUNCTION)) *out = (dso_object *)value->v_ptr;
  else if (value->type_index != DSO_NONE)
    return dso_refuse_type(function, args, index, "a function or None");
  return 0;
}

/* Return the calling, or NULL if the callback must return 0 at once: it is called by another thread
 * or after the call (then it is counted), or a callback failed before. */
DSO_INLINE dso_calling *dso_calling_of(const dso_callback *callback, int *strays) {
  if (!callback) __atomic_fetch_add(strays, 1, __ATOMIC_RELAXED);
  return callback && !callback->calling->status ? callback->calling : NULL;
}

/* Call the Function. Arguments that are owned are released. */
DSO_INLINE int dso_call_back(const dso_callback *callback, dso_any *args, int32_t num_args,
                             int status, dso_any *result) {
  if (!status) status = dso_call_function(callback->function, result, args, num_args);
  dso_release_items(args, num_args);
  callback->calling->status = status;
  return status;
}

DSO_COLD static int dso_refuse_stray(const dso_function *function, const char *parameter) {
  dso_message message;
  message.length = 0;
  dso_say(&message, "%s: callback '%s' was called by another thread, expected the caller's",
          function->name, parameter);
  return dso_raise_message(&message, function, "RuntimeError");
}

/* ---- Arguments of callbacks ---- */

DSO_INLINE int dso_give_raw_string(dso_any *result, const char *text) {
  *result = text ? dso_string(text) : dso_none();
  return 0;
}

DSO_INLINE int dso_give_tensor(dso_any *result, DLTensor *tensor) {
  *result = tensor ? dso_tensor(tensor) : dso_none();
  return 0;
}

/* A borrowed tensor, whose shape is the caller's array; NULL is None. */
DSO_INLINE int dso_give_borrowed(dso_any *result, DLTensor *tensor, const void *data,
                                 int64_t *shape, int32_t ndim, int code, int bits) {
  __builtin_memset(tensor, 0, sizeof *tensor);
  for (int32_t i = 0; i < ndim; i++)
    if (shape[i] < 0) shape[i] = 0;
  tensor->data = (void *)(uintptr_t)data;
  tensor->device.device_type = DSO_CPU;
  tensor->ndim = ndim;
  tensor->dtype.code = (uint8_t)code;
  tensor->dtype.bits = (uint8_t)bits;
  tensor->dtype.lanes = 1;
  tensor->shape = shape;
  *result = data ? dso_tensor(tensor) : dso_none();
  return 0;
}

/* An Array of Str and None. */
DSO_INLINE int dso_give_strings(dso_any *result, const char *const *strings, int64_t count) {
  if (!strings) return 0;
  if (count < 0 || count > INT32_MAX) count = 0;
  dso_any *items = (dso_any *)__builtin_calloc((size_t)count + 1, sizeof *items);
  if (!items) return dso_raise("MemoryError", "no memory for the arguments of a callback");
  for (int64_t i = 0; i < count; i++) dso_give_raw_string(&items[i], strings[i]);
  int status = dso_give_array(result, items, (int32_t)count);
  __builtin_free(items);
  return status;
}

#ifdef __cplusplus
}
#endif

#endif

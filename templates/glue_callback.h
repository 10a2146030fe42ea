/* glue_callback.h: functions that C code calls during a call.
 *
 * Each parameter that is a function pointer has a trampoline in glue.c: a C function of its type. It
 * finds the Function to call in a thread-local variable, which the wrapper sets for the call. C code
 * may call the trampoline where it must not: in another thread, or after the call. Then no Function
 * is called. The running call fails; without one, the next call of any function of the library. */
#ifndef DSO_PACKER_GLUE_CALLBACK_H
#define DSO_PACKER_GLUE_CALLBACK_H

#include "glue_array.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*dso_code)(void);

/* A parameter that is a function pointer. One word has both counts, since a stray call belongs either
 * to a running call or to none: the running calls in the low half, the stray calls in the high. */
typedef struct {
  uint64_t counts;
  const dso_function *function;
  const char *name;
} dso_code_pointer;

/* One call of a declared function that has callbacks. */
typedef struct {
  int status; /* of the first callback that failed; further ones are not called */
  const dso_code_pointer *stray; /* a parameter that another thread called, or NULL */
} dso_calling;

/* The parameter of a callback that was called after its call, until a wrapper raises the error. */
static const dso_code_pointer *dso_kept;

/* One callback during one call. */
typedef struct dso_callback {
  dso_calling *calling;
  dso_object *function; /* NULL if the caller passed None */
  dso_code_pointer *pointer;
  struct dso_callback **slot; /* the thread's variable, and its value before the call */
  struct dso_callback *before;
  uint64_t strays; /* before the call */
} dso_callback;

DSO_INLINE void dso_leave_callback(dso_callback *callback) {
  dso_code_pointer *pointer = callback->pointer;
  *callback->slot = callback->before;
  if (__atomic_fetch_sub(&pointer->counts, 1, __ATOMIC_RELAXED) >> 32 != callback->strays)
    callback->calling->stray = pointer;
}
#define DSO_CALLBACK __attribute__((cleanup(dso_leave_callback)))

DSO_INLINE void dso_enter_callback(dso_callback *callback) {
  callback->strays = __atomic_fetch_add(&callback->pointer->counts, 1, __ATOMIC_RELAXED) >> 32;
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

/* Count a call in another thread, or after the call. In a call that got None, the callback is that of
 * an earlier one. */
DSO_COLD static void dso_stray_call(const dso_callback *callback, dso_code_pointer *pointer) {
  uint64_t counts = 0;
  if (!callback) counts = __atomic_fetch_add(&pointer->counts, 1ull << 32, __ATOMIC_RELAXED);
  if ((uint32_t)counts == 0) __atomic_store_n(&dso_kept, pointer, __ATOMIC_RELEASE);
}

/* Return the calling, or NULL if the callback must return 0 at once: it is a stray call, or a
 * callback failed before. */
DSO_INLINE dso_calling *dso_calling_of(const dso_callback *callback, dso_code_pointer *pointer) {
  if (DSO_LIKELY(callback && callback->function))
    return callback->calling->status ? NULL : callback->calling;
  dso_stray_call(callback, pointer);
  return NULL;
}

/* Call the Function. Arguments that are owned are released. */
DSO_INLINE int dso_call_back(const dso_callback *callback, dso_any *args, int32_t num_args,
                             int status, dso_any *result) {
  if (!status) status = dso_call_function(callback->function, result, args, num_args);
  dso_release_items(args, num_args);
  callback->calling->status = status;
  return status;
}

/* ---- Stray calls, at the end of a wrapper ---- */

DSO_COLD static int dso_refuse_stray(const dso_code_pointer *pointer) {
  dso_message message;
  message.length = 0;
  dso_say(&message, "%s: callback '%s' was called by another thread, expected the caller's",
          pointer->function->name, pointer->name);
  return dso_raise_message(&message, pointer->function, "RuntimeError");
}

DSO_INLINE int dso_check_stray(const dso_calling *calling) {
  return DSO_LIKELY(!calling->stray) ? 0 : dso_refuse_stray(calling->stray);
}

DSO_COLD static int dso_refuse_kept(void) {
  const dso_code_pointer *pointer = __atomic_exchange_n(&dso_kept, NULL, __ATOMIC_ACQUIRE);
  dso_message message;
  message.length = 0;
  if (!pointer) return 0; /* another thread has raised it */
  const char *name = pointer->function->name;
  dso_say(&message,
          "%s: callback '%s' was kept, and called after the call of '%s' had ended, when it does "
          "nothing, expected calls during '%s' alone; let C call it before '%s' returns, or export "
          "with --callback %s=kept",
          name, pointer->name, name, name, name, name);
  return dso_raise_message(&message, pointer->function, "RuntimeError");
}

/* Every wrapper of the library ends so. */
DSO_INLINE int dso_check_kept(void) {
  return DSO_LIKELY(!__atomic_load_n(&dso_kept, __ATOMIC_RELAXED)) ? 0 : dso_refuse_kept();
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

/* A borrowed tensor, whose shape is the caller's array; NULL becomes None. */
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

/* glue_kept.h: functions that C code keeps, and calls during any later call or none.
 *
 * C code calls a kept function by its address alone, so each one needs an address. A parameter whose
 * callbacks are kept has DSO_NUM_THUNKS small functions, the thunks, each for one slot. A slot has a
 * weak reference to the Function: who passed the Function keeps it, and the slot is free when it is
 * gone. */
#ifndef DSO_PACKER_GLUE_KEPT_H
#define DSO_PACKER_GLUE_KEPT_H

#include "glue_callback.h"

#ifdef __cplusplus
extern "C" {
#endif

/* clang-format off */
#define DSO_EACH_16(M, high) \
  M(0x##high##0) M(0x##high##1) M(0x##high##2) M(0x##high##3) M(0x##high##4) M(0x##high##5) \
  M(0x##high##6) M(0x##high##7) M(0x##high##8) M(0x##high##9) M(0x##high##a) M(0x##high##b) \
  M(0x##high##c) M(0x##high##d) M(0x##high##e) M(0x##high##f)
#define DSO_EACH_THUNK(M) \
  DSO_EACH_16(M, 0) DSO_EACH_16(M, 1) DSO_EACH_16(M, 2) DSO_EACH_16(M, 3) \
  DSO_EACH_16(M, 4) DSO_EACH_16(M, 5) DSO_EACH_16(M, 6) DSO_EACH_16(M, 7)
/* clang-format on */
enum { DSO_NUM_THUNKS = 128 };

typedef struct {
  const dso_function *function;
  const char *name;                  /* of the parameter */
  dso_object *slots[DSO_NUM_THUNKS]; /* weak references; NULL if never used */
  int32_t next;                      /* so that a free slot is used again as late as possible */
  int lock;
} dso_pool;

/* The running calls of the library in this thread, and whether a kept callback failed during the
 * innermost one. */
static __thread int dso_running, dso_failed;

/* The pool of a callback that was called after its Function was gone, and of one that returned a
 * wrong value while no call could report it; until a wrapper raises the error. */
static const dso_pool *dso_gone, *dso_wrong;

DSO_INLINE void dso_end_running(int *is_running) { dso_running -= *is_running; }
#define DSO_RUNNING __attribute__((cleanup(dso_end_running)))

DSO_INLINE int dso_begin_running(void) {
  dso_running++;
  return 1;
}

DSO_INLINE int dso_take_failed(void) {
  int failed = dso_failed;
  dso_failed = 0;
  return failed;
}

DSO_INLINE void dso_lock_pool(dso_pool *pool) {
  while (__atomic_exchange_n(&pool->lock, 1, __ATOMIC_ACQUIRE)) {}
}

DSO_INLINE void dso_unlock_pool(dso_pool *pool) {
  __atomic_store_n(&pool->lock, 0, __ATOMIC_RELEASE);
}

DSO_INLINE uint32_t dso_strong_count(dso_object *object) {
  return (uint32_t)__atomic_load_n(&object->combined_ref_count, __ATOMIC_ACQUIRE);
}

DSO_INLINE int dso_find_slot(const dso_pool *pool, const dso_object *function) {
  for (int32_t i = 0; i < DSO_NUM_THUNKS; i++)
    if (pool->slots[i] == function) return i;
  for (int32_t k = 0; k < DSO_NUM_THUNKS; k++) {
    int32_t i = (pool->next + k) % DSO_NUM_THUNKS;
    if (!pool->slots[i] || dso_strong_count(pool->slots[i]) == 0) return i;
  }
  return -1;
}

DSO_COLD static int dso_refuse_full(const dso_pool *pool) {
  dso_message message;
  message.length = 0;
  dso_say(&message,
          "%s: callback '%s': %d functions are kept, expected fewer; pass the same function again, "
          "or close the handles that keep others",
          pool->function->name, pool->name, (int)DSO_NUM_THUNKS);
  return dso_raise_message(&message, pool->function, "RuntimeError");
}

/* Give a Function an address; 0, or -1 with the error raised. */
DSO_COLD static int dso_keep(dso_pool *pool, const dso_code *thunks, dso_object *function,
                             dso_code *out) {
  const uint64_t weak_one = (uint64_t)1 << 32;
  dso_object *dropped = NULL;
  *out = (dso_code)0;
  if (!function) return 0;
  dso_lock_pool(pool);
  int32_t slot = dso_find_slot(pool, function);
  if (slot >= 0 && pool->slots[slot] != function) {
    __atomic_fetch_add(&function->combined_ref_count, weak_one, __ATOMIC_RELAXED);
    dropped = pool->slots[slot];
    pool->slots[slot] = function;
    pool->next = (slot + 1) % DSO_NUM_THUNKS;
  }
  dso_unlock_pool(pool);
  if (slot < 0) return dso_refuse_full(pool);
  *out = thunks[slot];
  if (dropped &&
      __atomic_fetch_sub(&dropped->combined_ref_count, weak_one, __ATOMIC_ACQ_REL) >> 32 == 1)
    dropped->deleter(dropped, DSO_DELETE_WEAK);
  return 0;
}

/* Return the Function of a slot with a reference; NULL if it is gone, or if a callback of the running
 * call failed before. */
DSO_INLINE dso_object *dso_hold_kept(dso_pool *pool, int32_t slot) {
  if (dso_failed) return NULL;
  dso_lock_pool(pool);
  dso_object *function = pool->slots[slot];
  uint64_t count = __atomic_load_n(&function->combined_ref_count, __ATOMIC_RELAXED);
  while ((uint32_t)count &&
         !__atomic_compare_exchange_n(&function->combined_ref_count, &count, count + 1, 1,
                                      __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {}
  dso_unlock_pool(pool);
  if (DSO_LIKELY((uint32_t)count)) return function;
  __atomic_store_n(&dso_gone, pool, __ATOMIC_RELEASE);
  return NULL;
}

/* Call the Function and release it, and its arguments. An error belongs to the running call of the
 * library in this thread; without one, the Function itself must report it. */
DSO_INLINE int dso_call_kept(dso_object *function, dso_any *args, int32_t num_args, int status,
                             dso_any *result) {
  result->small_len = dso_running ? 0 : DSO_UNREPORTED;
  const dso_function_object *called = (const dso_function_object *)(const void *)function;
  if (!status) status = called->safe_call(function, args, num_args, result);
  dso_release_items(args, num_args);
  dso_object_release(function);
  if (status && dso_running) dso_failed = 1;
  return status;
}

/* The callback returned a wrong value, and the error was raised. */
DSO_COLD static void dso_fail_kept(const dso_pool *pool) {
  if (dso_running) dso_failed = 1;
  else __atomic_store_n(&dso_wrong, pool, __ATOMIC_RELEASE);
}

DSO_COLD static int dso_refuse_gone(void) {
  const dso_pool *gone = __atomic_exchange_n(&dso_gone, NULL, __ATOMIC_ACQUIRE);
  const dso_pool *wrong = __atomic_exchange_n(&dso_wrong, NULL, __ATOMIC_ACQUIRE);
  const dso_pool *pool = gone ? gone : wrong;
  dso_message message;
  message.length = 0;
  if (!pool) return 0; /* another thread has raised it */
  if (gone)
    dso_say(&message,
            "%s: callback '%s' was called after the handle that keeps it was closed, when it does "
            "nothing; keep the handle open, or keep the callback for ever",
            pool->function->name, pool->name);
  else
    dso_say(&message,
            "%s: callback '%s' returned a value of a wrong type, when no call was running",
            pool->function->name, pool->name);
  return dso_raise_message(&message, pool->function, "RuntimeError");
}

/* Every wrapper of a library with kept callbacks ends so. */
DSO_INLINE int dso_check_gone(void) {
  int is_clean = !__atomic_load_n(&dso_gone, __ATOMIC_RELAXED) &&
                 !__atomic_load_n(&dso_wrong, __ATOMIC_RELAXED);
  return DSO_LIKELY(is_clean) ? 0 : dso_refuse_gone();
}

#ifdef __cplusplus
}
#endif

#endif

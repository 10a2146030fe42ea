/* Loops as compiled code begins them. Arguments: the number of items, the number of threads. */
#include <stdatomic.h>

#include "array.h"
#include "pending.h"
#include "parallel.h"

struct nb_error { /* its beginning */
  const nb_exception *exception;
};

static int64_t run(nb_kernel kernel, void *data, int64_t items, int64_t threads) {
  char *args[1] = {0};
  int64_t dims[1] = {items}, steps[1] = {1};
  numba_parallel_for(kernel, args, dims, steps, data, 0, 1, threads);
  return 0;
}

/* Each part adds its items to its own place. */
static void add(char **args, const int64_t *dims, const int64_t *steps, void *data) {
  int64_t *places = data, first = (int64_t)(intptr_t)args[0];
  (void)steps;
  for (int64_t i = first; i < first + dims[0]; i++) places[get_thread_id()] += i;
}

static int64_t sum_of(int64_t items, int64_t threads) {
  int64_t places[64] = {0}, total = 0;
  run(add, places, items, threads);
  for (int i = 0; i < 64; i++) total += places[i];
  return total;
}

/* The inner loop runs in its thread with the number 0, which is the outer part's own before and
 * after. */
static void inner(char **args, const int64_t *dims, const int64_t *steps, void *data) {
  _Atomic int64_t *total = data;
  int64_t id = get_thread_id(), items = 20;
  (void)args, (void)steps;
  for (int64_t i = 0; i < dims[0]; i++) atomic_fetch_add(total, sum_of(items, 3));
  if (get_thread_id() != id) atomic_store(total, -1);
}

static void fail(char **args, const int64_t *dims, const int64_t *steps, void *data) {
  static const nb_exception negative = {"ValueError", "negative", "item", "geo.py", 7};
  static const struct nb_error error = {&negative};
  (void)args, (void)dims, (void)steps, (void)data;
  if (get_thread_id() == 1) nb_note(&error);
}

#define SAFE_CALL(name)                                                             \
  DSO_EXPORT int __tvm_ffi_##name(void *handle, const dso_any *args, int32_t count, \
                                  dso_any *result);                                 \
  int __tvm_ffi_##name(void *handle, const dso_any *args, int32_t count, dso_any *result)

static int give(dso_any *result, int64_t value) {
  *result = (dso_any){.type_index = DSO_INT, .v_int64 = value};
  const struct nb_error *pending = nb_pending_replace(NULL);
  return pending != NULL ? nb_raise(pending->exception) : 0;
}

SAFE_CALL(sum) {
  (void)handle, (void)count;
  return give(result, sum_of(args[0].v_int64, args[1].v_int64));
}

SAFE_CALL(nested) {
  _Atomic int64_t total = 0;
  (void)handle, (void)count;
  run(inner, &total, args[1].v_int64, args[1].v_int64);
  return give(result, total);
}

SAFE_CALL(fail) {
  (void)handle, (void)count;
  run(fail, NULL, args[0].v_int64, args[1].v_int64);
  return give(result, 0);
}

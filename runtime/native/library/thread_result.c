/* The last result of TVMFuncCall in each thread. */
#include "library/thread_result.h"

#include <pthread.h>

#include "abi/pin.h"

/* The finalizer of a released object may store another result, and so on. This bounds how many one
 * release follows; further objects leak. */
enum { MOST_FOLLOWED = 1000 };

struct thread_result {
  dso_any value;
  dso_byte_array bytes;
};

static const struct thread_result nothing = {.value = {.type_index = DSO_NONE}};
static _Thread_local struct thread_result current;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static dso_object *object_of(const struct thread_result *some) {
  return some->value.type_index >= DSO_OBJECT ? some->value.v_ptr : NULL;
}

static void release(dso_object *object) {
  const struct thread_result saved = current;
  for (int i = 0; object != NULL && i < MOST_FOLLOWED; i++) {
    current = nothing;
    object_release(object);
    object = object_of(&current);
  }
  current = saved;
}

/* Runs when the thread ends. `current` may have changed since the key was set. */
static void end(void *unused) {
  dso_object *object = object_of(&current);
  (void)unused;
  current = nothing;
  release(object);
}

static void make_key(void) {
  pin_core(); /* threads may end after dlclose */
  (void)pthread_key_create(&key, end);
}

static void release_at_end(void) {
  pthread_once(&once, make_key);
  (void)pthread_setspecific(key, &current);
}

void thread_result_store(const dso_any *value, packed_value *result, int *result_code) {
  dso_object *before = object_of(&current);
  current.value = *value;
  *result_code = packed_from_any(&current.value, result, &current.bytes);
  if (object_of(&current) != NULL) release_at_end();
  if (before != NULL) release(before);
}

int thread_result_is(const void *object) { return object != NULL && object_of(&current) == object; }

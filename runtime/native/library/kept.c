#include "library/kept.h"

#include <pthread.h>

#include "abi/pin.h"

/* How many objects one release may follow: each one's finalizer may have kept the next. Where there
 * is no end to that, the rest is never released. */
enum { MOST_FOLLOWED = 1000 };

struct kept {
  dso_any value;
  dso_byte_array room;
};

static const struct kept nothing = {.value = {.type_index = DSO_NONE}};
static _Thread_local struct kept kept;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static dso_object *object_of(const struct kept *some) {
  return some->value.type_index >= DSO_OBJECT ? some->value.v_ptr : NULL;
}

static void release(dso_object *object) {
  const struct kept current = kept;
  for (int i = 0; object != NULL && i < MOST_FOLLOWED; i++) {
    kept = nothing;
    object_release(object);
    object = object_of(&kept);
  }
  kept = current;
}

/* At the thread's end. By then `kept` may have changed since the key was set. */
static void end(void *unused) {
  dso_object *object = object_of(&kept);
  (void)unused;
  kept = nothing;
  release(object);
}

static void make_key(void) {
  pin_core(); /* threads will end after dlclose, too */
  (void)pthread_key_create(&key, end);
}

static void release_at_end(void) {
  pthread_once(&once, make_key);
  (void)pthread_setspecific(key, &kept);
}

void kept_give(const dso_any *value, packed_value *result, int *result_code) {
  dso_object *before = object_of(&kept);
  kept.value = *value;
  *result_code = packed_from_any(&kept.value, result, &kept.room);
  if (object_of(&kept) != NULL) release_at_end();
  if (before != NULL) release(before);
}

int kept_is(const void *object) { return object != NULL && object_of(&kept) == object; }

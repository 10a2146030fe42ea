#include "object.h"

#include <stddef.h>

/* TVM FFI c_api.h, TVMFFIObject: all strong references together hold one weak one. */
static const uint64_t STRONG_ONE = 1, WEAK_ONE = (uint64_t)1 << 32, STRONG_MASK = 0xffffffff;
enum { DELETE_STRONG = 1, DELETE_WEAK = 2, DELETE_BOTH = 3 };

void object_release(dso_object *object) {
  uint64_t *count = &object->combined_ref_count;
  uint64_t before = __atomic_fetch_sub(count, STRONG_ONE, __ATOMIC_ACQ_REL);
  if ((before & STRONG_MASK) != STRONG_ONE || object->deleter == NULL) return;
  if (before == (STRONG_ONE | WEAK_ONE)) {
    object->deleter(object, DELETE_BOTH);
    return;
  }
  object->deleter(object, DELETE_STRONG);
  before = __atomic_fetch_sub(count, WEAK_ONE, __ATOMIC_ACQ_REL);
  if (before >> 32 == 1) object->deleter(object, DELETE_WEAK);
}

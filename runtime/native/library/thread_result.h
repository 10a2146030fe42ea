/* Who owns what packed C functions pass around. No Python.h.
 *
 * TVM's former interface has no way to release an object, so C code never owns one:
 * - arguments are borrowed for the call;
 * - what TVMFuncCall gives (a string or an object) is owned by the thread, and borrowed by the
 *   caller until the thread's next TVMFuncCall returns;
 * - a packed function may return what it borrowed: packed_call takes a reference of its own. It gives
 *   away any other object that it returns. Strings are copied.
 *
 * A finalizer that runs as an object is released may call TVMFuncCall, too. The thread's current
 * result is put aside meanwhile, so that such a call does not release it. */
#ifndef DSO_PACKER_LIBRARY_THREAD_RESULT_H
#define DSO_PACKER_LIBRARY_THREAD_RESULT_H

#include "library/packed.h"

/* Let the thread own `value`, and give it as a packed value; then release what it owned before. */
void thread_result_store(const dso_any *value, packed_value *result, int *result_code);

/* Whether the thread owns this object. */
int thread_result_is(const void *object);

#endif

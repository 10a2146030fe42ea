/* The last result of TVMFuncCall, which the thread owns; and ownership in packed C functions.
 *
 * TVM's former interface cannot release an object, so C code never owns one:
 * - arguments are borrowed for the call;
 * - a string or object that TVMFuncCall returns is owned by the thread. The caller borrows it until
 *   the thread's next TVMFuncCall returns;
 * - a packed function may return a borrowed object: packed_call adds a reference. A packed function
 *   transfers ownership of any other object that it returns. Strings are copied.
 *
 * The finalizer of a released object may call TVMFuncCall. The thread's current result is saved
 * meanwhile, so that such a call does not release it. */
#pragma once

#include "library/packed.h"

/* Store `value` as the thread's result and return it as a packed value in *result. The previous
 * result is released last. */
void thread_result_store(const dso_any *value, packed_value *result, int *result_code);

/* True if the object is the thread's result. */
int thread_result_is(const void *object);

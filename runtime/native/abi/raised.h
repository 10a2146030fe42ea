/* The error slot, one per thread, where a called function stores its error. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Store an error. Implements TVMFFIErrorSetRaisedFromCStr; `kind` NULL means RuntimeError,
 * `message` NULL an empty text. */
void raised_set(const char *kind, const char *message);

/* The same with a printf format. Always returns -1. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
int raised_format(const char *kind, const char *format, ...);

/* The same for functions that return a pointer. Always returns NULL. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void *raised_null(const char *kind, const char *format, ...);

/* The number of errors that all threads have raised. Callers read it before a call, to tell this
 * call's error from one that an earlier call raised without reporting it. All threads share one
 * counter: every call reads it, and a thread-local variable takes several times as long to read. */
extern uint64_t raised_total;

static inline uint64_t raised_count(void) {
  return __atomic_load_n(&raised_total, __ATOMIC_RELAXED);
}

/* The value of raised_count() right after this thread's last error, or 0. If it is greater than a
 * count that this thread read earlier, the thread has raised since. */
uint64_t raised_at(void);

/* Store an error that another runtime raised, and did not receive from the core. */
void raised_adopt(const char *kind, size_t kind_length, const char *message, size_t length);

/* Replace the text of the stored error. It is not raised again. */
void raised_reword(const char *kind, const char *message);

/* "<kind>: <message>", borrowed until the slot changes; "" without an error. */
const char *raised_shown(void);

/* Clear the error slot of this thread. */
void raised_forget(void);

/* Return the text of an error: kind NUL message NUL. Without memory it is the text of an
 * OutOfMemoryError. Freed by raised_free, which also accepts NULL. */
char *raised_text(const char *kind, size_t kind_length, const char *message, size_t length);
void raised_free(void *text);

/* Move the error out of the slot. Return 1 if it was raised after `count` was read, -1 if before,
 * or 0 if there is none. raised_free(*kind) frees both strings together. */
int raised_take(uint64_t count, char **kind, const char **message);

/* Borrow the error without taking it. Both strings are valid until the slot changes. Return 1, or 0
 * if there is none. */
int raised_look(const char **kind, const char **message);

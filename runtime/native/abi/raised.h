/* The error slot: where a called function leaves its error, one per thread. No Python.h. */
#ifndef DSO_PACKER_ABI_RAISED_H
#define DSO_PACKER_ABI_RAISED_H

#include <stddef.h>
#include <stdint.h>

/* What libraries get as __TVMFFIErrorSetRaisedFromCStr; NULL strings are taken as unknown. */
void raised_set(const char *kind, const char *message);

/* The same of printf's format; always -1. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
int raised_format(const char *kind, const char *format, ...);

/* How often all threads have raised. Read it before a call, so that an error which an earlier call
 * raised and then did not report is never taken for this call's. One counter for all, since every
 * call reads it, and a variable of the thread's own takes several times as long. */
extern uint64_t raised_total;

static inline uint64_t raised_count(void) {
  return __atomic_load_n(&raised_total, __ATOMIC_RELAXED);
}

/* What raised_count() was right after this thread raised last; 0 before. Later than a count that
 * this thread has read: it has raised since. */
uint64_t raised_at(void);

/* Forget what was raised last in this thread. */
void raised_forget(void);

/* The text of an error: kind NUL message NUL. Without memory it is the text of an OutOfMemoryError. Freed
 * by raised_free, which also takes NULL. */
char *raised_text(const char *kind, size_t kind_length, const char *message, size_t length);
void raised_free(void *text);

/* Take the last error: 1 if it was raised since `count`, -1 if before, with both strings, to be
 * freed together by raised_free(*kind); or 0 without. The slot is empty afterwards. */
int raised_take(uint64_t count, char **kind, const char **message);

/* Look at it without taking it, as raised_take: both strings are the slot's, until it changes. */
int raised_look(const char **kind, const char **message);

#endif

/* The error slot of each thread. */
#include "abi/raised.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/pin.h"
#include "abi/tvm_ffi.h"

uint64_t raised_total;

struct slot {
  uint64_t raised_at;
  char *text;  /* kind NUL message NUL, or NULL if no error is stored */
  char *shown; /* of `text`; NULL until it is requested */
};

static _Thread_local struct slot slot;

/* Replaces the text of an error if there is no memory for it; never freed. */
static char no_memory[] = "OutOfMemoryError\0no memory for the message of an error";

/* The key's destructor frees the text of an error that the thread never took. The destructor of
 * another key may raise afterwards. */
static pthread_key_t text_key;
static pthread_once_t text_key_once = PTHREAD_ONCE_INIT;

void raised_free(void *text) {
  if (text != no_memory) free(text);
}

static void forget_shown(void) {
  free(slot.shown);
  slot.shown = NULL;
}

static void end(void *text) {
  slot.text = NULL;
  forget_shown();
  raised_free(text);
}

static void make_text_key(void) {
  pin_core(); /* threads may end after dlclose */
  (void)pthread_key_create(&text_key, end);
}

static void keep(char *text) {
  forget_shown();
  raised_free(slot.text);
  slot.text = text;
  pthread_once(&text_key_once, make_text_key);
  (void)pthread_setspecific(text_key, text);
}

char *raised_text(const char *kind, size_t kind_length, const char *message, size_t length) {
  char *text = heap_new_zeroed(1, kind_length + length + 2);
  if (text == NULL) return no_memory;
  memcpy(text, kind, kind_length);
  memcpy(text + kind_length + 1, message, length);
  return text;
}

void raised_set(const char *kind, const char *message) {
  if (kind == NULL) kind = "RuntimeError";
  if (message == NULL) message = "";
  keep(raised_text(kind, strlen(kind), message, strlen(message)));
  slot.raised_at = __atomic_add_fetch(&raised_total, 1, __ATOMIC_RELAXED);
  tvm_ffi_forward_error(kind, message);
}

void raised_adopt(const char *kind, size_t kind_length, const char *message, size_t length) {
  keep(raised_text(kind, kind_length, message, length));
  slot.raised_at = __atomic_add_fetch(&raised_total, 1, __ATOMIC_RELAXED);
}

void raised_reword(const char *kind, const char *message) {
  keep(raised_text(kind, strlen(kind), message, strlen(message)));
}

static void raise_list(const char *kind, const char *format, va_list values) {
  char message[512]; /* a longer one is allocated, and truncated only without memory */
  char *longer = NULL;
  va_list again;
  va_copy(again, values);
  if (vsnprintf(message, sizeof message, format, values) >= (int)sizeof message)
    longer = heap_format_list(format, again);
  va_end(again);
  raised_set(kind, longer != NULL ? longer : message);
  free(longer);
}

int raised_format(const char *kind, const char *format, ...) {
  va_list values;
  va_start(values, format);
  raise_list(kind, format, values);
  va_end(values);
  return -1;
}

void *raised_null(const char *kind, const char *format, ...) {
  va_list values;
  va_start(values, format);
  raise_list(kind, format, values);
  va_end(values);
  return NULL;
}

uint64_t raised_at(void) { return slot.raised_at; }

int raised_take(uint64_t count, char **kind, const char **message) {
  char *text = slot.text;
  if (text == NULL) return 0;
  forget_shown();
  slot.text = NULL;
  (void)pthread_setspecific(text_key, NULL);
  *kind = text;
  *message = text + strlen(text) + 1;
  return slot.raised_at > count ? 1 : -1;
}

int raised_look(const char **kind, const char **message) {
  if (slot.text == NULL) return 0;
  *kind = slot.text;
  *message = slot.text + strlen(slot.text) + 1;
  return 1;
}

const char *raised_shown(void) {
  const char *kind, *message;
  if (!raised_look(&kind, &message)) return "";
  if (slot.shown == NULL) slot.shown = heap_format("%s: %s", kind, message);
  return slot.shown != NULL ? slot.shown : message;
}

void raised_forget(void) {
  char *kind;
  const char *message;
  if (raised_take(0, &kind, &message) != 0) raised_free(kind);
  dso_object *forwarded = tvm_ffi_take_error();
  if (forwarded != NULL) dso_object_release(forwarded);
}

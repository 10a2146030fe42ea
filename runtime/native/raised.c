#include "raised.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heap.h"
#include "tvm_ffi.h"

uint64_t raised_total;

struct slot {
  uint64_t raised_at;
  char *text; /* kind NUL message NUL, or NULL: nothing raised, or no memory to say what */
};

static _Thread_local struct slot slot;

/* A thread that ends with an error nobody took would leak its text; a key's destructor frees it. */
static pthread_key_t text_key;
static pthread_once_t text_key_once = PTHREAD_ONCE_INIT;

static void make_text_key(void) { (void)pthread_key_create(&text_key, free); }

static void keep(char *text) {
  free(slot.text);
  slot.text = text;
  pthread_once(&text_key_once, make_text_key);
  (void)pthread_setspecific(text_key, text);
}

void raised_set(const char *kind, const char *message) {
  if (kind == NULL) kind = "RuntimeError";
  if (message == NULL) message = "";
  size_t kind_size = strlen(kind) + 1, message_size = strlen(message) + 1;
  char *text = heap_new(kind_size + message_size);
  if (text != NULL) {
    memcpy(text, kind, kind_size);
    memcpy(text + kind_size, message, message_size);
  }
  keep(text);
  slot.raised_at = __atomic_add_fetch(&raised_total, 1, __ATOMIC_RELAXED);
  tvm_ffi_forward_error(kind, message);
}

int raised_format(const char *kind, const char *format, ...) {
  char message[512]; /* what does not fit is cut */
  va_list values;
  va_start(values, format);
  vsnprintf(message, sizeof message, format, values);
  va_end(values);
  raised_set(kind, message);
  return -1;
}

uint64_t raised_at(void) { return slot.raised_at; }

int raised_take(uint64_t count, char **kind, const char **message) {
  char *text = slot.text;
  if (text == NULL) return 0;
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

void raised_forget(void) {
  char *kind;
  const char *message;
  if (raised_take(0, &kind, &message) != 0) free(kind);
  dso_object *forwarded = tvm_ffi_take_error();
  if (forwarded != NULL) dso_object_release(forwarded);
}

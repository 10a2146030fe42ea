#include "raised.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tvm_ffi.h"

struct slot {
  uint64_t count;
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
  char *text = malloc(kind_size + message_size);
  if (text != NULL) {
    memcpy(text, kind, kind_size);
    memcpy(text + kind_size, message, message_size);
  }
  keep(text);
  slot.count++;
  tvm_ffi_forward_error(kind, message);
}

uint64_t raised_count(void) { return slot.count; }

int raised_take(uint64_t count, char **kind, const char **message) {
  char *text = slot.text;
  if (text == NULL) return 0;
  slot.text = NULL;
  (void)pthread_setspecific(text_key, NULL);
  *kind = text;
  *message = text + strlen(text) + 1;
  return slot.count == count ? -1 : 1;
}

/* TVMFFIHandleInitOnce: host code makes a handle once, at its first use. */
#define _POSIX_C_SOURCE 200809L /* PTHREAD_MUTEX_RECURSIVE */
#include <pthread.h>

#include "abi/embedder.h"
#include "abi/raised.h"
#include "abi/recursive_lock.h"
#include "library/provided.h"

/* Recursive: `init` of one handle may request another handle. */
static pthread_mutex_t lock;
static pthread_once_t lock_once = PTHREAD_ONCE_INIT;

static void reset_lock(void) { recursive_lock_init(&lock); }

/* After fork the child resets the lock: a thread that exists only in the parent may hold it. */
static void make_lock(void) {
  reset_lock();
  (void)pthread_atfork(NULL, NULL, reset_lock);
}

static int make_handle(void **handle, int (*init)(void **result)) {
  void *made = NULL;
  if (*handle != NULL) return 0;
  if (init(&made) != 0) return -1;
  if (made == NULL) return raised_format("RuntimeError", "init: expected a handle, found NULL");
  __atomic_store_n(handle, made, __ATOMIC_RELEASE);
  return 0;
}

static int make_locked(void **handle, int (*init)(void **result)) {
  pthread_once(&lock_once, make_lock);
  pthread_mutex_lock(&lock);
  int status = make_handle(handle, init);
  pthread_mutex_unlock(&lock);
  return status;
}

/* A thread that waits for the lock releases the embedder's lock: the owner may be waiting for it. */
int TVMFFIHandleInitOnce(void **handle, int (*init)(void **result)) {
  if (__atomic_load_n(handle, __ATOMIC_ACQUIRE) != NULL) return 0;
  void *state = embedder.suspend();
  int status = make_locked(handle, init);
  if (state != NULL) embedder.resume(state);
  return status;
}

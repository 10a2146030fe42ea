/* The embedder's lock, and what a fork does with it. */
#include "module/embedder_lock.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void enter(void) { pthread_mutex_lock(&lock); }
static void leave(void) { pthread_mutex_unlock(&lock); }

/* A child that is forked while another thread holds the lock would wait for ever, so a fork waits
 * for it. */
static void prepare(void) { (void)pthread_atfork(enter, leave, leave); }

void embedder_lock(void) {
  pthread_once(&once, prepare);
  enter();
}

void embedder_unlock(void) { leave(); }

/* A mutex that the thread which holds it may lock again. Its users define _POSIX_C_SOURCE. */
#pragma once

#include <pthread.h>

static inline void recursive_lock_init(pthread_mutex_t *lock) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(lock, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

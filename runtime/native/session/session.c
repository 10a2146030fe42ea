/* Sessions: begin and end of a call, fork, reset. */
#include "session/session.h"

#include <inttypes.h>
#include <stdlib.h>

#include "abi/heap.h"
#include "abi/raised.h"

static void delete_session(void *object, int flags) {
  struct session *self = object;
  if (flags & DSO_DELETE_STRONG) {
    for (size_t i = 0; i < self->num_states; i++) state_clear(&self->states[i]);
    free(self->states);
  }
  object_free(self, flags);
}

struct session *session_new(int64_t most) {
  if (most < 0) {
    raised_format("ValueError", "session: maximum %" PRId64 ", expected at least 1, or 0 for none",
                  most);
    return NULL;
  }
  struct session *self = object_new(sizeof *self, DSO_OBJECT, delete_session);
  if (self == NULL) raised_set("OutOfMemoryError", "no memory for a session");
  else self->most = most;
  return self;
}

static int take(struct session *self) {
  if (atomic_exchange_explicit(&self->is_used, 1, memory_order_acquire) == 0) return 0;
  return raised_format("RuntimeError",
                       "session: expected one that no call uses, found one in use; let each thread "
                       "have a session, made by session() or fork()");
}

static void give_back(struct session *self) {
  atomic_store_explicit(&self->is_used, 0, memory_order_release);
}

int session_begin(struct session *self, const void *model) {
  if (take(self) != 0) return -1;
  if (self->model == NULL) self->model = model;
  if (self->model == model) return 0;
  give_back(self);
  return raised_format("ValueError",
                       "session: expected a function of the model that used it first, found one of "
                       "another model; make a session for each");
}

void session_end(struct session *self, int is_done) {
  for (size_t i = 0; i < self->num_states; i++) {
    struct state *state = &self->states[i];
    if (is_done && state->next.ndim >= 0) {
      state->shape = state->next;
      if (!state->is_appended) {
        struct block *former = state->block;
        state->block = state->other;
        state->other = former;
      }
    }
    state->next.ndim = -1;
  }
  give_back(self);
}

static void forget(struct session *self) {
  for (size_t i = 0; i < self->num_states; i++) self->states[i].shape.ndim = -1;
}

int session_reset(struct session *self) {
  if (take(self) != 0) return -1;
  forget(self);
  give_back(self);
  return 0;
}

int session_length(struct session *self, int64_t *length) {
  if (take(self) != 0) return -1;
  *length = 0;
  for (size_t i = 0; i < self->num_states; i++) {
    const struct state *state = &self->states[i];
    if (!state->is_appended || state->shape.ndim < 1) continue;
    *length = state->shape.dims[0];
    break;
  }
  give_back(self);
  return 0;
}

struct session *session_fork(struct session *self) {
  if (take(self) != 0) return NULL;
  struct session *fork = session_new(self->most);
  if (fork != NULL && self->num_states > 0) {
    fork->states = heap_new_zeroed(self->num_states, sizeof *fork->states);
    if (fork->states == NULL) {
      raised_set("OutOfMemoryError", "no memory for a session");
      object_release(&fork->object);
      fork = NULL;
    }
  }
  if (fork != NULL) {
    fork->model = self->model;
    fork->num_states = self->num_states;
    for (size_t i = 0; i < self->num_states; i++) state_share(&self->states[i], &fork->states[i]);
  }
  give_back(self);
  return fork;
}

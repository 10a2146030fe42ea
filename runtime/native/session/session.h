/* A session: the state of a model from call to call, as the keys and values of earlier tokens.
 *
 * A model has states, which its code numbers from 0. A state is a tensor: a call appends rows to
 * it, in place, or replaces it. Changes count once the call has returned without an error. One call
 * uses a session at a time. */
#ifndef DSO_PACKER_SESSION_SESSION_H
#define DSO_PACKER_SESSION_SESSION_H

#include <stdatomic.h>
#include <stdint.h>

#include "abi/object.h"

enum { SESSION_MOST_STATES = 1 << 12, SESSION_MOST_DIMS = 8 };

/* The type and the extents of a tensor. */
struct state_shape {
  DLDataType dtype;
  int32_t ndim; /* -1: there is no tensor yet */
  int64_t dims[SESSION_MOST_DIMS];
};

struct state {
  struct state_shape shape, next; /* `next` is what the call in progress made */
  struct block *block;            /* the memory of `shape`, or NULL; a fork shares it */
  struct block *other;            /* of a state that calls replace: the memory of `next` */
  int is_appended;
};

struct session {
  dso_object object;
  atomic_int is_used; /* by a call */
  const void *model;  /* whose states these are: the first that used the session; or NULL */
  int64_t most;       /* rows of a state; 0: as many as memory has */
  size_t num_states;
  struct state *states;
};

/* ---- The session (session.c). Errors are raised; functions that return int return 0 or -1. */

struct session *session_new(int64_t most);
struct session *session_fork(struct session *self); /* with the same states; NULL if it is used */
int session_reset(struct session *self);            /* as a new one; keeps its memory */
int session_length(struct session *self, int64_t *length); /* rows of the first appended state */

/* Begin and end a call of a model. If it is done, its changes count. */
int session_begin(struct session *self, const void *model);
void session_end(struct session *self, int is_done);

/* ---- States, during a call (state.c). Each returns a new tensor that views the session's memory,
 * or NULL with an error raised. */

/* The tensor as the last call left it, else zeros; `shape` is what the code expects. */
dso_tensor_object *state_read(struct session *self, int64_t index, const struct state_shape *shape);
/* The tensor with more rows (the first extent): the former ones are unchanged. */
dso_tensor_object *state_append(struct session *self, int64_t index,
                                const struct state_shape *shape);
/* Memory for the tensor that replaces the present one. */
dso_tensor_object *state_write(struct session *self, int64_t index,
                               const struct state_shape *shape);

/* An extent of the tensor; 0 without one. */
int state_extent(struct session *self, int64_t index, int64_t axis, int64_t *extent);

/* Store 1 if a call made the tensor, else 0. */
int state_has_value(struct session *self, int64_t index, int *has_value);

/* Free the memory of a state. */
void state_clear(struct state *state);

/* Share a state's tensor with another session. */
void state_share(const struct state *state, struct state *other);

#endif

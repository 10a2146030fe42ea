/* The tensors of a session, and their memory. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "abi/dlpack.h"
#include "abi/dtype.h"
#include "abi/heap.h"
#include "abi/raised.h"
#include "device/cpu_memory.h"
#include "device/tensor_object.h"
#include "session/session.h"

/* Rows that a block has room for at first. */
enum { FIRST_ROWS = 64 };

/* Memory that forks and tensors share. */
struct block {
  dso_object object;
  void *data;
  size_t nbytes;
};

static void delete_block(void *object, int flags) {
  if (flags & DSO_DELETE_STRONG) cpu_memory_free(((struct block *)object)->data);
  object_free(object, flags);
}

static struct block *block_new(size_t nbytes) {
  struct block *block = object_new(sizeof *block, DSO_OBJECT, delete_block);
  if (block != NULL) {
    block->data = cpu_memory_new(nbytes > 0 ? nbytes : 1, TENSOR_ALIGNMENT);
    block->nbytes = nbytes;
    if (block->data != NULL) return block;
    object_release(&block->object);
  }
  raised_format("OutOfMemoryError", "session: no memory for a state of %zu bytes", nbytes);
  return NULL;
}

static void block_release(struct block *block) {
  if (block != NULL) object_release(&block->object);
}

/* ---- A session's states */

void state_clear(struct state *state) {
  block_release(state->block);
  block_release(state->other);
}

void state_share(const struct state *state, struct state *other) {
  *other = (struct state){.shape = state->shape,
                          .next = {.ndim = -1},
                          .block = state->block,
                          .is_appended = state->is_appended};
  if (other->block != NULL) object_retain(&other->block->object);
}

static struct state *state_at(struct session *self, int64_t index) {
  if (index < 0 || index >= SESSION_MOST_STATES) {
    raised_format("IndexError", "session: state %" PRId64 ", expected less than %d", index,
                  SESSION_MOST_STATES);
    return NULL;
  }
  size_t count = (size_t)index + 1;
  if (count <= self->num_states) return &self->states[index];
  struct state *states = heap_resize(self->states, count * sizeof *states);
  if (states == NULL) {
    raised_set("OutOfMemoryError", "no memory for a session");
    return NULL;
  }
  self->states = states;
  for (; self->num_states < count; self->num_states++)
    states[self->num_states] = (struct state){.shape = {.ndim = -1}, .next = {.ndim = -1}};
  return &states[index];
}

int state_extent(struct session *self, int64_t index, int64_t axis, int64_t *extent) {
  const struct state *state = state_at(self, index);
  if (state == NULL) return -1;
  *extent = axis >= 0 && axis < state->shape.ndim ? state->shape.dims[axis] : 0;
  return 0;
}

int state_has_value(struct session *self, int64_t index, int *has_value) {
  const struct state *state = state_at(self, index);
  if (state == NULL) return -1;
  *has_value = state->shape.ndim >= 0;
  return 0;
}

static int refuse(int64_t index, int axis, int64_t expected, int64_t found) {
  return raised_format("ValueError",
                       "session: state %" PRId64 ": extent of axis %d, expected %" PRId64
                       " as in earlier calls, found %" PRId64 "; reset the session to change it",
                       index, axis, expected, found);
}

/* Compare with the tensor that there is, from an axis on. */
static int check_same(const struct state *state, int64_t index, const struct state_shape *shape,
                      int first) {
  const struct state_shape *own = &state->shape;
  if (own->ndim < 0) return 0;
  if (own->ndim != shape->ndim || memcmp(&own->dtype, &shape->dtype, sizeof own->dtype) != 0)
    return raised_format("TypeError",
                         "session: state %" PRId64
                         " has another data type or number of axes than in earlier calls; use a "
                         "session with one model",
                         index);
  for (int axis = first; axis < own->ndim; axis++)
    if (own->dims[axis] != shape->dims[axis])
      return refuse(index, axis, own->dims[axis], shape->dims[axis]);
  return 0;
}

static int nbytes_of(const struct state_shape *shape, size_t *nbytes) {
  if (dtype_nbytes(shape->dtype, shape->ndim, shape->dims, nbytes) == 0) return 0;
  return raised_format("ValueError",
                       "session: a state has an extent that is negative or too large");
}

static dso_tensor_object *view(struct block *block, const struct state_shape *shape) {
  object_retain(&block->object);
  dso_tensor_object *tensor =
      tensor_object_view(shape->dtype, shape->ndim, shape->dims, &block->object);
  if (tensor == NULL) return NULL;
  tensor->tensor.device = (DLDevice){DLPACK_CPU, 0};
  tensor->tensor.data = block->data;
  return tensor;
}

/* Let a block have so many bytes that only this session sees, of which the first ones are kept. */
static int own_block(struct block **block, size_t nbytes, size_t room, size_t kept) {
  struct block *former = *block;
  if (former != NULL && former->nbytes >= nbytes && object_is_sole(&former->object)) return 0;
  struct block *made = block_new(room > nbytes ? room : nbytes);
  if (made == NULL) return -1;
  if (former != NULL) memcpy(made->data, former->data, kept);
  block_release(former);
  *block = made;
  return 0;
}

dso_tensor_object *state_read(struct session *self, int64_t index,
                              const struct state_shape *shape) {
  struct state *state = state_at(self, index);
  size_t nbytes;
  if (state == NULL || nbytes_of(shape, &nbytes) != 0 || check_same(state, index, shape, 0) != 0)
    return NULL;
  if (state->shape.ndim < 0 && !(state->is_appended && state->next.ndim >= 0)) {
    if (own_block(&state->block, nbytes, 0, 0) != 0) return NULL;
    memset(state->block->data, 0, nbytes);
  }
  return view(state->block, shape);
}

/* ---- Appending */

static int check_rows(const struct session *self, const struct state *state, int64_t index,
                      const struct state_shape *shape) {
  int64_t rows = state->shape.ndim > 0 ? state->shape.dims[0] : 0;
  if (shape->ndim < 1 || shape->dims[0] < rows)
    return raised_format("ValueError",
                         "session: state %" PRId64 ": expected at least its %" PRId64 " rows",
                         index, rows);
  if (self->most == 0 || shape->dims[0] <= self->most) return 0;
  return raised_format("ValueError",
                       "session: length %" PRId64 ", expected at most %" PRId64
                       "; reset it, or make one with a greater maximum",
                       shape->dims[0], self->most);
}

/* The rows to make room for: all that there may be, else twice as many as now. */
static size_t room_of(const struct session *self, const struct state *state,
                      const struct state_shape *shape) {
  struct state_shape larger = *shape;
  size_t nbytes;
  int64_t rows = shape->dims[0] > FIRST_ROWS ? shape->dims[0] : FIRST_ROWS;
  if (state->shape.ndim > 0 && state->shape.dims[0] > 0 && rows < 2 * state->shape.dims[0])
    rows = 2 * state->shape.dims[0];
  if (self->most > 0) rows = self->most;
  larger.dims[0] = rows;
  return nbytes_of(&larger, &nbytes) == 0 ? nbytes : 0;
}

dso_tensor_object *state_append(struct session *self, int64_t index,
                                const struct state_shape *shape) {
  struct state *state = state_at(self, index);
  size_t nbytes, kept = 0;
  if (state == NULL || nbytes_of(shape, &nbytes) != 0 || check_same(state, index, shape, 1) != 0 ||
      check_rows(self, state, index, shape) != 0)
    return NULL;
  if (state->shape.ndim >= 0 && nbytes_of(&state->shape, &kept) != 0) return NULL;
  if (own_block(&state->block, nbytes, room_of(self, state, shape), kept) != 0) return NULL;
  state->is_appended = 1;
  state->next = *shape;
  return view(state->block, shape);
}

dso_tensor_object *state_write(struct session *self, int64_t index,
                               const struct state_shape *shape) {
  struct state *state = state_at(self, index);
  size_t nbytes;
  if (state == NULL || nbytes_of(shape, &nbytes) != 0 ||
      own_block(&state->other, nbytes, 0, 0) != 0)
    return NULL;
  state->next = *shape;
  return view(state->other, shape);
}

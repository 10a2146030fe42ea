/* A bound graph: running it, and binding its arrays to other memory. */

#include "abi/raised.h"
#include "graph/binding.h"

/* ---- Running. The arrays belong to one run: two at once would overwrite each other's data. */

static int begin(struct binding *self) {
  if (!__atomic_exchange_n(&self->is_running, 1, __ATOMIC_ACQUIRE)) return 0;
  return raised_format("RuntimeError", "the executor is running, in another thread or in a caller "
                                       "of this call; create one executor per thread");
}

static void end(struct binding *self) { __atomic_store_n(&self->is_running, 0, __ATOMIC_RELEASE); }

/* A function that fails should raise; this is the error if it has not. */
static int fail(const struct binding *self, size_t call, uint64_t raised) {
  struct span name = self->callers[call]->name;
  if (raised_at() > raised) return -1;
  return raised_format("RuntimeError", "%.*s: returned -1 without raising", (int)name.size,
                       name.data);
}

int binding_run(struct binding *self, size_t first, size_t stop) {
  if (begin(self) != 0) return -1;
  uint64_t raised = raised_count();
  size_t done = first + calls_run(self->calls + first, stop - first);
  end(self);
  return done == stop ? 0 : fail(self, done, raised);
}

/* ---- Binding */

/* Takes over the reference to the array. */
static void put(struct binding *self, size_t slot, dso_tensor_object *array) {
  object_release(&self->arrays[slot]->object);
  self->arrays[slot] = array;
  self->slots[slot].tensor = array->tensor;
}

static int is_fit(const struct binding *self, size_t entry, const dso_tensor_object *array) {
  int is_readonly = (tensor_object_flags(&array->object) & TENSOR_READ_ONLY) != 0;
  size_t slot = entry;
  do {
    if (!slot_is_fit(&self->slots[slot], &array->tensor, is_readonly)) return 0;
  } while ((slot = self->next_view[slot]) != 0);
  return slot_is_kind(&self->slots[entry], &array->tensor);
}

static int bind_all(struct binding *self, size_t entry, dso_tensor_object *array) {
  for (size_t slot = self->next_view[entry]; slot != 0; slot = self->next_view[slot]) {
    const DLTensor *own = &self->own[slot]->tensor;
    dso_tensor_object *view = graph_view(array, own->dtype, own->ndim, own->shape);
    if (view == NULL) return -1;
    put(self, slot, view);
  }
  object_retain(&array->object);
  put(self, entry, array);
  return 1;
}

int binding_bind(struct binding *self, size_t entry, dso_tensor_object *array) {
  if (binding_is_view(self, entry) || !is_fit(self, entry, array)) return 0;
  if (begin(self) != 0) return -1;
  int status = bind_all(self, entry, array);
  end(self);
  return status;
}

int binding_copy(struct binding *self, size_t entry, const DLTensor *array) {
  if (self->arrays[entry] != self->own[entry] && binding_bind(self, entry, self->own[entry]) < 0)
    return -1;
  return tensor_copy(&self->own[entry]->tensor, array);
}

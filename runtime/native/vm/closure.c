/* Closures: Function objects that hold the last arguments of a routine or of another function. */
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "vm/vm.h"

enum { ROOM = 16 };

static void release_held(const struct vm_closure *self) {
  for (int32_t i = 0; i < self->num_saved; i++) any_release(&self->saved[i]);
  if (self->called != NULL) object_release(&self->called->object);
  if (self->routine != NULL) vm_release(self->routine->machine);
}

static void end_closure(struct ending *ending) {
  struct vm_closure *self = (void *)((char *)ending - offsetof(struct vm_closure, ending));
  release_held(self);
  object_free(self, DSO_DELETE_WEAK);
}

static void delete_closure(void *object, int flags) {
  struct vm_closure *self = object;
  if (flags == (DSO_DELETE_STRONG | DSO_DELETE_WEAK)) {
    end_in_turn(&self->ending, end_closure);
    return;
  }
  if (flags & DSO_DELETE_STRONG) release_held(self); /* weak references remain */
  object_free(self, flags);
}

static int call(const struct vm_closure *self, const dso_any *args, int32_t num_args,
                dso_any *result) {
  if (self->routine != NULL) return vm_call(self->routine, args, num_args, result);
  return vm_call_function(self->called, args, num_args, result);
}

/* The safe call: the caller's arguments, followed by the saved ones. */
static int call_closure(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  const struct vm_closure *self = handle;
  dso_any room[ROOM], *all = room;
  if (num_args < 0)
    return raised_format("TypeError", "closure: expected at least 0 arguments, found %d",
                         (int)num_args);
  if (self->num_saved == 0) return call(self, args, num_args, result);
  size_t count = (size_t)num_args + (size_t)self->num_saved;
  if (count > ROOM && (all = heap_new(count * sizeof *all)) == NULL)
    return raised_format("OutOfMemoryError", "no memory for %zu arguments", count);
  if (num_args > 0) memcpy(all, args, (size_t)num_args * sizeof *all);
  memcpy(all + num_args, self->saved, (size_t)self->num_saved * sizeof *all);
  int status = call(self, all, (int32_t)count, result);
  if (all != room) free(all);
  return status;
}

static struct vm_closure *make(const struct vm_routine *routine, dso_function_object *called,
                               int32_t num_saved) {
  struct vm_closure *self =
      object_new(sizeof *self + (size_t)num_saved * sizeof(dso_any), DSO_FUNCTION, delete_closure);
  if (self == NULL) return raised_null("OutOfMemoryError", "no memory for a closure");
  self->function.safe_call = call_closure;
  self->routine = routine;
  self->called = called;
  if (routine != NULL) vm_retain(routine->machine);
  if (called != NULL) object_retain(&called->object);
  return self;
}

dso_object *vm_closure_new(const struct vm_routine *routine) {
  struct vm_closure *self = make(routine, NULL, 0);
  return self != NULL ? &self->function.object : NULL;
}

static void save(struct vm_closure *self, const dso_any *values, int32_t count) {
  for (int32_t i = 0; i < count; i++) {
    any_retain(&values[i]);
    self->saved[self->num_saved++] = values[i];
  }
}

dso_object *vm_closure_bind(dso_object *function, const dso_any *saved, int32_t num_saved) {
  const struct vm_closure *inner = vm_closure_of(function);
  int32_t count = num_saved + (inner != NULL ? inner->num_saved : 0);
  struct vm_closure *self = inner != NULL
                                ? make(inner->routine, inner->called, count)
                                : make(NULL, (dso_function_object *)(void *)function, count);
  if (self == NULL) return NULL;
  save(self, saved, num_saved);
  if (inner != NULL) save(self, inner->saved, inner->num_saved);
  return &self->function.object;
}

const struct vm_closure *vm_closure_of(const dso_object *function) {
  return function->deleter == delete_closure ? (const struct vm_closure *)(const void *)function
                                             : NULL;
}

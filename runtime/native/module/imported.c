/* Function objects that the code of a library gets for its imports. */
#include "module/imported.h"

#include <string.h>

#include "abi/raised.h"
#include "library/in_call.h"
#include "library/provided.h"

struct imported {
  dso_function_object shell;
  dso_object *function, *provider; /* NULL after the drop */
  struct context *context;
  struct imported *next_retired, *next_queued;
  int is_retired, is_queued;
  char name[];
};

static struct imported *queue; /* of retired shells, each with a reference */

/* ---- Dropping the function */

/* No thread is calling the shell. */
static void drop(struct imported *self) {
  dso_object *function = __atomic_exchange_n(&self->function, NULL, __ATOMIC_ACQ_REL);
  dso_object *provider = __atomic_exchange_n(&self->provider, NULL, __ATOMIC_ACQ_REL);
  if (function != NULL) object_release(function);
  if (provider != NULL) object_release(provider);
}

/* The thread returns to code of the library, which the last reference would unmap. */
static void drop_later(struct imported *self) {
  if (__atomic_exchange_n(&self->is_queued, 1, __ATOMIC_ACQ_REL)) return;
  object_retain(&self->shell.object);
  self->next_queued = __atomic_load_n(&queue, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&queue, &self->next_queued, self, 0, __ATOMIC_RELEASE,
                                      __ATOMIC_RELAXED))
    continue;
}

static int is_in_call(void) { return in_call_here != NULL && in_call_here->depth > 0; }

void imported_collect(void) {
  if (__atomic_load_n(&queue, __ATOMIC_RELAXED) == NULL || is_in_call()) return;
  struct imported *self = __atomic_exchange_n(&queue, NULL, __ATOMIC_ACQUIRE);
  in_call_barrier();
  while (self != NULL) {
    struct imported *next = self->next_queued;
    __atomic_store_n(&self->is_queued, 0, __ATOMIC_RELEASE);
    if (!in_call_any(self)) drop(self); /* else that call queues it again */
    object_release(&self->shell.object);
    self = next;
  }
}

void imported_drop_all(struct imported *list) {
  if (list != NULL) in_call_barrier(); /* one for all, because it interrupts every thread */
  while (list != NULL) {
    struct imported *next = list->next_retired;
    if (!in_call_any(list)) drop(list);
    list = next;
  }
}

/* ---- Calls */

static int is_retired(const struct imported *self) {
  return __atomic_load_n(&self->is_retired, __ATOMIC_ACQUIRE);
}

static int look_up_and_call(void *shell, const dso_any *args, int32_t num_args, dso_any *result) {
  const struct imported *self = shell;
  void *function;
  if (TVMFFIEnvModLookupFromImports(self->context, self->name, &function) != 0) return -1;
  return TVMFFIFunctionCall(function, args, num_args, result);
}

static int call(void *shell, const dso_any *args, int32_t num_args, dso_any *result) {
  struct imported *self = shell;
  struct in_call *here = in_call_enter(self);
  if (here == NULL) return raised_format("OutOfMemoryError", "no memory for a call");
  if (is_retired(self)) {
    in_call_leave(here);
    return look_up_and_call(shell, args, num_args, result);
  }
  dso_function_object *function = (dso_function_object *)(void *)self->function;
  int status = function->safe_call(function, args, num_args, result);
  in_call_leave(here);
  if (is_retired(self)) drop_later(self);
  return status;
}

/* ---- The shell */

static void delete_shell(void *shell, int flags) {
  if (flags & DSO_DELETE_STRONG) drop(shell);
  object_free(shell, flags);
}

dso_object *imported_new(struct context *context, const char *name, dso_object *function,
                         dso_object *provider) {
  size_t size = strlen(name) + 1;
  struct imported *self = object_new(sizeof *self + size, DSO_FUNCTION, delete_shell);
  if (self == NULL) return raised_null("OutOfMemoryError", "no memory for an imported function");
  self->shell.safe_call = call;
  self->context = context;
  self->function = function;
  self->provider = provider;
  object_retain(function);
  object_retain(provider);
  memcpy(self->name, name, size);
  return &self->shell.object;
}

void imported_retire(dso_object *shell, struct imported **list) {
  struct imported *self = (struct imported *)(void *)shell;
  self->next_retired = *list;
  *list = self;
  __atomic_store_n(&self->shell.safe_call, look_up_and_call, __ATOMIC_RELEASE);
  __atomic_store_n(&self->is_retired, 1, __ATOMIC_RELEASE);
}

/* Functions of a machine that use a session. */
#include "abi/raised.h"
#include "session/session.h"
#include "vm/vm.h"

struct session_function {
  dso_function_object function;
  const struct vm_routine *routine; /* its machine is retained */
  struct session *session;
};

static int call(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  const struct session_function *self = handle;
  if (session_begin(self->session, self->routine->machine) != 0) return -1;
  int status = vm_call_with(self->routine, self->session, args, num_args, result);
  session_end(self->session, status == 0);
  return status;
}

static void delete_function(void *object, int flags) {
  struct session_function *self = object;
  if (flags & DSO_DELETE_STRONG) {
    object_release(&self->session->object);
    vm_release(self->routine->machine);
  }
  object_free(self, flags);
}

dso_object *vm_session_function(const struct vm_routine *routine, struct session *session) {
  struct session_function *self = object_new(sizeof *self, DSO_FUNCTION, delete_function);
  if (self == NULL) return raised_null("OutOfMemoryError", "no memory for a function");
  self->function.safe_call = call;
  self->routine = routine;
  self->session = session;
  vm_retain(routine->machine);
  object_retain(&session->object);
  return &self->function.object;
}

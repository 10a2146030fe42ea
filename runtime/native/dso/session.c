/* Sessions: functions of a module whose calls keep state. */
#include "session/session.h"

#include <stdlib.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "dso.h"
#include "dso/null.h"
#include "module/embedder.h"
#include "module/module.h"

struct dso_session {
  dso_module *module;
  struct session *session;
};

/* Takes over the reference to `session`, which may be NULL with an error raised. */
static dso_session *make(dso_module *module, struct session *session) {
  if (session == NULL) return NULL;
  dso_session *self = heap_new(sizeof *self);
  if (self == NULL) {
    object_release(&session->object);
    return raised_null("OutOfMemoryError", "no memory for a session");
  }
  module_retain(module);
  *self = (dso_session){module, session};
  return self;
}

dso_session *dso_session_new(dso_module *module, int64_t maximum) {
  if (is_null(module, "dso_session_new", "a module")) return NULL;
  return make(module, session_new(maximum));
}

dso_session *dso_session_fork(dso_session *session) {
  if (is_null(session, "dso_session_fork", "a session")) return NULL;
  return make(session->module, session_fork(session->session));
}

void dso_session_release(dso_session *session) {
  if (session == NULL) return;
  object_release(&session->session->object);
  module_release(session->module);
  free(session);
}

int dso_session_reset(dso_session *session) {
  return is_null(session, "dso_session_reset", "a session") ? -1 : session_reset(session->session);
}

int dso_session_length(dso_session *session, int64_t *length) {
  if (is_null(session, "dso_session_length", "a session") ||
      is_null(length, "dso_session_length", "a length to fill"))
    return -1;
  return session_length(session->session, length);
}

/* ---- Functions */

dso_function *dso_session_function(dso_session *session, const char *name) {
  dso_function *function = NULL;
  embedder_collect();
  if (is_null(session, "dso_session_function", "a session") ||
      is_null(name, "dso_session_function", "a name"))
    return NULL;
  int status = module_find_with(session->module, session->session, name, &function);
  if (status == 0) (void)module_not_found(session->module, name);
  return status > 0 ? function : NULL;
}

int dso_session_call(dso_session *session, const char *name, dso_any *result, const dso_any *args,
                     int32_t num_args) {
  if (result != NULL) *result = dso_none();
  if (num_args > 0 && is_null(args, "dso_session_call", "arguments")) return -1;
  dso_function *function = dso_session_function(session, name);
  if (function == NULL) return -1;
  int status = dso_function_call(function, result, args, num_args);
  dso_function_release(function);
  return status;
}

/* The built-in functions for the states of a session: dso.state.extent (index, axis),
 * dso.state.expect (index, whether it has a value, the text of the error), and dso.state.read, .append and .write (index, shape, data type). */
#include <string.h>

#include "abi/raised.h"
#include "session/session.h"
#include "vm/builtin.h"

static struct session *session_of(const struct vm_run *run) {
  struct session *session = vm_session_of_run(run);
  if (session == NULL)
    raised_format("RuntimeError",
                  "the model has state, expected a call by a session, found one without; "
                  "session = model.session(), session[name](...), or dso_session_call");
  return session;
}

typedef dso_tensor_object *(*state_function)(struct session *self, int64_t index,
                                             const struct state_shape *shape);

static int give(struct vm_run *run, const char *name, state_function function, const dso_any *args,
                dso_any *result) {
  struct session *session = session_of(run);
  struct vm_dims dims;
  struct state_shape shape;
  if (session == NULL) return -1;
  if (args[0].type_index != DSO_INT) return vm_refuse_argument(name, 0, "int", &args[0]);
  if (vm_read_dims(name, 1, &args[1], &dims) != 0) return -1;
  if (args[2].type_index != DSO_DATA_TYPE) return vm_refuse_argument(name, 2, "a dtype", &args[2]);
  if (dims.ndim > SESSION_MOST_DIMS)
    return raised_format("ValueError", "%s: expected at most %d axes", name, SESSION_MOST_DIMS);
  shape = (struct state_shape){.dtype = args[2].v_dtype, .ndim = (int32_t)dims.ndim};
  memcpy(shape.dims, dims.dims, (size_t)dims.ndim * sizeof *shape.dims);
  dso_tensor_object *tensor = function(session, args[0].v_int64, &shape);
  if (tensor == NULL) return -1;
  *result = any_of_object(tensor);
  return 0;
}

VM_BUILTIN(vm_state_read) {
  (void)num_args;
  return give(run, "dso.state.read", state_read, args, result);
}

VM_BUILTIN(vm_state_append) {
  (void)num_args;
  return give(run, "dso.state.append", state_append, args, result);
}

VM_BUILTIN(vm_state_write) {
  (void)num_args;
  return give(run, "dso.state.write", state_write, args, result);
}

static int check_ints(const char *name, const dso_any *args) {
  for (int i = 0; i < 2; i++)
    if (args[i].type_index != DSO_INT) return vm_refuse_argument(name, i, "int", &args[i]);
  return 0;
}

VM_BUILTIN(vm_state_extent) {
  struct session *session = session_of(run);
  (void)num_args;
  if (session == NULL || check_ints("dso.state.extent", args) != 0) return -1;
  *result = (dso_any){.type_index = DSO_INT};
  return state_extent(session, args[0].v_int64, args[1].v_int64, &result->v_int64);
}

VM_BUILTIN(vm_state_expect) {
  struct session *session = session_of(run);
  const char *text;
  size_t nbytes;
  int has_value;
  (void)num_args;
  if (session == NULL || check_ints("dso.state.expect", args) != 0) return -1;
  if (!vm_read_text(&args[2], &text, &nbytes))
    return vm_refuse_argument("dso.state.expect", 2, "str", &args[2]);
  if (state_has_value(session, args[0].v_int64, &has_value) != 0) return -1;
  *result = (dso_any){.type_index = DSO_NONE};
  return has_value == (args[1].v_int64 != 0) ? 0 : raised_format("RuntimeError", "%s", text);
}

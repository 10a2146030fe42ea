// A library that uses libdso: loads, calls, registers a function, and tells its errors.
#include <dso.h>

extern "C" {
DSO_EXPORT dso_module *plugin_load(const char *path) { return dso_load(path, nullptr); }
DSO_EXPORT const char *plugin_error() { return dso_last_error(); }
DSO_EXPORT void plugin_release(dso_module *module) { dso_module_release(module); }

// Call name(a, b), or name(text, b). Returns -1 after an error.
DSO_EXPORT int64_t plugin_call(dso_module *module, const char *name, int64_t a, const char *text) {
  dso_any result, args[] = {text ? dso_string(text) : dso_int(a), dso_int(2)};
  if (dso_module_call(module, name, &result, args, 2) != 0) return -1;
  return result.v_int64;
}

static int answer(void *handle, const dso_any *, int32_t, dso_any *result) {
  *result = dso_int(*static_cast<int64_t *>(handle));
  return 0;
}

// Register a global function that returns a number.
DSO_EXPORT int plugin_register(const char *name, int64_t number) {
  dso_function *function = dso_function_new(
      answer, new int64_t(number), [](void *handle) { delete static_cast<int64_t *>(handle); });
  int status = function ? dso_register_function(name, function) : -1;
  dso_function_release(function);
  return status;
}
}

/* The error of a load. */
#include "library/load_error.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int load_error_set(struct load_error *error, const char *reason, const char *format, ...) {
  va_list values;
  error->reason = reason;
  error->is_memory = 0;
  va_start(values, format);
  vsnprintf(error->message, sizeof error->message, format, values);
  va_end(values);
  return -1;
}

int load_error_memory(struct load_error *error) {
  (void)load_error_set(error, "io", "out of memory");
  error->is_memory = 1;
  return -1;
}

/* The bytecode of such a model is C code, which runs only inside TVM's virtual machine. */
static int is_compiled_model(const char *text) {
  return strstr(text, "undefined symbol: TVMBackendAnyList") != NULL;
}

/* dlerror() often begins with the path, which the caller's message contains already. */
int load_error_dlopen(struct load_error *error, const char *path) {
  const char *text = dlerror();
  size_t length = strlen(path);
  if (text == NULL) text = "dlopen gave no reason";
  if (strncmp(text, path, length) == 0 && strncmp(text + length, ": ", 2) == 0) text += length + 2;
  if (is_compiled_model(text))
    return load_error_set(error, "dlopen",
                          "a model of relax that was built with exec_mode=\"compiled\", expected "
                          "bytecode; build it with exec_mode=\"bytecode\", the default (%s)",
                          text);
  return load_error_set(error, "dlopen", "%s", text);
}

const char *load_error_kind(const struct load_error *error) {
  return error->is_memory ? "OutOfMemoryError" : "LibraryLoadError";
}

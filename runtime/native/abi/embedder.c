/* The default embedder, for a program without modules, lock and signal handlers. */
#include "abi/embedder.h"

#include <stddef.h>
#include <stdio.h>

#include "abi/raised.h"

static void *find_import(struct context *context, const char *name) {
  (void)context;
  return raised_null("RuntimeError", "look-up of '%s': this program provides no functions", name);
}

static int find_weight(struct context *context, const char *name, DLTensor *tensor) {
  (void)context, (void)tensor;
  return raised_format("RuntimeError", "weight '%s': this program provides no weights", name);
}

static void *find_global(const char *name) {
  return raised_null("FunctionNotFoundError", "no global function '%s': this program has none",
                     name);
}

static int print(const char *text, size_t nbytes) {
  if (fwrite(text, 1, nbytes, stdout) == nbytes && fflush(stdout) == 0) return 0;
  return raised_format("OSError", "standard output: cannot write %zu bytes", nbytes);
}

static void *current_stream(int32_t device_type, int32_t device_id) {
  (void)device_type, (void)device_id;
  return NULL;
}

static void forget_context(struct context *context) { (void)context; }

static void *suspend(void) { return NULL; }

static void resume(void *state) { (void)state; }

static int64_t now(void) { return 0; }

static int poll(void) { return 0; }

struct embedder embedder = {
    .find_import = find_import,
    .find_weight = find_weight,
    .find_global = find_global,
    .print = print,
    .current_stream = current_stream,
    .forget_context = forget_context,
    .suspend = suspend,
    .resume = resume,
    .now = now,
    .poll = poll,
};

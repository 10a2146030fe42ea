/* Let the first, the second, ... allocation fail while a library is loaded, shown and used, until
 * no allocation is left to fail. Prints how often each error came.
 *
 * dso_each_allocation FILE [FUNCTION ...]: the functions are called without arguments. Exits with 1
 * if an error is not an OutOfMemoryError, or if a failure leaves memory allocated. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "dso.h"

enum {
  MOST = 100000,
  MOST_TEXTS = 200,
  ROUNDS = 12 /* the heap may grow until it is as large as a round needs */
};

static struct {
  char text[256];
  int count;
} seen[MOST_TEXTS];
static int num_bad;

static int see_function(void *context, const char *name, const char *signature) {
  (void)context, (void)signature;
  return name[0] == '\1';
}

static int see_weight(void *context, const char *name, const DLTensor *tensor) {
  DLTensor same;
  (void)tensor;
  return dso_module_weight((dso_module *)context, name, &same);
}

/* Returns 0, or -1 with the error raised. */
static int use(dso_module *module, int count, char **names) {
  if (dso_module_functions(module, see_function, NULL) != 0) return -1;
  if (dso_module_weights(module, see_weight, module) != 0) return -1;
  for (int i = 0; i < count; i++) {
    dso_any result = dso_none();
    int status = dso_module_call(module, names[i], &result, NULL, 0);
    dso_release(&result);
    if (status != 0) return -1;
  }
  const char *json;
  if (dso_module_metadata(module, &json) != 0) return -1;
  return dso_module_entry(module) != NULL ? 0 : -1;
}

static void count_error(const char *text) {
  int i = 0;
  while (i < MOST_TEXTS - 1 && seen[i].count && strcmp(seen[i].text, text) != 0) i++;
  snprintf(seen[i].text, sizeof seen[i].text, "%s", text);
  seen[i].count++;
}

static int accept(void *context, const char *path, const void *bytes, size_t nbytes) {
  (void)context, (void)path, (void)bytes, (void)nbytes;
  return 0;
}

/* VERIFY in the environment loads with verification. */
static dso_module *load(const char *path) {
  dso_options options = {sizeof options, accept, 0, 0, 0, 0, 0, 0, 0};
  return dso_load(path, getenv("VERIFY") ? &options : NULL);
}

/* Returns whether the n-th allocation was needed. */
static int fail_once(long n, const char *path, int count, char **names) {
  char text[256] = "right";
  (void)heap_fail_at(n);
  dso_module *module = load(path);
  int status = module ? use(module, count, names) : -1;
  if (status != 0) snprintf(text, sizeof text, "%s", dso_last_error());
  int is_memory = strcmp(dso_last_error_kind(), "OutOfMemoryError") == 0;
  dso_module_release(module);
  if (heap_fail_at(0) > 0) return 0;
  if (status != 0 && !is_memory) {
    printf("allocation %ld: %s\n", n, text);
    num_bad++;
  }
  count_error(text);
  return 1;
}

static void check_leak(long n, const char *path, int count, char **names) {
  size_t before, after = mallinfo2().uordblks;
  for (int i = 0; i < ROUNDS; i++) {
    before = after;
    fail_once(n, path, count, names);
    after = mallinfo2().uordblks;
    if (after <= before) return;
  }
  printf("allocation %ld: %zu bytes leaked\n", n, after - before);
  num_bad++;
}

int main(int argc, char **argv) {
  long n = 0;
  dso_module *first = load(argv[1]); /* so that objects that are made once exist */
  if (first == NULL || use(first, argc - 2, argv + 2) != 0) {
    printf("%s\n", dso_last_error());
    return 1;
  }
  dso_module_release(first);
  while (++n < MOST && fail_once(n, argv[1], argc - 2, argv + 2))
    check_leak(n, argv[1], argc - 2, argv + 2);
  for (int i = 0; i < MOST_TEXTS && seen[i].count; i++)
    printf("%5d x %s\n", seen[i].count, seen[i].text);
  printf("%ld allocations\n", n - 1);
  return num_bad > 0 || n < 2 || n == MOST;
}

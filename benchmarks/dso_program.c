/* Time a C program that uses a library. argv[1] is the measurement, argv[2...] are files.
 *
 *     open  dlopen|dso_load  FILE... LAST    the last file's first opening, after the others: ns, and
 *                                            the growth of memory in KiB
 *     call  FILE             add(40, 2): ns through a held function, and through its address
 *     hello FILE             add(40, 2); the proportional memory (Pss) of the process in KiB
 *     first FILE PICTURE     ResNet-18: the first result, in ns from the start of main
 *     warm  FILE PICTURE     ResNet-18: a second run, in ns
 *     graph FILE             a run of its graph, in ns
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dso.h"

enum { CALLS = 2000000, RUNS = 1000, SIDE = 224, PICTURE = 3 * SIDE * SIDE };

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void fail(const char *what) {
  fprintf(stderr, "%s: %s\n", what, dso_last_error());
  exit(1);
}

static dso_module *load(const char *path) {
  dso_module *module = dso_load(path, NULL);
  if (module == NULL) fail(path);
  return module;
}

static void open_file(int by_dlopen, const char *path) {
  if (!by_dlopen) (void)load(path);
  else if (dlopen(path, RTLD_NOW | RTLD_LOCAL) == NULL) fail(dlerror());
}

static long memory(const char *key) {
  char line[256];
  long found = 0;
  FILE *file = fopen("/proc/self/smaps_rollup", "r");
  if (file == NULL) fail("smaps_rollup");
  while (fgets(line, sizeof line, file) != NULL)
    if (strncmp(line, key, strlen(key)) == 0) found = atol(line + strlen(key));
  fclose(file);
  return found;
}

static void measure_open(int count, char **arguments) {
  int by_dlopen = strcmp(arguments[0], "dlopen") == 0;
  for (int i = 1; i < count - 1; i++) open_file(by_dlopen, arguments[i]);
  (void)memory("Rss:");
  long before = memory("Rss:");
  double start = now();
  open_file(by_dlopen, arguments[count - 1]);
  double took = now() - start;
  printf("%.0f %ld\n", took, memory("Rss:") - before);
}

static void measure_call(const char *path) {
  const dso_any args[] = {dso_int(40), dso_int(2)};
  dso_any result = dso_none();
  dso_module *module = load(path);
  dso_function *add = dso_module_function(module, "add");
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  dso_safe_call direct;
  *(void **)&direct = handle ? dlsym(handle, "__tvm_ffi_add") : NULL;
  if (add == NULL || direct == NULL) fail("add");
  double start = now();
  for (int i = 0; i < CALLS; i++)
    if (dso_function_call(add, &result, args, 2) != 0) fail("add");
  double held = (now() - start) / CALLS;
  start = now();
  for (int i = 0; i < CALLS; i++)
    if (direct(NULL, args, 2, &result) != 0) fail("add");
  printf("%.3f %.3f\n", held, (now() - start) / CALLS);
}

static void measure_hello(const char *path) {
  const dso_any args[] = {dso_int(40), dso_int(2)};
  dso_any result = dso_none();
  if (dso_module_call(load(path), "add", &result, args, 2) != 0) fail("add");
  printf("%lld %ld\n", (long long)result.v_int64, memory("Pss:"));
}

static float picture[PICTURE] __attribute__((aligned(64)));

static void call(dso_module *module, const char *name, dso_any *result, const dso_any *args,
                 int32_t num_args) {
  if (dso_module_call(module, name, result, args, num_args) != 0) fail(name);
}

static void measure_graph(int is_warm, const char *path, const char *file) {
  double start = now();
  int64_t shape[] = {1, 3, SIDE, SIDE};
  DLTensor tensor = {.data = picture, .device = {1, 0}, .ndim = 4, .dtype = {2, 32, 1}};
  tensor.shape = shape;
  FILE *stream = fopen(file, "rb");
  if (stream == NULL || fread(picture, sizeof *picture, PICTURE, stream) != PICTURE) fail(file);
  fclose(stream);
  dso_any held, output;
  dso_module *model = load(path);
  call(model, dso_module_entry(model), &held, NULL, 0);
  dso_module *executor = dso_module_of(&held);
  if (executor == NULL) fail("executor");
  const dso_any input[] = {dso_string("data"), dso_tensor(&tensor)}, index[] = {dso_int(0)};
  call(executor, "set_input", NULL, input, 2);
  call(executor, "run", NULL, NULL, 0);
  call(executor, "get_output", &output, index, 1);
  if (is_warm) {
    start = now();
    call(executor, "run", NULL, NULL, 0);
  }
  printf("%.0f\n", now() - start);
}

/* All inputs are in the file. */
static void measure_run(const char *path) {
  dso_any held;
  dso_module *model = load(path);
  call(model, dso_module_entry(model), &held, NULL, 0);
  dso_module *executor = dso_module_of(&held);
  call(executor, "run", NULL, NULL, 0);
  double start = now();
  for (int i = 0; i < RUNS; i++) call(executor, "run", NULL, NULL, 0);
  printf("%.0f\n", (now() - start) / RUNS);
}

int main(int count, char **arguments) {
  if (count < 3) return 2;
  if (strcmp(arguments[1], "open") == 0) measure_open(count - 2, arguments + 2);
  else if (strcmp(arguments[1], "call") == 0) measure_call(arguments[2]);
  else if (strcmp(arguments[1], "hello") == 0) measure_hello(arguments[2]);
  else if (strcmp(arguments[1], "graph") == 0) measure_run(arguments[2]);
  else if (count > 3) measure_graph(strcmp(arguments[1], "warm") == 0, arguments[2], arguments[3]);
  return 0;
}

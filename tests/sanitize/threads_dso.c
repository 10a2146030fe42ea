/* Threads that load, call, look up, import and release through dso.h, all at once.
 *
 * threads_dso ROUNDS GRAPH VM WEIGHTS: the libraries of tests/native/dso/dso_models.py. Executors are
 * separate in each thread, the virtual machine and the modules are shared. Some loads meet a tree
 * that another thread is releasing. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dso.h"

enum { NUM_THREADS = 4, NUM_FLOATS = 6 };

static char **paths;
static int rounds;
static dso_module *shared_vm, *shared_weights;

static void require(int truth, const char *what) {
  if (truth) return;
  fprintf(stderr, "%s: %s\n", what, dso_last_error());
  exit(1);
}

static DLTensor tensor_of(float *data, int64_t *shape, int32_t ndim) {
  DLTensor tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.data = data;
  tensor.device.device_type = 1;
  tensor.ndim = ndim;
  tensor.dtype.code = 2;
  tensor.dtype.bits = 32;
  tensor.dtype.lanes = 1;
  tensor.shape = shape;
  return tensor;
}

static float first_of(const dso_any *value) {
  const DLTensor *tensor = dso_tensor_of(value);
  require(tensor != NULL, "a result");
  return ((const float *)tensor->data)[1];
}

static int accept(void *context, const char *path, const void *bytes, size_t nbytes) {
  const unsigned char *given = (const unsigned char *)bytes;
  (void)context;
  require(path && nbytes > 4 && given[0] == 0x7f && given[nbytes - 1] <= 0xff, "verify");
  return 0;
}

static void run_graph(int is_verified) {
  __attribute__((aligned(64))) float x[NUM_FLOATS] = {0, 1, 2, 3, 4, 5};
  int64_t shape[] = {2, 3};
  DLTensor tensor = tensor_of(x, shape, 2);
  dso_any result, made, device = dso_device(1, 0);
  dso_any input[] = {dso_string("x"), dso_tensor(&tensor)}, zero = dso_int(0);
  dso_options options = {sizeof options, accept, NULL, NULL, 0, 0, NULL, NULL, NULL};
  dso_module *module = dso_load(paths[1], is_verified ? &options : NULL);
  require(module && dso_module_call(module, "default", &made, &device, 1) == 0, "graph");
  dso_module *executor = dso_module_of(&made);
  dso_module_release(module);
  require(dso_module_call(executor, "set_input", NULL, input, 2) == 0, "set_input");
  require(dso_module_call(executor, "run", NULL, NULL, 0) == 0, "run");
  require(dso_module_call(executor, "get_output", &result, &zero, 1) == 0, "get_output");
  require(first_of(&result) == 5, "the sum");
  dso_release(&made);
  dso_release(&result);
}

static void run_vm(dso_module *module) {
  __attribute__((aligned(64))) float x[4] = {0, 1, 2, 3};
  int64_t shape[] = {4};
  DLTensor tensor = tensor_of(x, shape, 1);
  dso_any result, input = dso_tensor(&tensor);
  dso_function *function = dso_module_function(module, "main");
  require(function && dso_function_call(function, &result, &input, 1) == 0, "main");
  require(first_of(&result) == 2, "the double");
  dso_function_release(function);
  dso_release(&result);
}

static int see_weight(void *context, const char *name, const DLTensor *tensor) {
  DLTensor same;
  return dso_module_weight((dso_module *)context, name, &same) != 0 || same.data != tensor->data;
}

static void use_weights(dso_module *module) {
  dso_any result;
  require(dso_module_weights(module, see_weight, module) == 0, "weights");
  require(dso_module_call(module, "f", &result, NULL, 0) == 0 && result.v_float64 == 5, "f");
  require(dso_module_call(module, "g", NULL, NULL, 0) != 0 && dso_last_error()[0], "g");
}

static int answer(void *handle, const dso_any *args, int32_t count, dso_any *result) {
  (void)handle, (void)args, (void)count;
  *result = dso_int(1);
  return 0;
}

static void import_and_register(int thread, int round) {
  char name[64];
  dso_module *root = dso_load(paths[3], NULL), *imported = dso_load(paths[2], NULL);
  require(root && imported, "load");
  if (thread == 0 && round % 16 == 0) require(dso_module_import(root, imported) == 0, "import");
  snprintf(name, sizeof name, "test.%d.%d", thread, round);
  dso_function *function = dso_function_new(answer, NULL, NULL);
  require(function && dso_register_function(name, function) == 0, "register");
  dso_function_release(function);
  use_weights(root);
  run_vm(imported);
  dso_module_release(root);
  dso_module_release(imported);
}

static void *work(void *number) {
  for (int i = 0; i < rounds; i++) {
    run_graph(i % 2);
    run_vm(shared_vm);
    use_weights(shared_weights);
    import_and_register((int)(intptr_t)number, i);
  }
  return NULL;
}

int main(int count, char **arguments) {
  pthread_t threads[NUM_THREADS];
  if (count != 5) return 2;
  rounds = atoi(arguments[1]);
  paths = arguments + 1;
  for (int phase = 0; phase < 2; phase++) { /* first all load at once; then in use already */
    shared_vm = dso_load(paths[2], NULL);
    shared_weights = dso_load(paths[3], NULL);
    require(shared_vm && shared_weights, "load");
    for (intptr_t i = 0; i < NUM_THREADS; i++)
      pthread_create(&threads[i], NULL, work, (void *)(i + phase * NUM_THREADS));
    for (int i = 0; i < NUM_THREADS; i++) pthread_join(threads[i], NULL);
    dso_module_release(shared_vm);
    dso_module_release(shared_weights);
  }
  printf("%d threads, %d rounds\n", 2 * NUM_THREADS, rounds);
  return 0;
}

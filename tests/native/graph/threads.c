/* Executors of one library in several threads, each made and run by its own; prints how often an
 * output was wrong, and whether all have the same weights.
 *
 *     threads LIBRARY     total = (x + w) + w; w is 10 in the library */
#include <pthread.h>
#include <stdio.h>

#include "dso.h"

enum { THREADS = 4, MADE = 5, RUNS = 40, SIZE = 6 };

static dso_module *library;

struct work {
  pthread_t thread;
  int number, num_wrong;
  const void *weights;
};

static int is_right(dso_module *executor, float x) {
  float data[SIZE];
  int64_t shape[] = {2, 3};
  DLTensor tensor = {data, {1, 0}, 2, {2, 32, 1}, shape, NULL, 0};
  dso_any input[2], index = dso_int(0), output;
  for (int i = 0; i < SIZE; i++) data[i] = x;
  input[0] = dso_int(0);
  input[1] = dso_tensor(&tensor);
  if (dso_module_call(executor, "set_input", NULL, input, 2) != 0) return 0;
  if (dso_module_call(executor, "run", NULL, NULL, 0) != 0) return 0;
  if (dso_module_call(executor, "get_output", &output, &index, 1) != 0) return 0;
  const float *found = dso_tensor_of(&output)->data;
  int is_equal = 1;
  for (int i = 0; i < SIZE; i++) is_equal &= found[i] == x + 20;
  dso_release(&output);
  return is_equal;
}

static const void *weights_of(dso_module *executor) {
  dso_any name = dso_string("w"), weights;
  if (dso_module_call(executor, "get_input", &weights, &name, 1) != 0) return NULL;
  const void *data = dso_tensor_of(&weights)->data;
  dso_release(&weights);
  return data;
}

static void *work(void *context) {
  struct work *self = context;
  for (int made = 0; made < MADE; made++) {
    dso_any value;
    if (dso_module_call(library, dso_module_entry(library), &value, NULL, 0) != 0) {
      self->num_wrong++;
      break;
    }
    self->weights = weights_of(dso_module_of(&value));
    for (int i = 0; i < RUNS; i++)
      self->num_wrong += !is_right(dso_module_of(&value), (float)(self->number * RUNS + i));
    dso_release(&value);
  }
  return NULL;
}

int main(int count, char **words) {
  struct work all[THREADS];
  int num_wrong = 0, is_shared = 1;
  library = count > 1 ? dso_load(words[1], NULL) : NULL;
  if (library == NULL) return 1;
  for (int i = 0; i < THREADS; i++) {
    all[i].number = i;
    all[i].num_wrong = 0;
    if (pthread_create(&all[i].thread, NULL, work, &all[i]) != 0) return 1;
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(all[i].thread, NULL);
    num_wrong += all[i].num_wrong;
    is_shared &= all[i].weights == all[0].weights;
  }
  dso_module_release(library);
  printf("%d %s\n", num_wrong, is_shared ? "shared" : "copied");
  return 0;
}

/* Runs a graph with memory of the program's allocator; prints the calls, and what was not given
 * back.
 *
 *     allocate LIBRARY [none]
 *
 * "none": the allocator has no memory. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dso.h"

enum { SIZE = 6 };

struct counts {
  long num_calls, num_blocks;
  size_t nbytes; /* that are in use */
  int is_empty;
};

static void *allocate(void *context, size_t nbytes, size_t alignment) {
  struct counts *counts = context;
  void *block = NULL;
  if (counts->is_empty || posix_memalign(&block, alignment, nbytes) != 0) return NULL;
  memset(block, 255, nbytes);
  counts->num_calls++, counts->num_blocks++;
  counts->nbytes += nbytes;
  return block;
}

static void deallocate(void *context, void *block, size_t nbytes) {
  struct counts *counts = context;
  counts->num_blocks--;
  counts->nbytes -= nbytes;
  free(block);
}

static void show(const struct counts *counts) {
  printf("%ld %ld\n", counts->num_calls, counts->num_blocks);
}

static void set(dso_module *executor, const char *name, float value) {
  float data[SIZE];
  int64_t shape[] = {2, 3};
  DLTensor tensor = {data, {1, 0}, 2, {2, 32, 1}, shape, NULL, 0};
  dso_any args[2];
  for (int i = 0; i < SIZE; i++) data[i] = value;
  args[0] = dso_string(name);
  args[1] = dso_tensor(&tensor);
  if (dso_module_call(executor, "set_input", NULL, args, 2) != 0) exit(1);
}

static void run(dso_module *executor) {
  dso_any index = dso_int(0), output;
  if (dso_module_call(executor, "get_output", &output, &index, 1) != 0) exit(1);
  float *data = dso_tensor_of(&output)->data;
  printf("%g\n", (double)data[5]); /* before the run: zero */
  set(executor, "x", 5);
  set(executor, "w", 10);
  if (dso_module_call(executor, "run", NULL, NULL, 0) != 0) exit(1);
  dso_module_release(executor); /* the output keeps the memory */
  printf("%g\n", (double)data[5]);
  dso_release(&output);
}

int main(int count, char **words) {
  struct counts counts = {0, 0, 0, 0};
  dso_options options;
  dso_any value;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.allocate = allocate;
  options.deallocate = deallocate;
  options.allocate_context = &counts;
  counts.is_empty = count > 2;
  dso_module *library = dso_load(words[1], &options);
  if (library == NULL) return 1;
  show(&counts);
  if (dso_module_call(library, dso_module_entry(library), &value, NULL, 0) != 0) {
    printf("%s\n", dso_last_error());
  } else {
    show(&counts);
    run(dso_module_of(&value));
  }
  show(&counts);
  dso_module_release(library);
  return counts.nbytes != 0;
}

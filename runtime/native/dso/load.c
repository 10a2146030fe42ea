/* Loading: dso_options, and where the library is. */
#include <string.h>

#include "abi/raised.h"
#include "device/cpu_memory.h"
#include "dso.h"
#include "dso/null.h"
#include "module/embedder.h"
#include "module/tree.h"
#include "threads/team.h"

enum { MAX_THREADS = 256 };

static int refuse(const char *what) { return raised_format("ValueError", "dso_options: %s", what); }

/* A program that was compiled with an older dso.h has a shorter struct, with a newer one a longer
 * one, whose further members must be zero. */
static int copy(const dso_options *given, dso_options *options) {
  *options = (dso_options){.size = sizeof *options};
  if (given == NULL) return 0;
  if (given->size < sizeof given->size) return refuse("size, expected sizeof(dso_options)");
  const char *bytes = (const char *)given;
  for (size_t i = sizeof *options; i < given->size; i++)
    if (bytes[i] != 0) return refuse("an option of a newer libdso, expected none");
  memcpy(options, given, given->size < sizeof *options ? given->size : sizeof *options);
  return 0;
}

static int set_threads(int32_t wanted) {
  if (wanted < 0 || wanted > MAX_THREADS)
    return raised_format("ValueError", "dso_options: num_threads, expected 0 to %d, found %d",
                         MAX_THREADS, (int)wanted);
  int found = wanted > 0 ? team_set_size(wanted) : 0;
  if (found == wanted) return 0;
  return raised_format("ValueError",
                       "dso_options: num_threads, expected %d, as in an earlier load or parallel "
                       "loop, found %d",
                       found, (int)wanted);
}

static int set_allocator(const dso_options *options) {
  struct cpu_allocator allocator = {options->allocate, options->deallocate,
                                    options->allocate_context};
  if ((allocator.allocate == NULL) != (allocator.deallocate == NULL))
    return refuse("expected both allocate and deallocate, or none");
  if (allocator.allocate == NULL || cpu_memory_set_allocator(&allocator) == 0) return 0;
  return refuse("allocate, expected the allocator that memory was taken from before");
}

/* Returns 0 with the options for module/, or -1 with the error raised. */
static int apply(const dso_options *given, struct load_options *result) {
  dso_options options;
  if (copy(given, &options) != 0) return -1;
  if (options.num_devices < 0) return refuse("num_devices, expected at least 0");
  if (options.devices == NULL && options.num_devices > 0)
    return refuse("devices, expected num_devices of them, found NULL");
  if (set_threads(options.num_threads) != 0 || set_allocator(&options) != 0) return -1;
  *result = (struct load_options){.verify = options.verify,
                                  .verify_context = options.verify_context,
                                  .devices = options.devices,
                                  .num_devices = options.num_devices};
  return 0;
}

dso_module *dso_load(const char *path, const dso_options *options) {
  struct load_options applied;
  embedder_collect();
  if (is_null(path, "dso_load", "a path")) return NULL;
  return apply(options, &applied) == 0 ? tree_load(path, &applied) : NULL;
}

dso_module *dso_load_bytes(const void *bytes, size_t nbytes, const dso_options *options) {
  struct load_options applied;
  embedder_collect();
  if (is_null(bytes, "dso_load_bytes", "bytes")) return NULL;
  return apply(options, &applied) == 0 ? tree_load_bytes(bytes, nbytes, &applied) : NULL;
}

dso_module *dso_system_library(const char *prefix) {
  if (is_null(prefix, "dso_system_library", "a prefix")) return NULL;
  return tree_of_program(prefix);
}

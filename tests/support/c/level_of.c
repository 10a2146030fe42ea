/* Print what a library with CPU levels returns: level_of dlopen|dso PATH. */
#include <dlfcn.h>
#include <dso.h>
#include <stdio.h>
#include <string.h>

static int by_dlopen(const char *path) {
  void *library = dlopen(path, RTLD_NOW);
  if (library == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
  long (*level)(void) = (long (*)(void))dlsym(library, "level");
  return printf("%ld\n", level()), 0;
}

static int by_dso(const char *path) {
  dso_any level;
  dso_module *module = dso_load(path, NULL);
  if (module == NULL || dso_module_call(module, "level", &level, NULL, 0) != 0)
    return fprintf(stderr, "%s\n", dso_last_error()), 1;
  printf("%ld\n", (long)level.v_int64);
  dso_module_release(module);
  return 0;
}

int main(int argc, char **argv) {
  return argc == 3 && strcmp(argv[1], "dso") == 0 ? by_dso(argv[2]) : by_dlopen(argv[2]);
}

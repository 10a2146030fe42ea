/* Open a library as a C program does, call its safe-call function "f", and show its blob.
 *
 * host LIBRARY BLOB: prints f(40, 2) and the page size; the bytes of __tvm_dev_mblob go to
 * BLOB. Without the function, prints none. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "dso_abi.h"

typedef int safe_call(void *handle, const dso_any *args, int32_t num_args, dso_any *result);

static int write_blob(const unsigned char *blob, const char *path) {
  uint64_t nbytes;
  FILE *file = fopen(path, "wb");
  if (file == NULL || blob == NULL) return -1;
  memcpy(&nbytes, blob, sizeof nbytes);
  if (fwrite(blob, 1, nbytes + 8, file) != nbytes + 8) return -1;
  return fclose(file);
}

static int call(void *symbol) {
  safe_call *f;
  dso_any args[2] = {{.type_index = DSO_FLOAT, .v_float64 = 40}, {.type_index = DSO_INT, .v_int64 = 2}};
  dso_any result = {.type_index = DSO_NONE};
  if (symbol == NULL) return printf("none") < 0;
  memcpy(&f, &symbol, sizeof f);
  if (f(NULL, args, 2, &result) != 0 || result.type_index != DSO_FLOAT) return -1;
  return printf("%g", result.v_float64) < 0;
}

int main(int argc, char **argv) {
  void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
  if (library == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
  if (write_blob(dlsym(library, "__tvm_dev_mblob"), argv[2]) != 0) return 2;
  if (call(dlsym(library, "__tvm_ffi_f")) != 0) return 3;
  return printf(" %ld\n", (long)getpagesize()) < 0;
}

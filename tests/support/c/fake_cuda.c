/* A FAKE libcuda.so.1: a driver without devices, for what a real one would do away with: which image
 * a module gives it, in which context, what a launch passes, and what its errors become.
 *
 * FAKE_CUDA_DEVICES  capabilities of its devices: "80 90"; none: cuInit finds no device
 * FAKE_CUDA_FAIL     "cuLaunchKernel 700": the result of this function from now on
 * FAKE_CUDA_PARAMS   what each kernel's code takes: "8 4 4" bytes
 * FAKE_CUDA_LOG      a file that gets one line per call that matters
 *
 * Memory on a device is the process's. Nothing of a kernel runs. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int CUresult;

static __thread uintptr_t stack[8];
static __thread int depth;
static char loaded[1024][64];
static int num_loaded;

static const char *setting(const char *name) {
  const char *text = getenv(name);
  return text ? text : "";
}

static void note(const char *text) {
  FILE *log = fopen(setting("FAKE_CUDA_LOG"), "a");
  if (log == NULL) return;
  fprintf(log, "%s\n", text);
  fclose(log);
}

static CUresult status_of(const char *function) {
  char name[64] = "";
  int code = 0;
  if (sscanf(setting("FAKE_CUDA_FAIL"), "%63s %d", name, &code) != 2) return 0;
  return strcmp(name, function) == 0 ? code : 0;
}

static int number_at(const char *text, int index) {
  char *end = NULL;
  long number = -1;
  for (int i = 0; i <= index; i++, text = end) {
    number = strtol(text, &end, 10);
    if (end == text) return -1;
  }
  return (int)number;
}

#define API __attribute__((visibility("default"))) CUresult
#define CHECK if (status_of(__func__) != 0) return status_of(__func__)

API cuInit(unsigned flags) {
  CHECK;
  return flags == 0 && number_at(setting("FAKE_CUDA_DEVICES"), 0) >= 0 ? 0 : 100;
}
API cuDriverGetVersion(int *version) { *version = 12040; return 0; }
API cuGetErrorName(CUresult code, const char **name) {
  static const char *const names[] = {[2] = "CUDA_ERROR_OUT_OF_MEMORY", [4] = "CUDA_ERROR_DEINITIALIZED"};
  *name = code == 700   ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : code == 500 ? "CUDA_ERROR_NOT_FOUND"
          : code == 218 ? "CUDA_ERROR_INVALID_PTX"
          : code == 222 ? "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"
          : code < 5    ? names[code]
                        : NULL;
  return *name == NULL;
}
API cuGetErrorString(CUresult code, const char **text) { *text = "FAKE"; return code == 1; }

API cuDeviceGetCount(int *count) {
  for (*count = 0; number_at(setting("FAKE_CUDA_DEVICES"), *count) >= 0;) ++*count;
  CHECK;
  return 0;
}
API cuDeviceGet(int *device, int index) { *device = index + 100; return 0; }
API cuDeviceGetName(char *name, int nbytes, int device) {
  snprintf(name, (size_t)nbytes, "FAKE %d", device - 100);
  return 0;
}
API cuDeviceGetAttribute(int *value, int attribute, int device) {
  static const int values[] = {[2] = 1024, 1024, 64, 0x7fffffff, 65535, 65535, 49152};
  int capability = number_at(setting("FAKE_CUDA_DEVICES"), device - 100);
  if (attribute == 75) *value = capability / 10;
  else if (attribute == 76) *value = capability % 10;
  else if (attribute == 97) *value = 101376;
  else *value = values[attribute];
  return 0;
}
API cuDevicePrimaryCtxRetain(uintptr_t *context, int device) {
  CHECK;
  *context = (uintptr_t)device + 1000;
  return 0;
}

API cuCtxGetCurrent(uintptr_t *context) { *context = depth ? stack[depth - 1] : 0; CHECK; return 0; }
API cuCtxPushCurrent_v2(uintptr_t context) { stack[depth++] = context; return 0; }
API cuCtxPopCurrent_v2(uintptr_t *context) { *context = stack[--depth]; return 0; }
API cuCtxSynchronize(void) { CHECK; return depth ? 0 : 201; }

API cuMemAlloc_v2(uint64_t *address, size_t nbytes) {
  CHECK;
  *address = (uint64_t)(uintptr_t)aligned_alloc(256, (nbytes + 255) / 256 * 256);
  return depth ? 0 : 201;
}
API cuMemFree_v2(uint64_t address) { CHECK; free((void *)(uintptr_t)address); return depth ? 0 : 201; }
static CUresult move(uint64_t to, uint64_t from, size_t nbytes, const char *name) {
  memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, nbytes);
  note(name);
  return depth ? status_of(name) : 201;
}
API cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t n) { return move(to, (uintptr_t)from, n, __func__); }
API cuMemcpyDtoH_v2(void *to, uint64_t from, size_t n) { return move((uintptr_t)to, from, n, __func__); }
API cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t n) { return move(to, from, n, __func__); }
API cuMemcpyPeer(uint64_t to, uintptr_t to_context, uint64_t from, uintptr_t from_context, size_t n) {
  return to_context != from_context ? move(to, from, n, __func__) : 1;
}

/* The first bytes identify the code: ELF with its flags, a fatbin, or a text. */
API cuModuleLoadDataEx(uintptr_t *module, const void *data, unsigned count, int *names, void **values) {
  char line[128], text[64] = "";
  uint32_t flags;
  const char *target = NULL;
  if (memcmp(data, "\x7f" "ELF", 4) == 0) {
    memcpy(&flags, (const char *)data + 48, sizeof flags);
    snprintf(text, sizeof text, "cubin 0x%x", flags);
  }
  else if (memcmp(data, "\x50\xed\x55\xba", 4) == 0) snprintf(text, sizeof text, "fatbin");
  else if ((target = strstr(data, ".target")) != NULL)
    snprintf(text, sizeof text, "ptx%.*s", (int)strcspn(target + 7, "\n,"), target + 7);
  if ((uintptr_t)data % 8 != 0) snprintf(text, sizeof text, "unaligned");
  snprintf(line, sizeof line, "load %s in %zu", text, depth ? (size_t)stack[depth - 1] : 0);
  note(line);
  if (status_of(__func__) != 0 && count == 2 && names[0] == 5 && names[1] == 6)
    snprintf(values[0], (size_t)(uintptr_t)values[1], "FAKE log: line 7\n");
  CHECK;
  snprintf(loaded[num_loaded], sizeof *loaded, "%s", text);
  *module = (uintptr_t)++num_loaded;
  return depth ? 0 : 201;
}
API cuModuleUnload(uintptr_t module) {
  char line[96];
  snprintf(line, sizeof line, "unload %s", loaded[module - 1]);
  note(line);
  return 0;
}
API cuModuleGetFunction(const char **function, uintptr_t module, const char *name) {
  *function = "scale";
  return module == 0 ? 400 : strcmp(name, "scale") == 0 ? 0 : 500;
}
API cuModuleGetFunctionCount(unsigned *count, uintptr_t module) { *count = module ? 1 : 0; return 0; }
API cuModuleEnumerateFunctions(const char **functions, unsigned count, uintptr_t module) {
  if (count > 0 && module) functions[0] = "scale";
  return 0;
}
API cuFuncGetName(const char **name, const char *function) { *name = function; return 0; }
API cuFuncGetAttribute(int *value, int attribute, const char *function) {
  *value = attribute == 0 ? 512 : 1024; /* threads of a block; fixed shared memory */
  return function == NULL;
}
API cuFuncSetAttribute(const char *function, int attribute, int value) {
  char line[96];
  snprintf(line, sizeof line, "set %s %d %d", function, attribute, value);
  note(line);
  CHECK;
  return 0;
}
API cuFuncGetParamInfo(const char *function, size_t index, size_t *offset, size_t *nbytes) {
  int size = number_at(setting("FAKE_CUDA_PARAMS"), (int)index);
  if (function == NULL || size < 0) return 1;
  *offset = 0;
  *nbytes = (size_t)size;
  return 0;
}

API cuLaunchKernel(const char *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **params, void **extra) {
  char line[512];
  int length = snprintf(line, sizeof line, "launch %s %u %u %u %u %u %u shared %u in %zu:", function, gx,
                        gy, gz, bx, by, bz, shared, depth ? (size_t)stack[depth - 1] : 0);
  for (int i = 0, size; (size = number_at(setting("FAKE_CUDA_PARAMS"), i)) >= 0; i++) {
    length += snprintf(line + length, sizeof line - (size_t)length, " ");
    for (int byte = 0; byte < size; byte++)
      length += snprintf(line + length, sizeof line - (size_t)length, "%02x",
                         ((const unsigned char *)params[i])[byte]);
  }
  note(line);
  CHECK;
  return stream == NULL && extra == NULL ? 0 : 1;
}

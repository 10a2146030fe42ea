/* Loads a library and follows commands, each with its arguments; prints what they give. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dso.h"

static dso_module *executor;

static size_t nbytes_of(const DLTensor *tensor) {
  size_t nbytes = ((size_t)tensor->dtype.bits * tensor->dtype.lanes + 7) / 8;
  for (int i = 0; i < tensor->ndim; i++) nbytes *= (size_t)tensor->shape[i];
  return nbytes;
}

static void *read_file(const char *path, size_t *nbytes) {
  FILE *file = fopen(path, "rb");
  fseek(file, 0, SEEK_END);
  *nbytes = (size_t)ftell(file);
  rewind(file);
  char *bytes = NULL;
  if (posix_memalign((void **)&bytes, 64, *nbytes + 64) != 0) exit(3);
  if (fread(bytes, 1, *nbytes, file) != *nbytes) exit(3);
  fclose(file);
  return bytes;
}

static void show(const dso_any *value) {
  if (value->type_index == DSO_INT) printf("%lld\n", (long long)value->v_int64);
  else if (value->type_index == DSO_TENSOR) {
    const DLTensor *tensor = dso_tensor_of(value);
    const unsigned char *bytes = (const unsigned char *)tensor->data + tensor->byte_offset;
    for (size_t i = 0; i < nbytes_of(tensor); i++) printf("%02x", bytes[i]);
    printf("\n");
  } else printf("type %d\n", (int)value->type_index);
}

static void fail(void) { printf("! %s\n", dso_last_error()); }

static int call(const char *name, dso_any *result, const dso_any *args, int count) {
  if (dso_module_call(executor, name, result, args, count) == 0) return 0;
  fail();
  return -1;
}

static dso_any key_of(const char *text) {
  char *end;
  long index = strtol(text, &end, 10);
  return *end == '\0' && end != text ? dso_int(index) : dso_string(text);
}

/* The bytes of a file, with the layout of the input. */
static void set(const char *function, const char *key, const char *path, size_t shift) {
  dso_any args[2], input, result;
  size_t nbytes;
  args[0] = key_of(key);
  if (call("get_input", &input, args, 1) != 0) return;
  DLTensor tensor = *dso_tensor_of(&input);
  tensor.data = (char *)read_file(path, &nbytes) + shift;
  tensor.byte_offset = 0;
  if (nbytes != nbytes_of(&tensor)) { /* another shape */
    static int64_t shape[1];
    shape[0] = (int64_t)(nbytes / (tensor.dtype.bits / 8));
    tensor.ndim = 1;
    tensor.shape = shape;
    tensor.strides = NULL;
  }
  args[1] = dso_tensor(&tensor);
  if (call(function, &result, args, 2) == 0) dso_release(&result);
  if (strcmp(function, "set_input") == 0) free((char *)tensor.data - shift);
  dso_release(&input);
}

static void load(const char *path) {
  dso_any argument = dso_value(DSO_BYTE_ARRAY_PTR), result;
  dso_byte_array bytes;
  size_t nbytes;
  bytes.data = (char *)read_file(path, &nbytes);
  bytes.size = nbytes;
  argument.v_ptr = &bytes;
  if (call("load_params", &result, &argument, 1) == 0) dso_release(&result);
  free((void *)bytes.data);
}

static void get(const char *function, const char *key) {
  dso_any argument, result;
  argument = key_of(key != NULL ? key : "");
  if (call(function, &result, &argument, key != NULL) != 0) return;
  if (strcmp(function, "run") != 0) show(&result);
  dso_release(&result);
}

static int make(const char *path, const char *device) {
  dso_any argument = dso_device(device ? atoi(device) : 0, 0), value;
  dso_module *library = dso_load(path, NULL);
  if (library == NULL ||
      dso_module_call(library, dso_module_entry(library), &value, &argument, device != NULL) != 0) {
    fail();
    dso_module_release(library);
    return -1;
  }
  executor = dso_module_of(&value); /* takes over the reference of the value */
  dso_module_release(library);
  return 0;
}

int main(int count, char **words) {
  const char *device = count > 2 && strcmp(words[2], "device") == 0 ? words[3] : NULL;
  if (make(words[1], device) != 0) return 0;
  for (int i = device ? 4 : 2; i < count; i++) {
    const char *word = words[i];
    if (strcmp(word, "params") == 0) load(words[++i]);
    else if (strcmp(word, "unaligned") == 0) {
      set("set_input_zero_copy", words[i + 1], words[i + 2], 4);
      i += 2;
    } else if (strncmp(word, "set_", 4) == 0) {
      set(word, words[i + 1], words[i + 2], 0);
      i += 2;
    } else if (strcmp(word, "run") == 0 || strncmp(word, "get_num", 7) == 0) get(word, NULL);
    else get(word, words[++i]);
  }
  dso_module_release(executor);
  return 0;
}

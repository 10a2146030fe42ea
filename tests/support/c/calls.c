/* Calls functions of a library as a script says, and prints each result.
 *
 *     calls LIBRARY SCRIPT
 *
 * A line of the script is "TARGET NAME ARGUMENT...". The target is m, the library, or r<line>, an
 * earlier result that is a module; for the name "()" it is a function. An argument is i<int>,
 * f<float>, s<text>, x<hex> (bytes), n (None), d<type>,<id> (a device), t<float,...> or
 * o<float,...>, a tensor of float32 on the CPU or on opencl:0, or r<line>. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/tensor_object.h"
#include "dso.h"
#include "vm/object.h"

enum { MOST_LINES = 64, MOST_ARGS = 16, MOST_FLOATS = 64 };

static dso_any results[MOST_LINES];
static dso_any made[MOST_LINES * MOST_ARGS];
static int num_made;

/* ---- Arguments */

static dso_any read_tensor(char *text, int device_type) {
  float values[MOST_FLOATS];
  int64_t count = 0;
  DLDevice cpu = {1, 0}, device = {device_type, 0};
  DLDataType dtype = {2, 32, 1};
  for (char *item = strtok(text, ","); item; item = strtok(NULL, ","))
    values[count++] = strtof(item, NULL);
  dso_object *host = tensor_object_new(cpu, dtype, 1, &count);
  memcpy(((dso_tensor_object *)(void *)host)->tensor.data, values, (size_t)count * sizeof *values);
  dso_object *object = device_type == 1 ? host : tensor_object_new(device, dtype, 1, &count);
  if (!object) puts(dso_last_error()), exit(1);
  if (object != host) {
    tensor_copy(&((dso_tensor_object *)(void *)object)->tensor,
                &((dso_tensor_object *)(void *)host)->tensor);
    dso_object_release(host);
  }
  return made[num_made++] = dso_object_value(object);
}

static dso_any read_bytes(const char *hex) {
  size_t size = strlen(hex) / 2;
  char *bytes = malloc(size + 1);
  for (size_t i = 0; i < size; i++) {
    unsigned byte = 0;
    sscanf(hex + 2 * i, "%2x", &byte);
    bytes[i] = (char)byte;
  }
  dso_object *object = object_new_string(DSO_BYTES, bytes, size);
  free(bytes);
  return made[num_made++] = dso_object_value(object);
}

static dso_any read_device(const char *text) {
  int type = 0, id = 0;
  sscanf(text, "%d,%d", &type, &id);
  return dso_device(type, id);
}

static dso_any read_argument(char *text) {
  char *rest = text + 1;
  switch (*text) {
    case 'i': return dso_int(atoll(rest));
    case 'b': return dso_bool(atoi(rest));
    case 'f': return dso_float(atof(rest));
    case 's': return dso_string(rest);
    case 'x': return read_bytes(rest);
    case 'd': return read_device(rest);
    case 't': return read_tensor(rest, 1);
    case 'o': return read_tensor(rest, 4);
    case 'r': return results[atoi(rest)];
    default: return dso_none();
  }
}

/* ---- Results */

static void show_tensor(const DLTensor *tensor) {
  DLDevice cpu = {1, 0};
  dso_object *host = tensor_object_new(cpu, tensor->dtype, tensor->ndim, tensor->shape);
  DLTensor *copy = &((dso_tensor_object *)(void *)host)->tensor;
  size_t nbytes = (size_t)tensor->dtype.bits / 8;
  for (int i = 0; i < tensor->ndim; i++) nbytes *= (size_t)tensor->shape[i];
  if (tensor_copy(copy, tensor) != 0) puts(dso_last_error()), exit(1);
  printf("tensor:");
  for (size_t i = 0; i < nbytes; i++) printf("%02x", ((unsigned char *)copy->data)[i]);
  dso_object_release(host);
}

static void show_shape(const dso_shape_object *shape) {
  printf("(");
  for (size_t i = 0; i < shape->ndim; i++) printf("%lld,", (long long)shape->dims[i]);
  printf(")");
}

static void show(const dso_any *value) {
  const dso_array_object *array = value->type_index == DSO_ARRAY ? value->v_ptr : NULL;
  const dso_object *object = value->type_index == DSO_STR ? value->v_ptr : NULL;
  const dso_byte_array *text = object ? (const dso_byte_array *)(const void *)(object + 1) : NULL;
  switch (value->type_index) {
    case DSO_NONE: printf("None"); return;
    case DSO_BOOL:
    case DSO_INT: printf("%lld", (long long)value->v_int64); return;
    case DSO_FLOAT: printf("%.17g", value->v_float64); return;
    case DSO_SMALL_STR: printf("'%.*s'", (int)value->small_len, value->v_bytes); return;
    case DSO_STR: printf("'%.*s'", (int)text->size, text->data); return;
    case DSO_TENSOR: show_tensor(dso_tensor_of(value)); return;
    case DSO_SHAPE: show_shape(value->v_ptr); return;
    case DSO_FUNCTION: printf("function"); return;
    case DSO_MODULE: printf("module"); return;
    case DSO_ARRAY:
      printf("(");
      for (int64_t i = 0; i < array->size; i++) {
        show(&array->items[i]);
        printf(",");
      }
      printf(")");
      return;
    default: printf("type %d", (int)value->type_index); return;
  }
}

/* ---- Lines */

static int call(dso_module *root, const char *target, const char *name, const dso_any *args,
                int count, dso_any *result) {
  dso_any *value = *target == 'r' ? &results[atoi(target + 1)] : NULL;
  if (strcmp(name, "()") == 0) return dso_call_function(value->v_ptr, result, args, count);
  return dso_module_call(value ? dso_module_of(value) : root, name, result, args, count);
}

static void run(dso_module *root, char *line, int index) {
  char *words[MOST_ARGS + 2];
  dso_any args[MOST_ARGS];
  int count = 0;
  for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n")) words[count++] = word;
  for (int i = 2; i < count; i++) args[i - 2] = read_argument(words[i]);
  int status = call(root, words[0], words[1], args, count - 2, &results[index]);
  if (status == 0) show(&results[index]);
  else fputs(dso_last_error(), stdout);
  for (int i = 2; i < count && status == 0; i++) {
    if (!strchr("to", *words[i])) continue;
    printf(" ");
    show(&args[i - 2]);
  }
  putchar('\n');
}

int main(int argc, char **argv) {
  char line[4096];
  int count = 0;
  dso_module *root = argc == 3 ? dso_load(argv[1], NULL) : NULL;
  FILE *script = root ? fopen(argv[2], "r") : NULL;
  if (!script) return puts(dso_last_error()), 1;
  while (fgets(line, sizeof line, script)) run(root, line, count++);
  dso_module_release(root); /* functions and results keep what they need */
  for (int i = count; i-- > 0;) dso_release(&results[i]);
  for (int i = 0; i < num_made; i++) dso_release(&made[i]);
  fclose(script);
  return 0;
}

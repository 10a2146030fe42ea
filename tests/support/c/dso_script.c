/* Run a script of calls through dso.h, and print every outcome; dso_script.py does the same with
 * Python's runtime.
 *
 *     load PATH                 the tree of a file becomes the next slot
 *     system PREFIX             the same of a system library
 *     call SLOT NAME ARG ...    of a module; a module or function that it returns takes a slot
 *     apply SLOT ARG ...        a function
 *     weight SLOT NAME          a named tensor
 *     import SLOT SLOT          append an import
 *     drop SLOT
 *
 * ARG: n (none), i:INT, f:FLOAT, b:0|1, s:TEXT, d:TYPE:ID, o:SLOT, and t:CODE.BITS:SHAPE:HEX for a
 * tensor on the CPU, whose bytes are printed after the call. */
#define _POSIX_C_SOURCE 200112L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dso.h"

enum { MOST_SLOTS = 64, MOST_ARGS = 16, MOST_NDIM = 8, MOST_LINE = 1 << 16 };

static dso_any slots[MOST_SLOTS];
static int num_slots;

static struct tensor {
  DLTensor tensor;
  int64_t shape[MOST_NDIM];
} tensors[MOST_ARGS];
static int num_tensors;

static void fail(const char *what, const char *word) {
  fprintf(stderr, "%s: %s\n", what, word);
  exit(2);
}

static size_t nbytes_of(const DLTensor *tensor) {
  size_t nbytes = (size_t)(tensor->dtype.bits * tensor->dtype.lanes + 7) / 8;
  for (int32_t i = 0; i < tensor->ndim; i++) nbytes *= (size_t)tensor->shape[i];
  return nbytes;
}

static void show_tensor(const DLTensor *tensor) {
  const unsigned char *bytes = (const unsigned char *)tensor->data + tensor->byte_offset;
  printf("tensor %d.%d.%d (", tensor->dtype.code, tensor->dtype.bits, tensor->dtype.lanes);
  for (int32_t i = 0; i < tensor->ndim; i++)
    printf("%s%lld", i ? "," : "", (long long)tensor->shape[i]);
  printf(") ");
  for (size_t i = 0, n = nbytes_of(tensor); i < n; i++) printf("%02x", bytes[i]);
  printf("\n");
}

/* ---- Results */

static void show_number(const dso_any *value) {
  unsigned long long bits;
  memcpy(&bits, &value->v_float64, sizeof bits);
  if (value->type_index == DSO_FLOAT) printf("float %016llx\n", bits);
  else if (value->type_index == DSO_BOOL) printf("bool %d\n", value->v_int64 != 0);
  else printf("int %lld\n", (long long)value->v_int64);
}

static void show_text(const dso_any *value) {
  const char *data = value->v_bytes;
  int size = (int)value->small_len;
  if (value->type_index == DSO_STR) {
    const dso_byte_array *text = (const void *)((const dso_object *)value->v_ptr + 1);
    data = text->data;
    size = (int)text->size;
  }
  printf("text %.*s\n", size, data);
}

/* Keep a module or function in a slot. */
static void keep(dso_any *value, const char *kind) {
  if (num_slots == MOST_SLOTS) fail("too many slots", kind);
  printf("slot %d %s\n", num_slots, kind);
  slots[num_slots++] = *value;
  *value = dso_none();
}

static void show_result(dso_any *value) {
  const DLTensor *tensor = dso_tensor_of(value);
  int32_t type = value->type_index;
  if (tensor) show_tensor(tensor);
  else if (type == DSO_NONE) printf("none\n");
  else if (type == DSO_INT || type == DSO_BOOL || type == DSO_FLOAT) show_number(value);
  else if (type == DSO_SMALL_STR || type == DSO_STR) show_text(value);
  else if (type == DSO_FUNCTION) keep(value, "function");
  else if (type == DSO_MODULE) keep(value, dso_module_type_key(dso_module_of(value)));
  else printf("other\n");
  dso_release(value);
}

/* ---- Arguments */

static void read_bytes(DLTensor *tensor, const char *hex) {
  size_t nbytes = nbytes_of(tensor);
  void *block;
  if (posix_memalign(&block, 64, nbytes + 1) != 0) fail("no memory", hex);
  unsigned char *data = block;
  for (size_t i = 0; i < nbytes; i++) {
    unsigned byte;
    if (sscanf(hex + 2 * i, "%2x", &byte) != 1) fail("too few bytes", hex);
    data[i] = (unsigned char)byte;
  }
  tensor->data = data;
}

static dso_any read_tensor(char *word) {
  struct tensor *made = &tensors[num_tensors++];
  char *shape = strchr(word, ':') + 1, *hex = strchr(shape, ':') + 1;
  unsigned code, bits;
  if (sscanf(word, "%u.%u", &code, &bits) != 2) fail("not a data type", word);
  memset(made, 0, sizeof *made);
  made->tensor.device.device_type = 1;
  made->tensor.dtype.code = (uint8_t)code;
  made->tensor.dtype.bits = (uint8_t)bits;
  made->tensor.dtype.lanes = 1;
  made->tensor.shape = made->shape;
  while (shape < hex - 1) {
    made->shape[made->tensor.ndim++] = strtoll(shape, &shape, 10);
    shape++;
  }
  read_bytes(&made->tensor, hex);
  return dso_tensor(&made->tensor);
}

static dso_any *slot_of(const char *word) {
  int number = word ? atoi(word) : -1;
  if (number < 0 || number >= num_slots) fail("no slot", word ? word : "");
  return &slots[number];
}

static dso_any read_argument(char *word) {
  int type, id;
  switch (word[0]) {
  case 'n': return dso_none();
  case 'i': return dso_int(strtoll(word + 2, NULL, 10));
  case 'f': return dso_float(strtod(word + 2, NULL));
  case 'b': return dso_bool(word[2] == '1');
  case 's': return dso_string(word + 2);
  case 'o': return *slot_of(word + 2);
  case 't': return read_tensor(word + 2);
  case 'd':
    if (sscanf(word + 2, "%d:%d", &type, &id) == 2) return dso_device(type, id);
  }
  fail("not an argument", word);
  return dso_none();
}

/* ---- Lines */

static void show_error(void) { printf("error %s\n", dso_last_error()); }

static void call(dso_any *callee, const char *name) {
  dso_any result, args[MOST_ARGS];
  int32_t count = 0;
  num_tensors = 0;
  for (char *word; (word = strtok(NULL, " ")) != NULL && count < MOST_ARGS;)
    args[count++] = read_argument(word);
  int status = name ? dso_module_call(dso_module_of(callee), name, &result, args, count)
                    : dso_call_function((dso_object *)callee->v_ptr, &result, args, count);
  if (status != 0) show_error();
  else show_result(&result);
  for (int i = 0; i < num_tensors; i++) {
    show_tensor(&tensors[i].tensor);
    free(tensors[i].tensor.data);
  }
}

static void open_tree(dso_module *module) {
  if (!module) {
    show_error();
    return;
  }
  dso_any value = dso_module_value(module);
  keep(&value, dso_module_type_key(module));
}

static void show_weight(dso_module *module, const char *name) {
  DLTensor tensor;
  if (dso_module_weight(module, name, &tensor) != 0) show_error();
  else show_tensor(&tensor);
}

static void run(char *line) {
  char *verb = strtok(line, " ");
  if (!verb) return;
  char *word = strtok(NULL, " ");
  if (strcmp(verb, "load") == 0) open_tree(dso_load(word, NULL));
  else if (strcmp(verb, "system") == 0) open_tree(dso_system_library(word ? word : ""));
  else if (strcmp(verb, "call") == 0) call(slot_of(word), strtok(NULL, " "));
  else if (strcmp(verb, "apply") == 0) call(slot_of(word), NULL);
  else if (strcmp(verb, "drop") == 0) dso_release(slot_of(word));
  else if (strcmp(verb, "weight") == 0)
    show_weight(dso_module_of(slot_of(word)), strtok(NULL, " "));
  else if (strcmp(verb, "import") == 0) {
    dso_module *imported = dso_module_of(slot_of(strtok(NULL, " ")));
    if (dso_module_import(dso_module_of(slot_of(word)), imported) != 0) show_error();
  } else fail("not a verb", verb);
}

int main(void) {
  static char line[MOST_LINE];
  while (fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\n")] = '\0';
    printf("> %s\n", line);
    fflush(stdout);
    run(line);
  }
  for (int i = 0; i < num_slots; i++) dso_release(&slots[i]);
  return 0;
}

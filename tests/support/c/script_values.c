/* The values of a script: the words of arguments, and what is printed of results. dso_script.c, which
 * follows in the same translation unit, describes both. */
#define _POSIX_C_SOURCE 200112L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/tensor_object.h"
#include "dso.h"
#include "vm/object.h"

enum { MOST_SLOTS = 64, MOST_ARGS = 16, MOST_NDIM = 8, MOST_LINE = 1 << 20 };

static dso_any slots[MOST_SLOTS];
static int num_slots;

static struct tensor {
  DLTensor tensor;
  int64_t shape[MOST_NDIM], strides[MOST_NDIM];
  const DLTensor *shown; /* itself, or its copy in a tensor object */
} tensors[MOST_ARGS];
static int num_tensors;

static dso_object *made[MOST_ARGS]; /* of the arguments of a call */
static int num_made;

static void fail(const char *what, const char *word) {
  fprintf(stderr, "%s: %s\n", what, word);
  exit(2);
}

static size_t nbytes_of(const DLTensor *tensor) {
  size_t nbytes = (size_t)(tensor->dtype.bits * tensor->dtype.lanes + 7) / 8;
  for (int32_t i = 0; i < tensor->ndim; i++) nbytes *= (size_t)tensor->shape[i];
  return nbytes;
}

/* A compact copy on a device. */
static dso_object *copied(const DLTensor *tensor, int device_type) {
  DLDevice device = {device_type, 0};
  dso_object *copy = tensor_object_new(device, tensor->dtype, tensor->ndim, tensor->shape);
  if (!copy || tensor_copy(&((dso_tensor_object *)(void *)copy)->tensor, tensor) != 0)
    fail("no copy", dso_last_error());
  return copy;
}

static void show_tensor(const DLTensor *tensor) {
  dso_any copy = dso_none();
  if (tensor->device.device_type != 1 || tensor->strides)
    copy = dso_object_value(copied(tensor, 1));
  if (copy.v_ptr) tensor = dso_tensor_of(&copy);
  const unsigned char *bytes = (const unsigned char *)tensor->data + tensor->byte_offset;
  printf("tensor %d.%d.%d (", tensor->dtype.code, tensor->dtype.bits, tensor->dtype.lanes);
  for (int32_t i = 0; i < tensor->ndim; i++)
    printf("%s%lld", i ? "," : "", (long long)tensor->shape[i]);
  printf(") ");
  for (size_t i = 0, n = nbytes_of(tensor); i < n; i++) printf("%02x", bytes[i]);
  printf("\n");
  dso_release(&copy);
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
static void keep(const dso_any *value, const char *kind) {
  if (num_slots == MOST_SLOTS) fail("too many slots", kind);
  printf("slot %d %s\n", num_slots, kind);
  slots[num_slots++] = *value;
  any_retain(value);
}

static void show(const dso_any *value);

static void show_items(const dso_array_object *array) {
  printf("tuple %d\n", (int)array->size);
  for (int64_t i = 0; i < array->size; i++) show(&array->items[i]);
}

static void show_extents(const dso_shape_object *shape) {
  printf("tuple %d\n", (int)shape->ndim);
  for (size_t i = 0; i < shape->ndim; i++) printf("int %lld\n", (long long)shape->dims[i]);
}

static void show(const dso_any *value) {
  const DLTensor *tensor = dso_tensor_of(value);
  int32_t type = value->type_index;
  if (tensor) show_tensor(tensor);
  else if (type == DSO_NONE) printf("none\n");
  else if (type == DSO_INT || type == DSO_BOOL || type == DSO_FLOAT) show_number(value);
  else if (type == DSO_SMALL_STR || type == DSO_STR) show_text(value);
  else if (type == DSO_RAW_STR) printf("text %s\n", value->v_c_str);
  else if (type == DSO_ARRAY) show_items(value->v_ptr);
  else if (type == DSO_SHAPE) show_extents(value->v_ptr);
  else if (type == DSO_FUNCTION) keep(value, "function");
  else if (type == DSO_MODULE) keep(value, dso_module_type_key(dso_module_of(value)));
  else printf("other\n");
}

/* ---- Arguments */

static unsigned digit(char hex) {
  const char *digits = "0123456789abcdef", *found = hex ? strchr(digits, hex) : NULL;
  if (!found) fail("too few bytes", "");
  return (unsigned)(found - digits);
}

static void *read_bytes(const char *hex, size_t nbytes) {
  void *block;
  if (posix_memalign(&block, 64, nbytes + 1) != 0) fail("no memory", hex);
  unsigned char *data = block;
  for (size_t i = 0; i < nbytes; i++)
    data[i] = (unsigned char)(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
  return block;
}

/* Integers with commas between them, up to another character; return how many. */
static int read_integers(char **text, int64_t *to) {
  int count = 0;
  while (**text == '-' || (**text >= '0' && **text <= '9')) {
    if (count == MOST_NDIM) fail("too many dimensions", *text);
    to[count++] = strtoll(*text, text, 10);
    if (**text == ',') ++*text;
  }
  return count;
}

static struct tensor *read_tensor(char *word) {
  if (num_tensors == MOST_ARGS) fail("too many tensors", word);
  struct tensor *self = &tensors[num_tensors++];
  char *shape = strchr(word, ':') + 1;
  unsigned code, bits;
  if (sscanf(word, "%u.%u", &code, &bits) != 2) fail("not a data type", word);
  memset(self, 0, sizeof *self);
  self->tensor.device.device_type = 1;
  self->tensor.dtype.code = (uint8_t)code;
  self->tensor.dtype.bits = (uint8_t)bits;
  self->tensor.dtype.lanes = 1;
  self->tensor.shape = self->shape;
  self->tensor.ndim = read_integers(&shape, self->shape);
  if (*shape++ == '/') {
    self->tensor.strides = self->strides;
    read_integers(&shape, self->strides);
    shape++;
  }
  self->tensor.data =
      read_bytes(shape, self->tensor.strides ? strlen(shape) / 2 : nbytes_of(&self->tensor));
  self->shown = &self->tensor;
  return self;
}

/* Release it after the call. */
static dso_any passed(dso_object *object) {
  if (!object || num_made == MOST_ARGS) fail("no argument", dso_last_error());
  return dso_object_value(made[num_made++] = object);
}

static dso_any read_object(char *word) {
  struct tensor *self = read_tensor(strchr(word, ':') + 1);
  dso_any value = passed(copied(&self->tensor, atoi(word)));
  self->shown = dso_tensor_of(&value);
  return value;
}

static dso_any read_shape(char *text) {
  int64_t extents[MOST_NDIM];
  int ndim = read_integers(&text, extents);
  return passed(shape_object_new((size_t)ndim, extents));
}

static dso_any *slot_of(const char *word) {
  int number = word ? atoi(word) : -1;
  if (number < 0 || number >= num_slots) fail("no slot", word ? word : "");
  return &slots[number];
}

static dso_any read_argument(char *word);

/* The words up to a lone ")" or the end of the line. */
static int32_t read_arguments(dso_any *args) {
  int32_t count = 0;
  for (char *word; (word = strtok(NULL, " ")) != NULL && strcmp(word, ")") != 0;) {
    if (count == MOST_ARGS) fail("too many arguments", word);
    args[count++] = read_argument(word);
  }
  return count;
}

static dso_any read_tuple(void) {
  dso_any items[MOST_ARGS];
  int32_t count = read_arguments(items);
  dso_array_object *array = array_object_new(count);
  for (int32_t i = 0; array && i < count; i++) {
    array->items[i] = items[i];
    any_retain(&items[i]);
  }
  return passed((dso_object *)array);
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
  case 'h': return read_shape(word + 2);
  case '(': return read_tuple();
  case 't': return dso_tensor(&read_tensor(word + 2)->tensor);
  case 'm': return read_object(word + 2);
  case 'd':
    if (sscanf(word + 2, "%d:%d", &type, &id) == 2) return dso_device(type, id);
  }
  fail("not an argument", word);
  return dso_none();
}

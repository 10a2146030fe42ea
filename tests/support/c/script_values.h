/* The values of a script: the words of arguments, and what is printed of results. dso_script.c
 * describes both. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dso.h"

enum { MOST_SLOTS = 64, MOST_ARGS = 16, MOST_NDIM = 8, MOST_LINE = 1 << 20 };

static dso_any slots[MOST_SLOTS];
static int num_slots;

/* Objects of TVM FFI's layouts, which the program makes for arguments. */
struct tensor {
  dso_object object;
  DLTensor tensor;
  int64_t shape[MOST_NDIM], strides[MOST_NDIM];
  const DLTensor *copy; /* on a device; this is printed with its elements */
};
struct bytes {
  dso_object object;
  dso_byte_array text;
};
struct extents {
  dso_object object;
  const int64_t *dims;
  size_t ndim;
  int64_t own[MOST_NDIM];
};
struct tuple {
  dso_object object;
  dso_any *items;
  int64_t size, capacity;
  void (*free_items)(void *items);
  dso_any own[MOST_ARGS];
};

/* Of the arguments of a call; `tensors` are those among them that are printed. */
static dso_object *made[4 * MOST_ARGS];
static struct tensor *tensors[MOST_ARGS];
static int num_made, num_tensors;

static void fail(const char *what, const char *word) {
  fprintf(stderr, "%s: %s\n", what, word);
  exit(2);
}

static size_t nbytes_of(const DLTensor *tensor) {
  size_t nbytes = (size_t)(tensor->dtype.bits * tensor->dtype.lanes + 7) / 8;
  for (int32_t i = 0; i < tensor->ndim; i++) nbytes *= (size_t)tensor->shape[i];
  return nbytes;
}

/* The element at an index, counted in the order of a compact tensor. */
static const unsigned char *element(const DLTensor *tensor, size_t index, size_t itemsize) {
  size_t at = index;
  if (tensor->strides) {
    at = 0;
    for (int32_t i = tensor->ndim; i-- > 0; index /= (size_t)tensor->shape[i])
      at += index % (size_t)tensor->shape[i] * (size_t)tensor->strides[i];
  }
  return (const unsigned char *)tensor->data + tensor->byte_offset + at * itemsize;
}

static void show_tensor(const DLTensor *tensor) {
  size_t itemsize = (size_t)(tensor->dtype.bits * tensor->dtype.lanes + 7) / 8;
  printf("tensor %d.%d.%d (", tensor->dtype.code, tensor->dtype.bits, tensor->dtype.lanes);
  for (int32_t i = 0; i < tensor->ndim; i++)
    printf("%s%lld", i ? "," : "", (long long)tensor->shape[i]);
  printf(") ");
  for (size_t i = 0, n = nbytes_of(tensor); i < n; i++)
    printf("%02x", element(tensor, i / itemsize, itemsize)[i % itemsize]);
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

/* Keep a module, a function or a tensor on a device in a slot. */
static void keep(const dso_any *value, const char *kind) {
  if (num_slots == MOST_SLOTS) fail("too many slots", kind);
  printf("slot %d %s\n", num_slots, kind);
  slots[num_slots++] = *value;
  dso_object_retain((dso_object *)value->v_ptr);
}

static void show(const dso_any *value);

static void show_items(const struct tuple *array) {
  printf("tuple %d\n", (int)array->size);
  for (int64_t i = 0; i < array->size; i++) show(&array->items[i]);
}

static void show_extents(const struct extents *shape) {
  printf("tuple %d\n", (int)shape->ndim);
  for (size_t i = 0; i < shape->ndim; i++) printf("int %lld\n", (long long)shape->dims[i]);
}

static void show(const dso_any *value) {
  const DLTensor *tensor = dso_tensor_of(value);
  int32_t type = value->type_index;
  if (tensor && tensor->device.device_type != 1) keep(value, "tensor");
  else if (tensor) show_tensor(tensor);
  else if (type == DSO_NONE) printf("none\n");
  else if (type == DSO_INT || type == DSO_BOOL || type == DSO_FLOAT) show_number(value);
  else if (type == DSO_SMALL_STR || type == DSO_STR) show_text(value);
  else if (type == DSO_RAW_STR) printf("text %s\n", value->v_c_str);
  else if (type == DSO_ARRAY) show_items((const struct tuple *)value->v_ptr);
  else if (type == DSO_SHAPE) show_extents((const struct extents *)value->v_ptr);
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

static void delete_object(void *self, int flags) {
  struct tuple *tuple = self;
  struct tensor *tensor = self;
  if (flags & DSO_DELETE_STRONG) {
    if (tensor->object.type_index == DSO_TENSOR) free(tensor->tensor.data);
    if (tensor->object.type_index == DSO_BYTES) free((void *)((struct bytes *)self)->text.data);
    for (int64_t i = 0; tuple->object.type_index == DSO_ARRAY && i < tuple->size; i++)
      dso_release(&tuple->items[i]);
  }
  if (flags & DSO_DELETE_WEAK) free(self);
}

/* It is released after the call. */
static void *make(size_t size, int32_t type_index) {
  dso_object *self = calloc(1, size);
  if (!self || num_made == 4 * MOST_ARGS) fail("too many values", "");
  self->combined_ref_count = (uint64_t)1 << 32 | 1;
  self->type_index = type_index;
  self->deleter = delete_object;
  return made[num_made++] = self;
}

static struct tensor *read_tensor(char *word) {
  struct tensor *self = make(sizeof *self, DSO_TENSOR);
  if (num_tensors == MOST_ARGS) fail("too many tensors", word);
  tensors[num_tensors++] = self;
  char *shape = strchr(word, ':') + 1;
  unsigned code, bits;
  if (sscanf(word, "%u.%u", &code, &bits) != 2) fail("not a data type", word);
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
  size_t nbytes = self->tensor.strides ? strlen(shape) / 2 : nbytes_of(&self->tensor);
  self->tensor.data = read_bytes(shape, nbytes);
  return self;
}

static dso_any read_on_device(char *word) {
  struct tensor *self = read_tensor(word);
  DLTensor *tensor = &self->tensor;
  DLDevice device = {4, 0};
  dso_any copy;
  if (dso_tensor_new(&copy, device, tensor->dtype, tensor->ndim, tensor->shape) != 0 ||
      dso_tensor_copy(self->copy = dso_tensor_of(&copy), tensor) != 0)
    fail(dso_last_error(), word);
  made[num_made++] = (dso_object *)copy.v_ptr;
  return copy;
}

static dso_any read_text(const char *hex) {
  struct bytes *self = make(sizeof *self, DSO_BYTES);
  self->text.size = strlen(hex) / 2;
  self->text.data = read_bytes(hex, self->text.size);
  return dso_object_value(&self->object);
}

static dso_any read_shape(char *text) {
  struct extents *self = make(sizeof *self, DSO_SHAPE);
  self->dims = self->own;
  self->ndim = (size_t)read_integers(&text, self->own);
  return dso_object_value(&self->object);
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
  struct tuple *self = make(sizeof *self, DSO_ARRAY);
  self->items = self->own;
  self->size = self->capacity = read_arguments(self->own);
  for (int64_t i = 0; i < self->size; i++)
    if (self->own[i].type_index >= DSO_OBJECT) dso_object_retain((dso_object *)self->own[i].v_ptr);
  return dso_object_value(&self->object);
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
    case 'x': return read_text(word + 2);
    case 'g': return read_on_device(word + 2);
    case 'h': return read_shape(word + 2);
    case '(': return read_tuple();
    case 't': return dso_tensor(&read_tensor(word + 2)->tensor);
    case 'm': return dso_object_value(&read_tensor(word + 2)->object);
    case 'd':
      if (sscanf(word + 2, "%d:%d", &type, &id) == 2) return dso_device(type, id);
  }
  fail("not an argument", word);
  return dso_none();
}

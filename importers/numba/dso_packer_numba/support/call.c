/* Refusals, errors and text of the calls of Numba functions. */
#include "call.h"

#include <stdlib.h>
#include <string.h>

/* ---- Refusals */

static void say(dso_message *message, const dso_any *value) {
  static const char *const names[] = {"int", "uint", "float"};
  const dso_sequence *array = dso_sequence_of(value);
  if (nb_is_typed(value) && nb_code_of(value) <= DSO_DT_FLOAT) {
    dso_say(message, "%s%d", names[nb_code_of(value)], nb_bits_of(value));
    return;
  }
  if (!array) {
    dso_say_value(message, value);
    if (nb_is_readonly(value)) dso_say(message, ", read-only");
    return;
  }
  dso_say(message, "(");
  for (int64_t i = 0; i < array->size; i++) {
    dso_say(message, "%s", i == 0 ? "" : ", ");
    say(message, &array->items[i]);
  }
  dso_say(message, ")");
}

static int is_same_kind(const dso_function *function, const dso_any *value, int32_t index) {
  return dso_tensor_of(value) != NULL && strchr(function->parameters[index].type, '[') != NULL;
}

static void say_number(dso_message *message, const dso_any *value) {
  if (dso_is_beyond_int64(value)) dso_say(message, "%llu", (unsigned long long)value->v_int64);
  else if (dso_is_integer(value)) dso_say(message, "%lld", (long long)value->v_int64);
  else if (value->type_index == DSO_FLOAT) dso_say(message, "%g", value->v_float64);
  else say(message, value);
}

int nb_refuse(const dso_function *function, const dso_any *value, int32_t index, int why) {
  const dso_parameter *parameter = &function->parameters[index];
  dso_message message = {.length = 0};
  dso_say(&message, "%s: argument %d '%s': expected %s, found ", function->name, index + 1,
          parameter->name, parameter->type);
  if (why == NB_BEYOND || why == NB_NAN) say_number(&message, value);
  else say(&message, value);
  int is_value = why == NB_NAN || is_same_kind(function, value, index);
  return dso_raise_message(&message, function,
                           why == NB_BEYOND ? "OverflowError"
                           : is_value       ? "ValueError"
                                            : "TypeError");
}

int nb_refuse_all(const dso_function *function, const dso_any *args, int32_t count,
                  const char *signatures, int32_t num_fitting) {
  dso_message message = {.length = 0};
  const char *what = num_fitting == 0 ? "no signature" : "several signatures fit equally";
  dso_say(&message, "%s: %s for (", function->name, what);
  for (int32_t i = 0; i < count; i++) {
    dso_say(&message, "%s", i == 0 ? "" : ", ");
    say(&message, &args[i]);
  }
  dso_say(&message, "), expected one of %s", signatures);
  return dso_raise("TypeError", message.text);
}

/* ---- Text: UTF-8 outside, characters of one size inside */

/* Decode one character; the text is valid UTF-8. */
static uint32_t next(const unsigned char **place) {
  const unsigned char *at = *place;
  int more = *at < 0x80 ? 0 : *at < 0xE0 ? 1 : *at < 0xF0 ? 2 : 3;
  uint32_t character = more == 0 ? *at : *at & (0x3Fu >> more);
  for (int i = 1; i <= more; i++) character = character << 6 | (at[i] & 0x3Fu);
  *place = at + more + 1;
  return character;
}

static void put(void *data, int32_t kind, int64_t index, uint32_t character) {
  if (kind == 1) ((uint8_t *)data)[index] = (uint8_t)character;
  else if (kind == 2) ((uint16_t *)data)[index] = (uint16_t)character;
  else ((uint32_t *)data)[index] = character;
}

static uint32_t get(const nb_str *string, int64_t index) {
  if (string->kind == 1) return ((const uint8_t *)string->data)[index];
  if (string->kind == 2) return ((const uint16_t *)string->data)[index];
  return ((const uint32_t *)string->data)[index];
}

static int decode(const unsigned char *text, size_t nbytes, nb_str *out) {
  uint32_t greatest = 0;
  int64_t length = 0;
  for (const unsigned char *at = text; at < text + nbytes; length++) {
    uint32_t character = next(&at);
    greatest = character > greatest ? character : greatest;
  }
  int32_t kind = greatest < 0x100 ? 1 : greatest < 0x10000 ? 2 : 4;
  nrt_meminfo *memory = NRT_MemInfo_alloc_aligned((size_t)(length + 1) * (size_t)kind, 16);
  if (memory == NULL) return -1;
  *out = (nb_str){memory->data, length, kind, greatest < 0x80, -1, memory, NULL};
  int64_t i = 0;
  for (const unsigned char *at = text; at < text + nbytes; i++) put(out->data, kind, i, next(&at));
  put(out->data, kind, length, 0);
  return 0;
}

int nb_read_str(const dso_any *value, nb_str *out) {
  dso_byte_array bytes = dso_bytes_of(value);
  if (value->type_index == DSO_RAW_STR && value->v_c_str) {
    bytes.data = value->v_c_str;
    bytes.size = strlen(value->v_c_str);
  }
  if (!bytes.data) return -1;
  return decode((const unsigned char *)bytes.data, (size_t)bytes.size, out);
}

static size_t encode(const nb_str *string, char *out) {
  static const unsigned char first[] = {0, 0xC0, 0xE0, 0xF0};
  size_t size = 0;
  for (int64_t i = 0; i < string->length; i++) {
    uint32_t c = get(string, i);
    int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    if (out) {
      out[size] = (char)(first[more] | c >> 6 * more);
      for (int k = 1; k <= more; k++)
        out[size + (size_t)k] = (char)(0x80u | (c >> 6 * (more - k) & 0x3Fu));
    }
    size += (size_t)more + 1;
  }
  return size;
}

static int give(dso_any *result, char *text, size_t nbytes, int32_t type_index) {
  int status = dso_give_heap_string(result, text, nbytes);
  if (status == 0) {
    ((dso_object *)result->v_ptr)->type_index = type_index;
    result->type_index = type_index;
  }
  return status;
}

int nb_give_str(dso_any *result, const nb_str *string) {
  size_t nbytes = encode(string, NULL);
  char *text = malloc(nbytes + 1);
  int status = -1;
  if (text == NULL) dso_raise("MemoryError", "no memory for the text that the function returned");
  else {
    encode(string, text);
    status = give(result, text, nbytes, DSO_STR);
  }
  free(text);
  NRT_decref(string->meminfo);
  return status;
}

int nb_give_bytes(dso_any *result, const nb_array *array) {
  int status = give(result, array->data, (size_t)array->nitems, DSO_BYTES);
  NRT_decref(array->meminfo);
  return status;
}

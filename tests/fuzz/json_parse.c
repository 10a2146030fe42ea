/* The parser of JSON: a value's parts are all readable, and a NUL follows each text. */
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "scan/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

static void require(int truth) {
  if (!truth) abort();
}

/* The parser's limit of 64 levels bounds this recursion. */
static size_t read_value(const struct json *value, int depth) {
  size_t count = 1;
  require(depth <= 64);
  if (value->type == JSON_TEXT) {
    require(value->text[value->size] == '\0');
  } else if (value->type == JSON_LIST) {
    for (size_t i = 0; i < value->size; i++) count += read_value(&value->items[i], depth + 1);
  } else if (value->type == JSON_OBJECT) {
    for (size_t i = 0; i < value->size; i++) {
      const struct json *key = &value->items[2 * i];
      require(key->type == JSON_TEXT);
      if (strlen(key->text) == key->size) require(json_member(value, key->text) == key + 1);
      count += read_value(key, depth + 1) + read_value(key + 1, depth + 1);
    }
  } else require(value->type <= JSON_NUMBER);
  return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
  char error[JSON_ERROR_SIZE] = "nothing";
  char *text = malloc(nbytes > 0 ? nbytes : 1); /* its end is the end of a block */
  int fails = nbytes % 16 == 0;
  if (nbytes > 0) memcpy(text, data, nbytes);
  if (fails) (void)heap_fail_at(1 + (long)(nbytes / 16 % 3));
  const struct json *value = json_parse(text, nbytes, error);
  (void)heap_fail_at(0);
  if (value != NULL) require(read_value(value, 0) <= nbytes + 1);
  else require(fails || (error[0] != '\0' && memchr(error, 0, sizeof error) != NULL));
  json_free(value);
  free(text);
  return 0;
}

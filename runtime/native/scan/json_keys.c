/* The keys of a JSON object: look-up, and a check that none occurs twice. */
#include "scan/json_keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"

enum { FEW = 8 }; /* compared pairwise */

static int compare(const struct json *left, const struct json *right) {
  size_t shorter = left->size < right->size ? left->size : right->size;
  int order = memcmp(left->text, right->text, shorter);
  if (order != 0) return order;
  return (left->size > right->size) - (left->size < right->size);
}

/* By text, then by place. */
static int compare_places(const void *left, const void *right) {
  const struct json *first = *(const struct json *const *)left;
  const struct json *second = *(const struct json *const *)right;
  int order = compare(first, second);
  return order != 0 ? order : (first > second) - (first < second);
}

static const struct json *find_pairwise(const struct json *object) {
  for (size_t i = 0; i < object->size; i++)
    for (size_t j = i + 1; j < object->size; j++)
      if (compare(&object->items[2 * i], &object->items[2 * j]) == 0) return &object->items[2 * i];
  return NULL;
}

/* Of the keys that occur twice, the one that occurs first. */
static const struct json *find_sorted(const struct json *object, const struct json **keys) {
  const struct json *twice = NULL;
  for (size_t i = 0; i < object->size; i++) keys[i] = &object->items[2 * i];
  qsort((void *)keys, object->size, sizeof *keys, compare_places);
  for (size_t i = 1; i < object->size; i++)
    if (compare(keys[i - 1], keys[i]) == 0 && (twice == NULL || keys[i - 1] < twice))
      twice = keys[i - 1];
  return twice;
}

int json_check_keys(const struct json *object, char error[JSON_ERROR_SIZE]) {
  const struct json *twice;
  if (object->size <= FEW) {
    twice = find_pairwise(object);
  } else {
    const struct json **keys = heap_new(object->size * sizeof *keys);
    if (keys == NULL) return -1;
    twice = find_sorted(object, keys);
    free((void *)keys);
  }
  if (twice == NULL) return 0;
  struct text message = {0};
  text_add(&message, "key ", 4);
  text_shown_json(&message, twice->text, twice->size);
  text_format(&message, " occurs twice, expected once");
  if (!message.is_broken) (void)snprintf(error, JSON_ERROR_SIZE, "%s", text_of(&message));
  text_free(&message);
  return -1;
}

const struct json *json_member(const struct json *object, const char *key) {
  struct json wanted = {.size = strlen(key), .text = key};
  for (size_t i = 0; object->type == JSON_OBJECT && i < object->size; i++)
    if (compare(&object->items[2 * i], &wanted) == 0) return &object->items[2 * i + 1];
  return NULL;
}

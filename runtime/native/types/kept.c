/* Values by name: lists of a few entries. */
#include "types/kept.h"

#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "vm/object.h"

static int is_named(const struct kept *entry, struct span name) {
  return entry->nbytes == name.size &&
         (name.size == 0 || memcmp(entry->name, name.data, name.size) == 0);
}

dso_any *kept_find(struct kept *list, struct span name) {
  while (list != NULL && !is_named(list, name)) list = list->next;
  return list != NULL ? &list->value : NULL;
}

struct kept *kept_new(struct span name, dso_any value) {
  struct kept *self = heap_new(sizeof *self + name.size + 1);
  if (self == NULL) {
    any_release(&value);
    return raised_null("OutOfMemoryError", "no memory to keep a value");
  }
  *self = (struct kept){.value = value, .nbytes = name.size};
  if (name.size > 0) memcpy(self->name, name.data, name.size);
  self->name[name.size] = '\0';
  return self;
}

struct kept *kept_add(struct kept **list, struct kept *entry) {
  while (*list != NULL && !is_named(*list, (struct span){entry->name, entry->nbytes}))
    list = &(*list)->next;
  if (*list == NULL) {
    *list = entry;
    return NULL;
  }
  dso_any former = (*list)->value;
  (*list)->value = entry->value;
  entry->value = former;
  return entry;
}

void kept_free(struct kept *list) {
  while (list != NULL) {
    struct kept *next = list->next;
    any_release(&list->value);
    free(list);
    list = next;
  }
}

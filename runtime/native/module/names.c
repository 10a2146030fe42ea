/* Names that are similar to one that was not found: Python's difflib.get_close_matches. */
#include "module/names.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "abi/heap.h"
#include "abi/raised.h"

enum { MOST_SHOWN = 20, MOST_CLOSE = 3, LONGEST = 199 };

int names_add(struct names *self, const char *name) {
  if (self->count == self->capacity) {
    size_t capacity = self->capacity > 0 ? 2 * self->capacity : 16;
    char **items = heap_resize(self->items, capacity * sizeof *items);
    if (items == NULL) return raised_format("OutOfMemoryError", "no memory for names");
    self->items = items;
    self->capacity = capacity;
  }
  char *copy = heap_copy_text(name);
  if (copy == NULL) return raised_format("OutOfMemoryError", "no memory for names");
  self->items[self->count++] = copy;
  return 0;
}

static int compare(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

int names_add_function(void *names, const char *name, const char *signature) {
  (void)signature;
  return names_add(names, name);
}

void names_sort(struct names *self) {
  size_t kept = 0;
  if (self->count > 1) qsort(self->items, self->count, sizeof *self->items, compare);
  for (size_t i = 0; i < self->count; i++) {
    if (kept > 0 && strcmp(self->items[kept - 1], self->items[i]) == 0) free(self->items[i]);
    else self->items[kept++] = self->items[i];
  }
  self->count = kept;
}

void names_clear(struct names *self) {
  for (size_t i = 0; i < self->count; i++) free(self->items[i]);
  free(self->items);
  *self = (struct names){.count = 0};
}

/* ---- Similarity: twice the common characters, divided by the characters of both names. Common are
 * the longest common part, and the common characters before and after it. */

struct part {
  size_t a, end_a, b, end_b;
};

/* The longest common part; of equal ones the first in a, then in b. */
static size_t longest(const char *a, const char *b, struct part in, struct part *found) {
  unsigned char rows[2][LONGEST + 2] = {{0}};
  size_t best = 0;
  for (size_t i = in.a; i < in.end_a; i++) {
    unsigned char *now = rows[i & 1], *before = rows[(i & 1) ^ 1];
    for (size_t j = in.b; j < in.end_b; j++) {
      now[j + 1] = a[i] == b[j] ? (unsigned char)((j > in.b ? before[j] : 0) + 1) : 0;
      if (now[j + 1] <= best) continue;
      best = now[j + 1];
      *found = (struct part){i + 1 - best, i + 1, j + 1 - best, j + 1};
    }
  }
  return best;
}

/* The parts that wait are disjoint and not empty in both names, so there are at most LONGEST. */
static size_t common(const char *a, size_t size_a, const char *b, size_t size_b) {
  struct part waiting[LONGEST + 2] = {{0, size_a, 0, size_b}};
  size_t count = 1, total = 0;
  while (count > 0) {
    struct part in = waiting[--count], found;
    size_t size = longest(a, b, in, &found);
    if (size == 0) continue;
    total += size;
    if (in.a < found.a && in.b < found.b)
      waiting[count++] = (struct part){in.a, found.a, in.b, found.b};
    if (found.end_a < in.end_a && found.end_b < in.end_b)
      waiting[count++] = (struct part){found.end_a, in.end_a, found.end_b, in.end_b};
  }
  return total;
}

/* 0 unless the names are close: the ratio is at least 0.6. */
static double closeness(const char *name, const char *wanted) {
  size_t a = strlen(name), b = strlen(wanted), least = a < b ? a : b;
  if (a > LONGEST || b > LONGEST || a + b == 0) return 0;
  if (2.0 * (double)least / (double)(a + b) < 0.6) return 0;
  double ratio = 2.0 * (double)common(name, a, wanted, b) / (double)(a + b);
  return ratio >= 0.6 ? ratio : 0;
}

/* ---- The text */

struct close {
  double ratio;
  const char *name;
};

static int is_before(struct close a, struct close b) {
  return a.ratio > b.ratio || (a.ratio == b.ratio && strcmp(a.name, b.name) > 0);
}

/* Insert into a list of the closest, best first. */
static size_t insert(struct close *list, size_t count, struct close found) {
  size_t at = count;
  while (at > 0 && is_before(found, list[at - 1])) at--;
  if (at == MOST_CLOSE) return count;
  size_t kept = count < MOST_CLOSE ? count : MOST_CLOSE - 1;
  memmove(&list[at + 1], &list[at], (kept - at) * sizeof *list);
  list[at] = found;
  return kept + 1;
}

/* Names that differ in case only, else all, sorted. */
static void add_others(struct text *text, const struct names *self, const char *name) {
  struct names shown = {.count = 0};
  int is_near = 0;
  for (size_t i = 0; i < self->count; i++) is_near |= strcasecmp(self->items[i], name) == 0;
  for (size_t i = 0; i < self->count; i++)
    if (!is_near || strcasecmp(self->items[i], name) == 0)
      text_check(text, names_add(&shown, self->items[i]));
  if (!is_near) names_sort(&shown);
  text_format(text, is_near ? "; near names: " : "; it has: ");
  for (size_t i = 0; i < shown.count && i < MOST_SHOWN; i++)
    text_format(text, "%s'%s'", i > 0 ? ", " : "", shown.items[i]);
  if (shown.count > MOST_SHOWN) text_format(text, " and %zu more", shown.count - MOST_SHOWN);
  names_clear(&shown);
}

static size_t insert_all(struct close *list, size_t count, const struct names *names,
                         const char *name) {
  for (size_t i = 0; i < names->count; i++) {
    double ratio = closeness(names->items[i], name);
    if (ratio > 0) count = insert(list, count, (struct close){ratio, names->items[i]});
  }
  return count;
}

void names_add_near(struct text *text, const struct names *self, const struct names *also,
                    const char *name) {
  struct close closest[MOST_CLOSE];
  size_t count = insert_all(closest, 0, self, name);
  if (also != NULL) count = insert_all(closest, count, also, name);
  if (count == 0 && self->count > 0) add_others(text, self, name);
  for (size_t i = 0; i < count; i++)
    text_format(text, "%s'%s'", i > 0 ? ", " : "; near names: ", closest[i].name);
}

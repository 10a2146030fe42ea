/* Names of a payload, sorted: for look-ups, and to find a name that occurs twice. */
#pragma once

#include <stdint.h>

#include "blob/reader.h"

struct name {
  struct span text;
  size_t place; /* in wire order */
};

struct name_order {
  size_t count;
  struct name *sorted; /* by text, then by place */
};

static const size_t NO_NAME = SIZE_MAX;

/* Sort `count` spans, of which each is at the start of a struct of `stride` bytes. Returns 0, or -1
 * with MemoryError raised. The spans must outlive the names. */
int name_order_make(struct name_order *order, const void *spans, size_t count, size_t stride);
void name_order_free(struct name_order *order);

/* The first place of a name, or NO_NAME. */
size_t name_order_find(const struct name_order *order, const char *text, size_t nbytes);

/* The first place of a name that an earlier place has, or NO_NAME. */
size_t name_order_repeated(const struct name_order *order);

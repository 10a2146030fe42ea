/* Device modules: kernels as source or binary, with their signatures. */
#pragma once

#include "blob/name_order.h"
#include "device/kernel.h"
#include "module/module.h"

struct device_module;

/* A kernel as it was written. All views are of the payload. */
struct kernel_row {
  struct span key; /* the name for look-up; first, for name_order_make */
  struct span name;
  size_t num_types, num_tags;
  const uint8_t *types; /* 4 bytes each */
  struct span *tags;
  struct device_module *module;   /* not retained */
  dso_function *_Atomic function; /* the kernel; made by the first look-up */
};

struct device_module {
  dso_module module;
  const struct kernel_driver *driver; /* NULL if the core cannot launch such kernels */
  struct span fmt, data;              /* empty if the layout has none */
  size_t num_rows;
  struct kernel_row *rows; /* in wire order */
  struct name_order order;
  struct kernel_module *_Atomic code;
};

/* Read the payload of a type key into an empty module: 0, or -1 with the error raised
 * (device_payload.c). */
int device_payload_read(struct device_module *self, struct reader *reader);

/* Free what device_payload_read stored. */
void device_payload_clear(struct device_module *self);

/* True if this row is the one that a look-up of its key finds. */
int kernel_row_counts(const struct device_module *self, size_t row);

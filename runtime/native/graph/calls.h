/* Calls that were bound once to tensors, and are made one after the other. */
#pragma once

#include <stddef.h>

#include "abi/object.h"

struct call {
  dso_safe_call address;
  void *handle;
  dso_any *args; /* each points to a slot's tensor */
  int32_t count;
};

/* The arguments point to `tensor`, a copy of the bound object's DLTensor. */
struct slot {
  DLTensor tensor;
  int is_written;      /* a function declares that it writes: "*f32" */
  int needs_alignment; /* a function has no declaration, so it may rely on TVM's alignment */
};

enum { CALLS_MAX_DEVICES = 8 };

/* Devices that work on the tensors, without the CPU, which needs no synchronisation. */
struct call_devices {
  int count;
  DLDevice items[CALLS_MAX_DEVICES];
};

/* Make `count` calls. Returns the index of the one that failed, or `count`. */
size_t calls_run(const struct call *calls, size_t count);

/* TVM's __copy between devices, as a safe call: source and destination. */
int calls_copy(void *handle, const dso_any *args, int32_t count, dso_any *result);

/* Add a device. Returns 0, or -1 if there are too many. */
int call_devices_add(struct call_devices *devices, DLDevice device);

/* True if a tensor has the slot's shape, data type and device. */
int slot_is_kind(const struct slot *slot, const DLTensor *tensor);

/* True if the calls may use its memory without a copy. */
int slot_is_fit(const struct slot *slot, const DLTensor *tensor, int is_readonly);

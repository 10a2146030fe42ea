/* The table of buffers: open addressing with linear probing; a removal moves later entries up. */
#include <pthread.h>
#include <stdlib.h>

#include "device/opencl/buffers.h"

#include "abi/heap.h"

static struct opencl_buffer *slots;
static size_t num_slots, num_used; /* num_slots is a power of two, or 0 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Handles are addresses; Fibonacci hashing spreads their high bits. */
static size_t home_of(const void *data, size_t count) {
  uint64_t product = (uint64_t)(uintptr_t)data * UINT64_C(0x9E3779B97F4A7C15);
  return (size_t)(product >> 32) & (count - 1);
}

/* The slot of `data`, or the empty slot for it. */
static size_t slot_of(const struct opencl_buffer *table, size_t count, const void *data) {
  size_t slot = home_of(data, count);
  while (table[slot].memory != NULL && (const void *)table[slot].memory != data)
    slot = (slot + 1) & (count - 1);
  return slot;
}

static int grow(void) {
  size_t count = num_slots ? 2 * num_slots : 64;
  struct opencl_buffer *table = heap_new_zeroed(count, sizeof *table);
  if (table == NULL) return -1;
  for (size_t i = 0; i < num_slots; i++)
    if (slots[i].memory != NULL) table[slot_of(table, count, slots[i].memory)] = slots[i];
  free(slots);
  slots = table;
  num_slots = count;
  return 0;
}

int opencl_buffers_add(const struct opencl_buffer *buffer) {
  pthread_mutex_lock(&lock);
  int status = 2 * num_used < num_slots ? 0 : grow();
  if (status == 0) {
    slots[slot_of(slots, num_slots, buffer->memory)] = *buffer;
    num_used++;
  }
  pthread_mutex_unlock(&lock);
  return status;
}

int opencl_find_buffer(const void *data, struct opencl_buffer *buffer) {
  int found = 0;
  pthread_mutex_lock(&lock);
  if (num_slots > 0 && data != NULL) {
    *buffer = slots[slot_of(slots, num_slots, data)];
    found = buffer->memory != NULL;
  }
  pthread_mutex_unlock(&lock);
  return found;
}

/* Empty `hole`, and move up the entries that a probe would no longer reach. */
static void close_gap(size_t hole) {
  size_t mask = num_slots - 1;
  slots[hole] = (struct opencl_buffer){0};
  for (size_t i = (hole + 1) & mask; slots[i].memory != NULL; i = (i + 1) & mask) {
    size_t home = home_of(slots[i].memory, num_slots);
    if (((i - home) & mask) < ((i - hole) & mask)) continue;
    slots[hole] = slots[i];
    slots[i] = (struct opencl_buffer){0};
    hole = i;
  }
}

int opencl_buffers_remove(const void *data, int device_id) {
  int found = 0;
  pthread_mutex_lock(&lock);
  if (num_slots > 0) {
    size_t slot = slot_of(slots, num_slots, data);
    found = slots[slot].memory != NULL && slots[slot].device_id == device_id;
    if (found) close_gap(slot);
    num_used -= (size_t)found;
  }
  pthread_mutex_unlock(&lock);
  return found;
}

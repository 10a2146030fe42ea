/* The CPU's device table: one device, cpu:0, whose memory is the memory of the process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/device_api.h"
#include "abi/dlpack.h"
#include "device/cpu_memory.h"

static int check(int device_id) {
  if (device_id == 0) return 0;
  return device_error((DLDevice){DLPACK_CPU, device_id}, 0,
                      "there is one CPU device, expected cpu:0");
}

/* Describe cpu:0 by the model of the first processor; "CPU" if Linux does not report it. */
static int describe(int device_id, char *text, size_t nbytes) {
  char line[256];
  if (check(device_id) != 0) return -1;
  snprintf(text, nbytes, "CPU");
  FILE *file = fopen("/proc/cpuinfo", "re");
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    const char *colon = strchr(line, ':');
    if (strncmp(line, "model name", 10) != 0 || colon == NULL) continue;
    line[strcspn(line, "\n")] = '\0';
    snprintf(text, nbytes, "%s", colon + 1 + (colon[1] == ' '));
    break;
  }
  if (file != NULL) fclose(file);
  return 0;
}

/* An allocation of 0 bytes also gets its own address. */
static int alloc(int device_id, size_t nbytes, size_t alignment, void **data) {
  if (check(device_id) != 0) return -1;
  if (alignment < sizeof(void *)) alignment = sizeof(void *);
  *data = cpu_memory_new(nbytes ? nbytes : 1, alignment);
  if (*data != NULL) return 0;
  return device_error((DLDevice){DLPACK_CPU, device_id}, 0, "no memory for %zu bytes", nbytes);
}

static int release(int device_id, void *data) {
  (void)device_id;
  cpu_memory_free(data);
  return 0;
}

/* memmove, since both may be views of one array. */
static int copy(const struct device_memory *to, const struct device_memory *from, size_t nbytes) {
  if (nbytes > 0)
    memmove((char *)to->data + to->offset, (const char *)from->data + from->offset, nbytes);
  return 0;
}

/* Functions of the CPU have finished when they return, so there is nothing to wait for. */
static int sync(int device_id) { return check(device_id); }

const struct device_api cpu_device_api = {
    .check = check,
    .describe = describe,
    .alloc = alloc,
    .free = release,
    .copy = copy,
    .sync = sync,
};

/* The segment of a loaded image that contains an address. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct segment_part {
  size_t nbytes;  /* from the address to the segment's end; 0 if no image contains it */
  uint32_t flags; /* PF_X, PF_W, PF_R */
};

struct segment_part segment_part_from(const void *address);

/* Let the system take back the pages within these bytes, if they are of an image and read-only: they are
 * read from the file again if they are used again. */
void segment_give_back(const void *address, size_t nbytes);

/* Bytes of a library that must be verified before they are read: they are mapped from a file that
 * other processes may write. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct proof {
  /* Verify all pieces that contain [bytes, bytes + nbytes), once each. With `is_copied` these become
   * private memory, which a later write to the file does not change. Returns 0, or -1 with an error of
   * the program that verifies. */
  int (*prove)(struct proof *self, const uint8_t *bytes, size_t nbytes, int is_copied);
};

/* A file on disk that passed the static check: opened without blocking, mapped, read, not run. */
#ifndef DSO_PACKER_LIBRARY_CHECKED_FILE_H
#define DSO_PACKER_LIBRARY_CHECKED_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "elf/elf.h"
#include "library/load_error.h"

/* What tells one file from another, and a file from its later content. The time of the last change
 * cannot be set by a user; a rename and a further link count as changes too, so keys are compared
 * without it. */
struct file_key {
  uint64_t device, inode, size;
  int64_t mtime_ns, ctime_ns;
};

struct checked_file {
  const uint8_t *bytes;
  size_t nbytes;
  struct file_key key;
  struct elf_image image;
};

/* Map `path` and check it for `machine`. Returns 0, or -1 with *error filled and nothing mapped. */
int checked_file_open(const char *path, uint16_t machine, struct checked_file *file,
                      struct load_error *error);
void checked_file_close(struct checked_file *file);

/* Find a symbol of a struct checked_file, for checksums_verify. */
int checked_file_find(const void *file, const char *symbol, int is_code, const uint8_t **bytes,
                      size_t *nbytes);

/* The same with the file left open: *descriptor is the caller's. */
int checked_file_open_with(const char *path, uint16_t machine, struct checked_file *file,
                           int *descriptor, struct load_error *error);

/* The key of the file at `path`, or of an open one; 0, or -1 with errno. */
int file_key_at(const char *path, struct file_key *key);
int file_key_of(int descriptor, struct file_key *key);
int file_key_equal(const struct file_key *a, const struct file_key *b);

#endif

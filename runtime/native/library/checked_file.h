/* A file that passed the static check. It is opened without blocking and mapped; no code runs. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "elf/elf.h"
#include "library/load_error.h"

/* Identifies a file and its content. Users cannot set ctime, but a rename or a new link changes it,
 * so file_key_equal ignores it. */
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

enum { ANY_MACHINE = 0 }; /* EM_NONE: check the file for the machine that it names */

/* Map `path` and check it for `machine`. Return 0, or -1 with *error filled and nothing mapped. */
int checked_file_open(const char *path, uint16_t machine, struct checked_file *file,
                      struct load_error *error);
void checked_file_close(struct checked_file *file);

/* The two steps: map an open file, whose key is set; check it. `path` is for messages. */
int checked_file_map(int fd, struct checked_file *file, struct load_error *error);
int checked_file_check(const char *path, uint16_t machine, struct checked_file *file,
                       struct load_error *error);

/* A checksums_find function (checksums.h) for a struct checked_file. */
int checked_file_find(const void *file, const char *symbol, int is_code, const uint8_t **bytes,
                      size_t *nbytes);

/* Like checked_file_open, but the file stays open; the caller owns *descriptor. */
int checked_file_open_with(const char *path, uint16_t machine, struct checked_file *file,
                           int *descriptor, struct load_error *error);

/* Open a regular file to read it, without blocking. Return the descriptor, or -1 with *error
 * filled. */
int regular_file_open(const char *path, struct file_key *key, struct load_error *error);

/* Read the key of an open file, which must be regular. Return 0, or -1 with *error filled. */
int regular_file_key(int fd, struct file_key *key, struct load_error *error);

/* Read the key of the file at `path`, or of an open file. Return 0, or -1 with errno. */
int file_key_at(const char *path, struct file_key *key);
int file_key_of(int descriptor, struct file_key *key);
int file_key_equal(const struct file_key *a, const struct file_key *b);

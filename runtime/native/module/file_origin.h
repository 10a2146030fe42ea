/* A library file that is open. */
#pragma once

#include "library/loaded.h"
#include "module/origin.h"

struct file_origin {
  struct origin origin;
  struct loaded loaded;
  int descriptor;                    /* stays open as long as the library; or -1 */
  int is_memory;                     /* the file is a sealed one in memory */
  struct file_origin *needed, *next; /* libraries that were verified and opened for this one */
};

extern const struct origin_type file_origin_type;

/* Open a library without verification: of the file at `path`, or of a file in memory with these
 * bytes. NULL with the error raised. */
struct file_origin *file_origin_open(const char *path, const struct load_options *options);
struct file_origin *file_origin_open_bytes(const void *bytes, size_t nbytes,
                                           const struct load_options *options);

/* Open the file `name`, and store it in a new origin, which owns the descriptor from then on.
 * Returns 0, or -1 with the error raised. */
int file_origin_open_at(struct file_origin *self, const char *name, int descriptor);

/* Release the needed libraries of a file that could not be opened. */
void file_origin_release_needed(struct file_origin *self);

/* The file of a module that was loaded from one. */
static inline struct file_origin *file_origin_of(const dso_module *module) {
  return (struct file_origin *)(void *)origin_of(module);
}

/* The absolute form of a path, freed by free(); NULL with the error raised. */
char *absolute_path(const char *path);

/* Map the file that is loaded; NULL if it was removed, replaced or changed. */
void *file_origin_map(const struct file_origin *self, size_t *nbytes);

/* True if the file has these bytes, and was not changed since it was loaded. */
int file_origin_has_bytes(const struct file_origin *self, const void *bytes, size_t nbytes);

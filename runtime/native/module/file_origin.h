/* A library file that is open. */
#ifndef DSO_PACKER_MODULE_FILE_ORIGIN_H
#define DSO_PACKER_MODULE_FILE_ORIGIN_H

#include "library/loaded.h"
#include "module/origin.h"

struct file_origin {
  struct origin origin;
  struct loaded loaded;
  int descriptor; /* stays open as long as the library; or -1 */
  int is_memory;  /* the file is in memory, and its path is "<n bytes>" */
};

extern const struct origin_type file_origin_type;

/* Open a library: of the file at `path`; or of `descriptor`, a file in memory with these bytes,
 * which the origin then owns. NULL with the error raised. */
struct file_origin *file_origin_open(const char *path, const struct load_options *options);
struct file_origin *file_origin_open_bytes(const void *bytes, size_t nbytes,
                                           const struct load_options *options);

/* The file of a module that was loaded from one. */
static inline struct file_origin *file_origin_of(const dso_module *module) {
  return (struct file_origin *)(void *)origin_of(module);
}

/* The absolute form of a path, freed by free(); NULL with the error raised. */
char *absolute_path(const char *path);

/* Call options->verify for a file that is open already. Returns 0, or -1 with the error raised. */
int file_origin_verify(const struct file_origin *self, const struct load_options *options);

/* True if the file has these bytes, and was not changed since it was loaded. */
int file_origin_has_bytes(const struct file_origin *self, const void *bytes, size_t nbytes);

#endif

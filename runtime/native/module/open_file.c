/* Opening a library file as an origin: the path, the file in memory, the verification. */
#define _GNU_SOURCE /* memfd_create, O_PATH */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "library/spelling.h"
#include "module/file_origin.h"

static int raise_error(const char *path, const struct load_error *error) {
  return raised_format(load_error_kind(error), "%s: %s", path, error->message);
}

/* ---- Paths */

char *absolute_path(const char *path) {
  char folder[PATH_MAX], *absolute = NULL;
  struct load_error error;
  if (*path == '\0') load_error_set(&error, "io", "expected a path, found an empty one");
  else if (*path != '/' && getcwd(folder, sizeof folder) == NULL)
    load_error_set(&error, "io", "the working directory: %s", strerror(errno));
  else {
    int is_relative = *path != '/';
    absolute = heap_format("%s%s%s", is_relative ? folder : "",
                           is_relative && folder[1] != '\0' ? "/" : "", path);
    if (absolute != NULL) return absolute;
    (void)raised_format("OutOfMemoryError", "%s: no memory for a path", path);
    return NULL;
  }
  (void)raise_error(*path != '\0' ? path : "''", &error);
  return NULL;
}

/* ---- The verification of a file, before dlopen */

struct verification {
  const struct load_options *options;
  const char *path;  /* NULL for bytes */
  const char *shown; /* for messages */
  int has_raised;
};

static int verify(const struct verification *self, const void *bytes, size_t nbytes) {
  uint64_t before = raised_at();
  if (self->options->verify(self->options->verify_context, self->path, bytes, nbytes) == 0)
    return 0;
  if (raised_at() != before) return -1;
  return raised_format("LibraryLoadError", "%s: refused by the verification of the program",
                       self->shown);
}

static int accept(void *context, const uint8_t *bytes, size_t nbytes, struct load_error *error) {
  struct verification *self = context;
  if (verify(self, bytes, nbytes) == 0) return 0;
  self->has_raised = 1;
  return load_error_set(error, "refused", "refused");
}

/* ---- Opening */

/* Store an open file in `self`, which then owns the descriptor. */
static int open_loaded(struct file_origin *self, const char *name, const char *path,
                       int descriptor) {
  struct verification verification = {&self->origin.options, path, self->origin.path, 0};
  struct file_filter filter = {accept, &verification};
  struct load_error error;
  const struct file_filter *used = self->origin.options.verify != NULL ? &filter : NULL;
  if (loaded_open(&self->loaded, name, used, &error) != 0) {
    if (!verification.has_raised) (void)raise_error(self->origin.path, &error);
    return -1;
  }
  self->descriptor = descriptor;
  self->origin.type = &file_origin_type;
  self->origin.context = self->loaded.context;
  return 0;
}

/* Open a file through /proc/self/fd, because dlopen would expand the tokens in its path. */
static int open_by_descriptor(struct file_origin *self, const char *path) {
  char name[32];
  struct load_error error;
  int descriptor = open(path, O_PATH | O_CLOEXEC);
  if (descriptor < 0) {
    load_error_set(&error, "io", "%s", strerror(errno));
    return raise_error(path, &error);
  }
  snprintf(name, sizeof name, "/proc/self/fd/%d", descriptor);
  int status = open_loaded(self, name, path, descriptor);
  if (status != 0) close(descriptor);
  return status;
}

/* `path` is absolute. */
struct file_origin *file_origin_open(const char *path, const struct load_options *options) {
  struct file_origin *self = origin_new(sizeof *self, path, options);
  if (self == NULL) return NULL;
  int status =
      spelling_has_token(path) ? open_by_descriptor(self, path) : open_loaded(self, path, path, -1);
  if (status == 0) return self;
  object_release(&self->origin.object);
  return NULL;
}

/* ---- Files in memory */

/* Linux writes at most 2 GiB at a time. */
static int write_all(int descriptor, const char *bytes, size_t nbytes) {
  while (nbytes > 0) {
    ssize_t written = write(descriptor, bytes, nbytes);
    if (written < 0 && errno != EINTR) return -1;
    if (written < 0) continue;
    bytes += written;
    nbytes -= (size_t)written;
  }
  return 0;
}

/* A sealed file with these bytes: no process can change it between the check and dlopen. */
static int memory_file(const void *bytes, size_t nbytes) {
  int descriptor = memfd_create("packer", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) return -1;
  if (write_all(descriptor, bytes, nbytes) == 0 &&
      fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == 0)
    return descriptor;
  int code = errno;
  close(descriptor);
  errno = code;
  return -1;
}

struct file_origin *file_origin_open_bytes(const void *bytes, size_t nbytes,
                                           const struct load_options *options) {
  char shown[40], name[32];
  snprintf(shown, sizeof shown, "<%zu bytes>", nbytes);
  struct file_origin *self = origin_new(sizeof *self, shown, options);
  if (self == NULL) return NULL;
  int descriptor = memory_file(bytes, nbytes);
  if (descriptor < 0)
    (void)raised_format("LibraryLoadError", "%s: cannot be loaded from a sealed file in memory: %s",
                        shown, strerror(errno));
  snprintf(name, sizeof name, "/proc/self/fd/%d", descriptor);
  self->is_memory = 1;
  if (descriptor >= 0 && open_loaded(self, name, NULL, descriptor) == 0) return self;
  if (descriptor >= 0) close(descriptor);
  object_release(&self->origin.object);
  return NULL;
}

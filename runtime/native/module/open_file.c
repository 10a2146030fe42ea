/* Opening a library file as an origin, without verification. */
#define _GNU_SOURCE /* O_PATH */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "library/sealed_file.h"
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
    return raised_null("OutOfMemoryError", "%s: no memory for a path", path);
  }
  (void)raise_error(*path != '\0' ? path : "''", &error);
  return NULL;
}

/* ---- Opening */

int file_origin_open_at(struct file_origin *self, const char *name, int descriptor) {
  struct load_error error;
  if (loaded_open(&self->loaded, name, &error) != 0) return raise_error(self->origin.path, &error);
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
  int status = file_origin_open_at(self, name, descriptor);
  if (status != 0) close(descriptor);
  return status;
}

/* `path` is absolute. */
struct file_origin *file_origin_open(const char *path, const struct load_options *options) {
  struct file_origin *self = origin_new(sizeof *self, path, options);
  if (self == NULL) return NULL;
  int status = spelling_has_token(path) ? open_by_descriptor(self, path)
                                        : file_origin_open_at(self, path, -1);
  if (status == 0) return self;
  object_release(&self->origin.object);
  return NULL;
}

struct file_origin *file_origin_open_bytes(const void *bytes, size_t nbytes,
                                           const struct load_options *options) {
  char shown[40], name[SEALED_NAME] = "";
  struct load_error error;
  snprintf(shown, sizeof shown, "<%zu bytes>", nbytes);
  struct file_origin *self = origin_new(sizeof *self, shown, options);
  if (self == NULL) return NULL;
  int descriptor = sealed_file_of(bytes, nbytes, &error);
  if (descriptor < 0) (void)raise_error(shown, &error);
  else sealed_file_name(descriptor, name);
  self->is_memory = 1;
  if (descriptor >= 0 && file_origin_open_at(self, name, descriptor) == 0) return self;
  if (descriptor >= 0) close(descriptor);
  object_release(&self->origin.object);
  return NULL;
}

/* Sealed copies, verified by the program and opened. */
#define _GNU_SOURCE /* RTLD_NOLOAD */
#include "module/verified.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "elf/layout.h"
#include "library/needed.h"
#include "library/sealed_file.h"
#include "module/resident.h"

struct copy {
  struct load_options options;
  const char *path;  /* NULL for bytes */
  const char *shown; /* for messages */
  int depth;
  int descriptor; /* -1 after an origin took it */
  struct checked_file content;
  struct needed needed;
  struct load_error error;
  char folder[PATH_MAX], size[40], name[SEALED_NAME];
};

static int raise_error(const struct copy *self) {
  return raised_format(load_error_kind(&self->error), "%s: %s", self->shown, self->error.message);
}

/* ---- Copy and verify */

static int ask(const struct load_options *options, const char *path, const char *shown,
               const void *bytes, size_t nbytes) {
  uint64_t before = raised_at();
  if (options->is_part || options->verify(options->verify_context, path, bytes, nbytes) == 0)
    return 0;
  if (raised_at() != before) return -1;
  return raised_format("LibraryLoadError", "%s: refused by the verification of the program", shown);
}

static int seal(struct copy *self, const void *bytes, size_t nbytes) {
  if (self->path == NULL) {
    snprintf(self->size, sizeof self->size, "<%zu bytes>", nbytes);
    self->shown = self->size;
    self->descriptor = sealed_file_of(bytes, nbytes, &self->error);
  } else {
    self->shown = self->path;
    self->descriptor = sealed_file_copy(self->path, self->folder, &self->error);
  }
  if (self->descriptor < 0) return -1;
  sealed_file_name(self->descriptor, self->name);
  return file_key_of(self->descriptor, &self->content.key) == 0
             ? checked_file_map(self->descriptor, &self->content, &self->error)
             : load_error_set(&self->error, "io", "cannot read the status");
}

struct copy *copy_new(const char *path, const void *bytes, size_t nbytes,
                      const struct load_options *options) {
  struct copy *self = heap_new_zeroed(1, sizeof *self);
  if (self == NULL) {
    (void)raised_format("OutOfMemoryError", "no memory for a loaded library");
    return NULL;
  }
  self->options = *options;
  self->path = path;
  int status = seal(self, bytes, nbytes);
  if (status != 0) (void)raise_error(self);
  else status = ask(options, path, self->shown, self->content.bytes, self->content.nbytes);
  if (status == 0) return self;
  copy_free(self);
  return NULL;
}

void copy_free(struct copy *self) {
  checked_file_close(&self->content);
  if (self->descriptor >= 0) close(self->descriptor);
  free(self);
}

/* ---- In use already */

static int is_equal(const dso_module *root, const void *context) {
  const struct copy *copy = context;
  const struct file_origin *file = file_origin_of(root);
  return file->origin.options.verify != NULL &&
         file_origin_has_bytes(file, copy->content.bytes, copy->content.nbytes);
}

dso_module *copy_resident(const struct copy *self) {
  return resident_search(self->content.nbytes, is_equal, self);
}

int verify_needed(const struct file_origin *file, const struct load_options *options) {
  struct load_options own = *options;
  own.is_part = 0;
  for (const struct file_origin *needed = file->needed; needed != NULL; needed = needed->next) {
    size_t nbytes;
    const char *path = needed->origin.path;
    void *bytes = file_origin_map(needed, &nbytes);
    if (bytes == NULL)
      return raised_format("LibraryLoadError", "%s: the copy cannot be mapped", path);
    int status = ask(&own, path, path, bytes, nbytes);
    munmap(bytes, nbytes);
    if (status != 0 || verify_needed(needed, options) != 0) return -1;
  }
  return 0;
}

/* ---- Open */

static struct file_origin *open_checked(struct copy *self);

static int check(struct copy *self) {
  if (checked_file_check(self->shown, elf_native_machine(), &self->content, &self->error) == 0)
    return 0;
  return raise_error(self);
}

/* True if ld.so uses an open library for DT_NEEDED. musl knows those that it has searched for. */
static int is_known(const char *name) {
  void *handle = dlopen(name, RTLD_NOLOAD | RTLD_NOW);
  if (handle != NULL) dlclose(handle);
  return handle != NULL;
}

static int refuse_needed(struct copy *self, const char *wrong) {
  (void)load_error_set(&self->error, "needed", "needs '%.1000s': %.4000s %s", self->needed.name,
                       self->needed.path, wrong);
  return raise_error(self);
}

static int check_name(struct copy *self, const struct copy *found) {
  const struct checked_file *file = &found->content;
  char wrong[640];
  size_t index = 0;
  const char *name = elf_dynamic_text(&file->image, elf_at_file, file->bytes, DT_SONAME, &index);
  if (name != NULL && strcmp(name, self->needed.name) == 0) return 0;
  snprintf(wrong, sizeof wrong,
           "has SONAME %.255s, expected '%.255s', since a verified library is found by it; link it "
           "with -soname",
           name != NULL ? name : "none", self->needed.name);
  return refuse_needed(self, wrong);
}

/* Open the library that needed_next found, and append it to the needed ones of `file`. */
static int open_needed(struct copy *self, struct file_origin *file) {
  struct load_options options = self->options;
  options.is_part = 0;
  if (self->depth == NEEDED_MAX_DEPTH)
    return raised_format("LibraryLoadError", "%s: libraries that need each other, deeper than %d",
                         self->shown, NEEDED_MAX_DEPTH);
  struct copy *copy = copy_new(self->needed.path, NULL, 0, &options);
  if (copy == NULL) return -1;
  copy->depth = self->depth + 1;
  struct file_origin *opened =
      check(copy) == 0 && check_name(self, copy) == 0 ? open_checked(copy) : NULL;
  copy_free(copy);
  if (opened == NULL) return -1;
  opened->next = file->needed;
  file->needed = opened;
  if (is_known(self->needed.name)) return 0;
  return refuse_needed(self, "is open, expected a loader that finds it by its SONAME (not musl); "
                             "link it statically");
}

static struct file_origin *open_checked(struct copy *self) {
  struct file_origin *file = origin_new(sizeof *file, self->shown, &self->options);
  if (file == NULL) return NULL;
  self->needed = (struct needed){.file = &self->content, .folder = self->folder};
  self->needed.error = &self->error;
  int found, status = 0;
  while (status == 0 && (found = needed_next(&self->needed)) != 0)
    status = found > 0 ? open_needed(self, file) : raise_error(self);
  if (status == 0) status = file_origin_open_at(file, self->name, self->descriptor);
  if (status == 0) {
    self->descriptor = -1;
    file->is_memory = 1;
    return file;
  }
  file_origin_release_needed(file);
  object_release(&file->origin.object);
  return NULL;
}

struct file_origin *copy_open(struct copy *self) {
  return check(self) == 0 ? open_checked(self) : NULL;
}

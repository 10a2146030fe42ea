/* Sealed copies, verified by the program and opened. */
#define _GNU_SOURCE /* RTLD_NOLOAD */
#include "module/verified.h"

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

/* `source` is an open file, or -1 for bytes. */
static int seal(struct copy *self, int source, const void *bytes, size_t nbytes) {
  if (source < 0) {
    snprintf(self->size, sizeof self->size, "<%zu bytes>", nbytes);
    self->shown = self->size;
    self->descriptor = sealed_file_of(bytes, nbytes, &self->error);
  } else {
    self->shown = self->path;
    self->descriptor = sealed_file_copy(source, nbytes, self->folder, &self->error);
  }
  if (self->descriptor < 0) return -1;
  sealed_file_name(self->descriptor, self->name);
  return file_key_of(self->descriptor, &self->content.key) == 0
             ? checked_file_map(self->descriptor, &self->content, &self->error)
             : load_error_set(&self->error, "io", "cannot read the status");
}

static struct copy *new_copy(const char *path, const struct load_options *options) {
  struct copy *self = heap_new_zeroed(1, sizeof *self);
  if (self == NULL) return raised_null("OutOfMemoryError", "no memory for a loaded library");
  self->options = *options;
  self->path = path;
  self->shown = path;
  self->descriptor = -1;
  return self;
}

/* Have a copy verified. Takes it over; returns it, or NULL with the error raised. */
static struct copy *verify(struct copy *self, int status) {
  if (status != 0) (void)raise_error(self);
  else
    status =
        ask(&self->options, self->path, self->shown, self->content.bytes, self->content.nbytes);
  if (status == 0) return self;
  copy_free(self);
  return NULL;
}

struct copy *copy_new(const char *path, const void *bytes, size_t nbytes,
                      const struct load_options *options) {
  struct copy *self = new_copy(path, options);
  struct file_key key = {.size = nbytes};
  if (self == NULL) return NULL;
  int source = path != NULL ? regular_file_open(path, &key, &self->error) : -1;
  int status = path != NULL && source < 0 ? -1 : seal(self, source, bytes, (size_t)key.size);
  if (source >= 0) close(source);
  return verify(self, status);
}

/* A copy of an open file, which is closed. */
static struct copy *copy_of_open(const char *path, int source, const struct load_options *options) {
  struct copy *self = new_copy(path, options);
  struct file_key key;
  int status = self != NULL ? regular_file_key(source, &key, &self->error) : -1;
  if (status == 0) status = seal(self, source, NULL, (size_t)key.size);
  close(source);
  return self != NULL ? verify(self, status) : NULL;
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
  struct copy *copy = self->depth < NEEDED_MAX_DEPTH
                          ? copy_of_open(self->needed.path, self->needed.descriptor, &options)
                          : NULL;
  if (self->depth == NEEDED_MAX_DEPTH) {
    close(self->needed.descriptor);
    return raised_format("LibraryLoadError", "%s: libraries that need each other, deeper than %d",
                         self->shown, NEEDED_MAX_DEPTH);
  }
  if (copy == NULL) return -1;
  copy->depth = self->depth + 1;
  struct file_origin *opened =
      check(copy) == 0 && check_name(self, copy) == 0 ? open_checked(copy) : NULL;
  copy_free(copy);
  if (opened == NULL) return -1;
  opened->next = file->needed;
  file->needed = opened;
  if (needed_check_opened(&self->needed, opened->loaded.handle, opened->descriptor) == 0) return 0;
  return raise_error(self);
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

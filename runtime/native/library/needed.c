/* Where ld.so would find the libraries that a file needs: its order of folders, ld.so(8). */
#define _GNU_SOURCE /* RTLD_NOLOAD, F_GET_SEALS */
#include "library/needed.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/heap.h"
#include "elf/layout.h"
#include "library/system_library.h"

static const char *text_of(const struct needed *self, uint64_t tag) {
  size_t index = 0;
  return elf_dynamic_text(&self->file->image, elf_at_file, self->file->bytes, tag, &index);
}

static int refuse_folder(const struct needed *self, const char *folder, size_t length) {
  return load_error_set(self->error, "needed",
                        "searches '%.*s' for libraries, expected folders without tokens but "
                        "$ORIGIN; link it with -rpath",
                        (int)(length < 1000 ? length : 1000), folder);
}

static size_t size_of_origin(const char *text) {
  static const char *const spellings[] = {"$ORIGIN", "${ORIGIN}"};
  for (size_t i = 0; i < 2; i++)
    if (strncmp(text, spellings[i], strlen(spellings[i])) == 0) return strlen(spellings[i]);
  return 0;
}

/* Store the path of the library in a folder. Returns 1; 0 if there is no such folder; or -1. */
static int expand(struct needed *self, const char *folder, size_t length) {
  char *to = self->path, *end = to + PATH_MAX - 1;
  for (const char *from = folder; from < folder + length;) {
    const char *part = from;
    size_t taken = 1, nbytes = 1;
    if (*from == '$') {
      if ((taken = size_of_origin(from)) == 0) return refuse_folder(self, folder, length);
      part = self->folder;
      nbytes = strlen(part);
      if (nbytes == 0) return 0;
    }
    if (nbytes >= (size_t)(end - to)) return 0;
    memcpy(to, part, nbytes);
    to += nbytes;
    from += taken;
  }
  if (to == self->path) *to++ = '.';
  if (strlen(self->name) + 1 > (size_t)(end - to)) return 0;
  *to++ = '/';
  memcpy(to, self->name, strlen(self->name) + 1);
  return 1;
}

/* Search one list of folders. Returns 1 with `path` and `descriptor`, 0 or -1. */
static int search(struct needed *self, const char *text, int *is_searched) {
  while (text != NULL) {
    size_t length = strcspn(text, ":");
    int status = expand(self, text, length);
    if (status < 0) return -1;
    *is_searched |= status;
    if (status > 0) {
      self->descriptor = open(self->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
      if (self->descriptor >= 0) return 1;
    }
    text = text[length] != '\0' ? text + length + 1 : NULL;
  }
  return 0;
}

static int find(struct needed *self, int *is_searched) {
  const char *runpath = text_of(self, DT_RUNPATH);
  char *process = self->is_of_system ? heap_copy_text("") : loader_folders();
  if (process == NULL) return load_error_memory(self->error);
  const char *texts[] = {runpath == NULL ? text_of(self, DT_RPATH) : NULL,
                         *process != '\0' ? process : NULL, runpath};
  int found = 0;
  for (size_t i = 0; i < 3 && found == 0; i++) {
    self->is_own = texts[i] != process;
    found = search(self, texts[i], is_searched);
  }
  free(process);
  return found;
}

/* ---- Libraries of the system */

/* Open what the library at `path` needs, each from the system: for these names too ld.so would
 * search the folders of the process first. */
static int open_needed_of_system(struct needed *self) {
  void *handle = dlopen(self->path, RTLD_NOLOAD | RTLD_NOW);
  if (handle != NULL) return dlclose(handle);    /* it is open with all that it needs */
  if (self->depth == NEEDED_MAX_DEPTH) return 0; /* libraries of the system that need each other */
  struct checked_file file;
  if (checked_file_open(self->path, elf_native_machine(), &file, self->error) != 0) return -1;
  int status = -1;
  char *folder = heap_copy_text(self->path);
  struct needed *inner = heap_new_zeroed(1, sizeof *inner);
  if (folder == NULL || inner == NULL) (void)load_error_memory(self->error);
  else {
    *strrchr(folder, '/') = '\0';
    inner->file = &file;
    inner->folder = folder;
    inner->opens_all = inner->is_of_system = 1;
    inner->depth = self->depth + 1;
    inner->error = self->error;
    status = needed_next(inner);
    if (status > 0) {
      close(inner->descriptor);
      status = load_error_set(self->error, "needed",
                              "needs '%.1000s', which needs '%.1000s' from %.1000s, expected a "
                              "library of the system",
                              self->name, inner->name, inner->path);
    }
  }
  free(inner);
  free(folder);
  checked_file_close(&file);
  return status;
}

/* Open the library at `path`, for the rest of the process; ld.so must find it by the name. */
static int open_system(struct needed *self) {
  if (open_needed_of_system(self) != 0) return -1;
  void *handle = dlopen(self->path, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL)
    return load_error_set(self->error, "needed", "needs '%.1000s': %s", self->name, dlerror());
  return needed_check_opened(self, handle, -1);
}

static int open_of_system(struct needed *self) {
  if (system_library_find(self->name, self->path)) return open_system(self);
  return load_error_set(self->error, "needed",
                        "needs '%.1000s', which is in no folder that is searched (not "
                        "glibc-hwcaps); put it into one, or link it statically",
                        self->name);
}

static int refuse_open(struct needed *self, const char *path) {
  return load_error_set(self->error, "needed",
                        "needs '%.1000s', and %.4000s is open under this name, which was not "
                        "verified; load this library first",
                        self->name, *path != '\0' ? path : "another library");
}

/* True if two descriptors are sealed files of equal bytes. */
static int is_equal_copy(const char *path, int descriptor) {
  struct checked_file files[2] = {{.nbytes = 0}, {.nbytes = 0}};
  struct load_error error;
  int other = open(path, O_RDONLY | O_CLOEXEC), is_equal = 0;
  if (other < 0) return 0;
  int seals = fcntl(other, F_GET_SEALS);
  if (seals >= 0 && (seals & F_SEAL_WRITE) != 0 && file_key_of(other, &files[0].key) == 0 &&
      file_key_of(descriptor, &files[1].key) == 0 && files[0].key.size == files[1].key.size &&
      checked_file_map(other, &files[0], &error) == 0) {
    if (checked_file_map(descriptor, &files[1], &error) == 0) {
      is_equal = memcmp(files[0].bytes, files[1].bytes, files[0].nbytes) == 0;
      checked_file_close(&files[1]);
    }
    checked_file_close(&files[0]);
  }
  close(other);
  return is_equal;
}

int needed_check_opened(struct needed *self, void *handle, int descriptor) {
  char path[PATH_MAX];
  void *found = dlopen(self->name, RTLD_NOLOAD | RTLD_NOW);
  if (found == NULL)
    return load_error_set(
        self->error, "needed",
        "needs '%.1000s': %.4000s is open, expected a loader that finds it by its "
        "SONAME (not musl); link it statically",
        self->name, self->path);
  dlclose(found); /* the library stays open */
  if (found == handle) return 0;
  const char *name = open_library_name(found);
  if (descriptor >= 0 && is_equal_copy(name, descriptor)) return 0;
  int other = open(name, O_PATH | O_CLOEXEC);
  int is_of_system = other >= 0 && system_library_path(other, path) == 1;
  if (other >= 0) close(other);
  return is_of_system && descriptor < 0 ? 0 : refuse_open(self, name);
}

/* Only the system's folders are searched: ld.so takes the library that is open under the name, if
 * there is one. Returns 0 if that library is of the system, or -1. */
static int check_open(struct needed *self) {
  void *open = dlopen(self->name, RTLD_NOLOAD | RTLD_NOW);
  if (open == NULL) return 0;
  dlclose(open);
  return needed_check_opened(self, NULL, -1);
}

/* Returns 1 for a library that must be verified, 0 for one of the system, or -1. */
static int resolve(struct needed *self) {
  int is_searched = self->opens_all;
  int found = find(self, &is_searched);
  if (found < 0) return -1;
  if (found == 0) return is_searched ? open_of_system(self) : check_open(self);
  char path[PATH_MAX];
  int is_of_system = system_library_path(self->descriptor, path);
  if (is_of_system == 0) return 1;
  close(self->descriptor);
  self->descriptor = -1;
  if (is_of_system < 0)
    return load_error_set(self->error, "needed", "needs '%.1000s': %s", self->name,
                          strerror(errno));
  memcpy(self->path, path, sizeof path);
  return open_system(self);
}

int needed_next(struct needed *self) {
  const struct elf_image *image = &self->file->image;
  while ((self->name = elf_dynamic_text(image, elf_at_file, self->file->bytes, DT_NEEDED,
                                        &self->index)) != NULL) {
    if (strchr(self->name, '/') != NULL && self->is_of_system) continue; /* ld.so opens this path */
    if (strchr(self->name, '/') != NULL)
      return load_error_set(self->error, "needed",
                            "needs '%.1000s', expected a name without a folder; link it with "
                            "-soname",
                            self->name);
    int found = resolve(self);
    if (found != 0) return found;
  }
  return 0;
}

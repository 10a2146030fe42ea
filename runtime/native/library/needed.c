/* Where ld.so would find the libraries that a file needs: its order of folders, ld.so(8). */
#define _GNU_SOURCE /* RTLD_NOLOAD */
#include "library/needed.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elf/layout.h"

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

/* Search the folders that come before those of the system. Returns 1 with `path`, 0 or -1. */
static int find(struct needed *self, int *is_searched) {
  const char *runpath = text_of(self, DT_RUNPATH), *variable = getenv("LD_LIBRARY_PATH");
  const char *texts[] = {runpath == NULL ? text_of(self, DT_RPATH) : NULL,
                         variable != NULL && *variable != '\0' ? variable : NULL, runpath};
  for (size_t i = 0; i < 3; i++) {
    for (const char *text = texts[i]; text != NULL;) {
      size_t length = strcspn(text, texts[i] == variable ? ":;" : ":");
      int status = expand(self, text, length);
      if (status < 0) return -1;
      *is_searched |= status;
      if (status > 0 && access(self->path, F_OK) == 0) return 1;
      text = text[length] != '\0' ? text + length + 1 : NULL;
    }
  }
  return 0;
}

/* Return true if the library at `path` is in a folder of the system. */
static int is_of_system(struct needed *self) {
  static const char *const folders[] = {"/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/",
                                        "/usr/local/lib/"};
  if (realpath(self->path, self->real_path) == NULL) return 0;
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
    if (strncmp(self->real_path, folders[i], strlen(folders[i])) == 0) return 1;
  return 0;
}

int needed_next(struct needed *self) {
  const struct elf_image *image = &self->file->image;
  while ((self->name = elf_dynamic_text(image, elf_at_file, self->file->bytes, DT_NEEDED,
                                        &self->index)) != NULL) {
    int is_searched = 0;
    if (strchr(self->name, '/') != NULL)
      return load_error_set(self->error, "needed",
                            "needs '%.1000s', expected a name without a folder; link it with "
                            "-soname",
                            self->name);
    int found = find(self, &is_searched);
    if (found < 0) return -1;
    if (found > 0 && !is_of_system(self)) return 1;
    const char *file = found > 0 ? self->real_path : self->name;
    if (is_searched && dlopen(file, RTLD_NOW | RTLD_LOCAL) == NULL)
      return load_error_set(self->error, "needed", "needs '%.1000s': %s", self->name, dlerror());
  }
  return 0;
}

/* Libraries of the system: ld.so's cache (ldconfig(8)), then the default folders. */
#define _GNU_SOURCE /* dlinfo */
#include "library/system_library.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/heap.h"
#include "elf/elf.h"
#include "library/sealed_file.h"

static const char *const folders[] = {"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib"};
enum { NUM_FOLDERS = sizeof folders / sizeof *folders };

/* ---- Folders */

static int is_in(const char *path, const char *folder) {
  size_t length = strlen(folder);
  return length > 0 && strncmp(path, folder, length) == 0 && path[length] == '/';
}

/* The RPATH or RUNPATH of the running program, or "". The loader adds the base address to the
 * addresses of the dynamic section on most machines. */
static const char *path_of_program(void) {
  struct link_map *map = NULL;
  void *program = dlopen(NULL, RTLD_NOW);
  uintptr_t strings = 0, offset = 0;
  if (program == NULL || dlinfo(program, RTLD_DI_LINKMAP, &map) != 0 || map == NULL) return "";
  for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
    if (entry->d_tag == DT_STRTAB) strings = entry->d_un.d_ptr;
    if (entry->d_tag == DT_RUNPATH || (entry->d_tag == DT_RPATH && offset == 0))
      offset = entry->d_un.d_val;
  }
  if (strings == 0 || offset == 0) return "";
  if (strings < map->l_addr) strings += map->l_addr;
  return (const char *)(strings + offset);
}

/* Store the real path of the next folder of the program's RPATH. Returns 1, or 0 after the last. */
static int next_of_program(const char **rest, char folder[PATH_MAX]) {
  while (**rest != '\0') {
    char text[PATH_MAX], program[PATH_MAX] = "";
    size_t length = strcspn(*rest, ":");
    const char *from = *rest;
    *rest += length + ((*rest)[length] == ':');
    size_t origin = strncmp(from, "$ORIGIN", 7) == 0     ? 7
                    : strncmp(from, "${ORIGIN}", 9) == 0 ? 9
                                                         : 0;
    if (origin > 0 && readlink("/proc/self/exe", program, sizeof program - 1) > 0)
      *strrchr(program, '/') = '\0';
    int written =
        snprintf(text, sizeof text, "%s%.*s", program, (int)(length - origin), from + origin);
    if (written > 0 && written < PATH_MAX && realpath(text, folder) != NULL) return 1;
  }
  return 0;
}

static int is_of_program(const char *path) {
  char folder[PATH_MAX];
  for (const char *rest = path_of_program(); next_of_program(&rest, folder);)
    if (is_in(path, folder)) return 1;
  return 0;
}

static int is_of_system(const char *path) {
  for (size_t i = 0; i < NUM_FOLDERS; i++)
    if (is_in(path, folders[i])) return 1;
  return is_of_program(path);
}

/* Return true for a folder whose files are libraries of the system. */
static int is_system_folder(const char *folder) {
  char real[PATH_MAX + 2];
  if (realpath(folder, real) == NULL) return 0;
  strcat(real, "/"); /* NOLINT(clang-analyzer-security.insecureAPI.strcpy) it fits */
  return is_of_system(real);
}

#ifdef __GLIBC__
char *loader_folders(void) {
  Dl_serinfo size;
  void *program = dlopen(NULL, RTLD_NOW);
  if (program == NULL || dlinfo(program, RTLD_DI_SERINFOSIZE, &size) != 0)
    return heap_copy_text("");
  Dl_serinfo *info = heap_new_zeroed(1, size.dls_size);
  char *text = info != NULL ? heap_new_zeroed(1, size.dls_size) : NULL, *end = text;
  if (text != NULL && dlinfo(program, RTLD_DI_SERINFOSIZE, info) == 0 &&
      dlinfo(program, RTLD_DI_SERINFO, info) == 0)
    for (unsigned i = 0; i < info->dls_cnt; i++) {
      const char *folder = info->dls_serpath[i].dls_name;
      if (is_system_folder(folder)) continue;
      end += snprintf(end, size.dls_size - (size_t)(end - text), "%s%s", end == text ? "" : ":",
                      *folder != '\0' ? folder : ".");
    }
  free(info);
  return text;
}
#else
char *loader_folders(void) {
  const char *variable = getenv("LD_LIBRARY_PATH");
  return heap_copy_text(variable != NULL ? variable : "");
}
#endif

int system_library_path(int descriptor, char path[PATH_MAX]) {
  char name[SEALED_NAME];
  sealed_file_name(descriptor, name);
  ssize_t length = readlink(name, path, PATH_MAX - 1);
  if (length < 0) return -1;
  path[length] = '\0';
  return is_of_system(path);
}

/* True if the file is a library for this machine, in a folder of the system; `path` becomes its real
 * path. */
static int is_library(char path[PATH_MAX]) {
  uint8_t head[20];
  int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return 0;
  int is_found = read(descriptor, head, sizeof head) == sizeof head &&
                 memcmp(head, "\177ELF\2\1", 6) == 0 &&
                 (head[18] | head[19] << 8) == elf_native_machine() &&
                 system_library_path(descriptor, path) == 1;
  close(descriptor);
  return is_found;
}

const char *open_library_name(void *handle) {
  struct link_map *map = NULL;
  return dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != NULL ? map->l_name : "";
}

/* ---- /etc/ld.so.cache, glibc's format 1.1 (sysdeps/generic/dl-cache.h) */

struct cache_header {
  char magic[20]; /* with the version */
  uint32_t num_entries, nbytes_of_strings, rest[5];
};

struct cache_entry {
  int32_t flags;
  uint32_t name, path; /* offsets of strings */
  uint32_t version;
  uint64_t hwcap; /* 0: for every processor */
};

/* The string at an offset, or "" if it does not end in the file. */
static const char *string_at(const char *bytes, size_t nbytes, uint32_t offset) {
  if (offset >= nbytes || memchr(bytes + offset, '\0', nbytes - offset) == NULL) return "";
  return bytes + offset;
}

static int find_in_cache(const char *bytes, size_t nbytes, const char *name, char path[PATH_MAX]) {
  struct cache_header header;
  if (nbytes < sizeof header) return 0;
  memcpy(&header, bytes, sizeof header);
  if (memcmp(header.magic, "glibc-ld.so.cache1.1", sizeof header.magic) != 0) return 0;
  size_t most = (nbytes - sizeof header) / sizeof(struct cache_entry);
  for (size_t i = 0; i < header.num_entries && i < most; i++) {
    struct cache_entry entry;
    memcpy(&entry, bytes + sizeof header + i * sizeof entry, sizeof entry);
    if (entry.hwcap != 0 || strcmp(string_at(bytes, nbytes, entry.name), name) != 0) continue;
    const char *found = string_at(bytes, nbytes, entry.path);
    if (strlen(found) >= PATH_MAX) continue;
    strcpy(path, found); /* NOLINT(clang-analyzer-security.insecureAPI.strcpy) it fits */
    if (is_library(path)) return 1;
  }
  return 0;
}

static int is_in_cache(const char *name, char path[PATH_MAX]) {
  struct stat status;
  int descriptor = open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC), is_found = 0;
  if (descriptor < 0) return 0;
  if (fstat(descriptor, &status) == 0 && status.st_size > 0) {
    size_t nbytes = (size_t)status.st_size;
    void *bytes = mmap(NULL, nbytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (bytes != MAP_FAILED) {
      is_found = find_in_cache(bytes, nbytes, name, path);
      munmap(bytes, nbytes);
    }
  }
  close(descriptor);
  return is_found;
}

static int is_in_folder(const char *folder, const char *name, char path[PATH_MAX]) {
  return snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX && is_library(path);
}

static int is_in_program(const char *name, char path[PATH_MAX]) {
  char folder[PATH_MAX];
  for (const char *rest = path_of_program(); next_of_program(&rest, folder);)
    if (is_in_folder(folder, name, path)) return 1;
  return 0;
}

int system_library_find(const char *name, char path[PATH_MAX]) {
  if (is_in_program(name, path) || is_in_cache(name, path)) return 1;
  for (size_t i = 0; i < NUM_FOLDERS; i++)
    if (is_in_folder(folders[i], name, path)) return 1;
  return 0;
}

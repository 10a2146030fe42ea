/* The bridge: a shared object in memory that binds a library's undefined symbols to the core. */
#define _GNU_SOURCE /* memfd_create, dladdr, RTLD_DEEPBIND */
#include "library/bridge.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi/heap.h"
#include "elf/layout.h"
#include "library/provided.h"

int bridge_is_needed(const struct checked_file *file) {
  const struct elf_image *image = &file->image;
  for (uint64_t i = 1; i < image->num_symbols; i++) {
    struct elf_symbol symbol;
    const char *name = elf_symbol_at(image, elf_at_file, file->bytes, i, &symbol);
    if (symbol.section == SHN_UNDEF && symbol.bind != STB_WEAK && is_provided(name))
      return !elf_needs(image, elf_at_file, file->bytes, "libtvm");
  }
  return 0;
}

/* ---- The bridge: headers, dynamic section and strings in one segment */

struct bridge {
  struct elf_header header;
  struct elf_program_header load, dynamic, stack;
  struct elf_dynamic_entry entries[7];
  struct elf_symbol_entry no_symbol;
  char strings[]; /* "", the core's path, the library's path */
};

static struct elf_header make_header(void) {
  return (struct elf_header){
      .e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
      .e_type = ET_DYN,
      .e_machine = elf_native_machine(),
      .e_version = EV_CURRENT,
      .e_phoff = offsetof(struct bridge, load),
      .e_ehsize = sizeof(struct elf_header),
      .e_phentsize = sizeof(struct elf_program_header),
      .e_phnum = 3,
      .e_shentsize = sizeof(struct elf_section_header),
  };
}

static struct elf_program_header make_segment(uint32_t type, uint64_t offset, uint64_t nbytes) {
  return (struct elf_program_header){.p_type = type,
                                     .p_flags = PF_R | PF_W, /* glibc relocates the entries */
                                     .p_offset = offset,
                                     .p_vaddr = offset,
                                     .p_paddr = offset,
                                     .p_filesz = nbytes,
                                     .p_memsz = nbytes,
                                     .p_align = type == PT_LOAD ? 0x10000 : 8};
}

static struct bridge *make_bridge(const char *core, const char *path, size_t *nbytes) {
  size_t core_size = strlen(core) + 1, path_size = strlen(path) + 1;
  size_t strings_size = 1 + core_size + path_size;
  *nbytes = sizeof(struct bridge) + strings_size;
  struct bridge *bridge = heap_new_zeroed(1, *nbytes);
  if (bridge == NULL) return NULL;
  const struct elf_dynamic_entry entries[] = {
      {DT_NEEDED, 1},
      {DT_NEEDED, 1 + core_size},
      {DT_STRTAB, offsetof(struct bridge, strings)},
      {DT_STRSZ, strings_size},
      {DT_SYMTAB, offsetof(struct bridge, no_symbol)},
      {DT_SYMENT, sizeof(struct elf_symbol_entry)},
      {DT_NULL, 0},
  };
  bridge->header = make_header();
  bridge->load = make_segment(PT_LOAD, 0, *nbytes);
  bridge->dynamic =
      make_segment(PT_DYNAMIC, offsetof(struct bridge, entries), sizeof bridge->entries);
  bridge->stack = make_segment(PT_GNU_STACK, 0, 0);
  memcpy(bridge->entries, entries, sizeof entries);
  memcpy(bridge->strings + 1, core, core_size);
  memcpy(bridge->strings + 1 + core_size, path, path_size);
  return bridge;
}

/* ---- Opening */

/* Return the name under which the core was opened. */
static const char *core_path(void) {
  Dl_info info;
  return dladdr(provided, &info) != 0 ? info.dli_fname : NULL;
}

static int write_all(int fd, const void *bytes, size_t nbytes) {
  return write(fd, bytes, nbytes) == (ssize_t)nbytes ? 0 : -1;
}

/* Return a descriptor of a memory file with the bridge, or -1 with errno. */
static int make_file(const char *path) {
  size_t nbytes;
  const char *core = core_path();
  struct bridge *bridge = core != NULL ? make_bridge(core, path, &nbytes) : NULL;
  int fd = bridge != NULL ? memfd_create("dso-packer-bridge", MFD_CLOEXEC) : -1;
  if (fd >= 0 && write_all(fd, bridge, nbytes) != 0) {
    close(fd);
    fd = -1;
  }
  free(bridge);
  return fd;
}

static int is_global(const char *name) {
  void *process = dlopen(NULL, RTLD_NOW);
  int found = process != NULL && dlsym(process, name) != NULL;
  if (process != NULL) dlclose(process);
  return found;
}

#ifndef RTLD_DEEPBIND /* musl always searches the global scope first */
#define RTLD_DEEPBIND 0
#endif

/* The global scope is searched first, and may contain a TVM runtime. */
static int flags_of_scope(void) {
  for (size_t i = 0; i < num_provided; i++)
    if (is_global(provided[i].variable + 2)) return RTLD_DEEPBIND;
  return 0;
}

/* The bridge is closed at once; the library stays open by its second handle. */
void *bridge_open(const char *path, struct load_error *error) {
  char name[32];
  int fd = make_file(path);
  if (fd < 0) {
    load_error_set(error, "io", "cannot make a memory file that binds it to the core: %s",
                   strerror(errno));
    return NULL;
  }
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  void *bridge = dlopen(name, RTLD_NOW | RTLD_LOCAL | flags_of_scope());
  void *handle = bridge != NULL ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
  if (handle == NULL) load_error_dlopen(error, path);
  if (bridge != NULL) dlclose(bridge);
  close(fd);
  return handle;
}

/* The bridge: a shared object in memory that defines the provided functions for a library. */
#define _GNU_SOURCE /* memfd_create, RTLD_DEEPBIND */
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
#include "library/spelling.h"
#include "library/stub.h"

#ifndef RTLD_DEEPBIND
#define RTLD_DEEPBIND 0 /* musl has none, and searches the global scope first */
#endif

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

/* ---- The file: two segments, whose addresses are their offsets, the second one's plus SHIFT */

enum { NUM_SYMBOLS = 1 + NUM_PROVIDED, SHIFT = 0x10000 /* the largest page of a machine here */ };

struct bridge {
  struct elf_header header;
  struct elf_program_header code, data, dynamic, stack;
  struct elf_symbol_entry symbols[NUM_SYMBOLS];
  struct elf_sysv_hash hash;
  uint32_t bucket; /* one for all names */
  uint32_t chain[NUM_SYMBOLS];
  _Alignas(16) uint8_t stubs[NUM_PROVIDED][STUB_NBYTES];
  /* The second segment. glibc writes to the entries. */
  struct elf_dynamic_entry entries[7];
  char strings[]; /* "", the library's path, the functions' names */
};

enum { DATA_OFFSET = offsetof(struct bridge, entries) };

static uint32_t elf_native_flags(void) {
#if defined __riscv_float_abi_double
  return 4; /* EF_RISCV_FLOAT_ABI_DOUBLE; glibc compares it */
#else
  return 0;
#endif
}

static struct elf_header make_header(void) {
  return (struct elf_header){
      .e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
      .e_type = ET_DYN,
      .e_machine = elf_native_machine(),
      .e_version = EV_CURRENT,
      .e_phoff = offsetof(struct bridge, code),
      .e_flags = elf_native_flags(),
      .e_ehsize = sizeof(struct elf_header),
      .e_phentsize = sizeof(struct elf_program_header),
      .e_phnum = 4,
      .e_shentsize = sizeof(struct elf_section_header),
  };
}

static struct elf_program_header make_segment(uint32_t type, uint32_t flags, uint64_t offset,
                                              uint64_t nbytes) {
  uint64_t vaddr = flags & PF_W ? offset + SHIFT : offset;
  return (struct elf_program_header){.p_type = type,
                                     .p_flags = flags,
                                     .p_offset = offset,
                                     .p_vaddr = vaddr,
                                     .p_paddr = vaddr,
                                     .p_filesz = nbytes,
                                     .p_memsz = nbytes,
                                     .p_align = type == PT_LOAD ? SHIFT : 16};
}

static void add_segments(struct bridge *bridge, size_t nbytes) {
  bridge->header = make_header();
  bridge->code = make_segment(PT_LOAD, PF_R | PF_X, 0, DATA_OFFSET);
  bridge->data = make_segment(PT_LOAD, PF_R | PF_W, DATA_OFFSET, nbytes - DATA_OFFSET);
  bridge->dynamic = make_segment(PT_DYNAMIC, PF_R | PF_W, DATA_OFFSET, sizeof bridge->entries);
  bridge->stack = make_segment(PT_GNU_STACK, PF_R | PF_W, 0, 0);
}

/* Return 0, or -1 if this machine has no stubs. */
static int add_functions(struct bridge *bridge, char *strings) {
  bridge->hash = (struct elf_sysv_hash){.num_buckets = 1, .num_chains = NUM_SYMBOLS};
  bridge->bucket = 1;
  for (uint32_t i = 0; i < NUM_PROVIDED; i++) {
    const char *name = provided[i].variable + 2;
    uint64_t target = (uint64_t)(uintptr_t)provided[i].function;
    if (stub_write(bridge->header.e_machine, target, bridge->stubs[i]) != 0) return -1;
    bridge->symbols[1 + i] = (struct elf_symbol_entry){
        .st_name = (uint32_t)(strings - bridge->strings),
        .st_info = STB_GLOBAL << 4 | STT_FUNC,
        .st_shndx = 1, /* defined; there are no sections */
        .st_value = offsetof(struct bridge, stubs) + (size_t)i * STUB_NBYTES,
        .st_size = STUB_NBYTES,
    };
    bridge->chain[1 + i] = i + 1 < NUM_PROVIDED ? i + 2 : 0;
    strings = stpcpy(strings, name) + 1;
  }
  return 0;
}

static size_t names_size(void) {
  size_t size = 0;
  for (size_t i = 0; i < NUM_PROVIDED; i++) size += strlen(provided[i].variable + 2) + 1;
  return size;
}

/* Return NULL with errno: ENOMEM, or ENOTSUP if this machine has no stubs. */
static struct bridge *make_bridge(const char *path, size_t *nbytes) {
  size_t path_size = strlen(path) + 1, strings_size = 1 + path_size + names_size();
  *nbytes = sizeof(struct bridge) + strings_size;
  struct bridge *bridge = heap_new_zeroed(1, *nbytes);
  if (bridge == NULL) {
    errno = ENOMEM;
    return NULL;
  }
  const struct elf_dynamic_entry entries[] = {
      {DT_NEEDED, 1},
      {DT_HASH, offsetof(struct bridge, hash)},
      {DT_STRTAB, offsetof(struct bridge, strings) + SHIFT},
      {DT_STRSZ, strings_size},
      {DT_SYMTAB, offsetof(struct bridge, symbols)},
      {DT_SYMENT, sizeof(struct elf_symbol_entry)},
      {DT_NULL, 0},
  };
  add_segments(bridge, *nbytes);
  memcpy(bridge->entries, entries, sizeof entries);
  memcpy(bridge->strings + 1, path, path_size);
  if (add_functions(bridge, bridge->strings + 1 + path_size) == 0) return bridge;
  free(bridge);
  errno = ENOTSUP;
  return NULL;
}

/* ---- Opening */

static int write_all(int fd, const void *bytes, size_t nbytes) {
  return write(fd, bytes, nbytes) == (ssize_t)nbytes ? 0 : -1;
}

/* Return a descriptor of a memory file with the bridge, or -1 with errno. */
static int make_file(const char *path) {
  size_t nbytes;
  struct bridge *bridge = make_bridge(path, &nbytes);
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
  for (size_t i = 0; i < NUM_PROVIDED; i++)
    if (is_global(provided[i].variable + 2)) return RTLD_DEEPBIND;
  return 0;
}

static int refuse(struct load_error *error, int reason) {
  if (reason == ENOMEM) return load_error_memory(error);
  if (reason == ENOTSUP)
    return load_error_set(
        error, "symbol",
        "leaves functions of TVM undefined, which is supported on x86-64, AArch64 "
        "and RISC-V; compile it with TVM's pointer variables for them");
  return load_error_set(error, "io", "cannot make a memory file that binds it to the core: %s",
                        strerror(reason));
}

/* An open bridge has the name of a descriptor that is closed, so a new spelling is used. */
static void *open_file(int fd, const char *path, struct load_error *error) {
  char number[32];
  snprintf(number, sizeof number, "/proc/self/fd/%d", fd);
  char *name = spelling_new(number);
  if (name == NULL) {
    (void)load_error_memory(error);
    return NULL;
  }
  void *bridge = dlopen(name, RTLD_NOW | RTLD_LOCAL | flags_of_scope());
  if (bridge == NULL) load_error_dlopen(error, path);
  free(name);
  return bridge;
}

/* The bridge's handle is closed at once. The library stays open by its second handle, and keeps the
 * bridge mapped, because its symbols are bound to the bridge. */
void *bridge_open(const char *path, struct load_error *error) {
  int fd = make_file(path);
  if (fd < 0) {
    (void)refuse(error, errno);
    return NULL;
  }
  void *bridge = open_file(fd, path, error);
  void *handle = bridge != NULL ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
  if (bridge != NULL && handle == NULL) load_error_dlopen(error, path);
  if (bridge != NULL) dlclose(bridge);
  close(fd);
  return handle;
}

/* The static check of an ELF shared object: it validates everything that the dynamic loader will
 * read, before dlopen.
 *
 * It allocates nothing and uses only <string.h> and vsnprintf of libc. The whole file is in memory
 * (a read-only map). Sources: gABI (ELF header, program headers, dynamic section, symbol table),
 * GNU hash as glibc's elf/dl-lookup.c reads it, psABI relocation types.
 *
 * The time is linear in the file's size. Limits of this check: 4,096 program headers, 64 PT_LOADs,
 * addresses below 2^47, 64 GiB of memory beyond the file's size, 65,536 functions for the loader to
 * call, 16 MiB of thread-local variables. It reads the first 4,096 section headers. Not checked:
 * machine code, data, and the libraries that the object needs. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { ELF_MAX_LOADS = 64 };

/* Each reason has a word for programs, LibraryLoadError.reason (library/checked_file.c). */
enum elf_reason {
  ELF_OK = 0,
  ELF_NOT_ELF,   /* "not-elf":   no ELF magic */
  ELF_TRUNCATED, /* "truncated": something is beyond the end of the file */
  ELF_MACHINE,   /* "machine":   wrong class, byte order, machine or system */
  ELF_FORMAT,    /* "format":    another known format: archive, tar, object, PE, Mach-O, ZIP, ... */
  ELF_MALFORMED, /* "malformed": the headers or tables contradict themselves */
  ELF_POLICY,    /* "policy":    valid but refused: RWX, executable stack, TEXTREL, AUDIT, ... */
};

struct elf_error {
  enum elf_reason reason;
  char message[512]; /* "<where>: <what>, expected <x>, found <y>", without the path */
};

struct elf_segment {
  uint64_t vaddr, memsz, offset, filesz;
  uint32_t flags; /* PF_R | PF_W | PF_X */
};

/* The data that later look-ups need. All addresses are link-time addresses (p_vaddr). */
struct elf_image {
  uint16_t machine;
  uint32_t num_loads;
  struct elf_segment loads[ELF_MAX_LOADS];
  uint64_t symtab, strtab, strsz, num_symbols;
  uint64_t gnu_hash, sysv_hash; /* 0: absent */
  uint64_t dynamic;
  uint64_t relro_start, relro_end; /* pages that are read-only after relocation */
};

struct elf_symbol {
  uint64_t value, size;
  uint8_t type, bind;
  uint16_t section;
};

/* Check a whole file for `machine` (e_machine). Return 0, or -1 with *error filled. */
int elf_check(const uint8_t *file, uint64_t nbytes, uint16_t machine, struct elf_image *image,
              struct elf_error *error);

/* Return the machine that this code was compiled for (EM_X86_64, EM_AARCH64, ...). */
uint16_t elf_native_machine(void);

/* Find a symbol that this object defines, by its hash table. `at` converts a link-time address to a
 * readable pointer: base + vaddr in a loaded object, the file offset in a file. Return 1 if found,
 * 0 if absent or undefined. Symbol versions are ignored: the first version in the hash chain is
 * found. */
typedef const uint8_t *(*elf_at)(const void *context, const struct elf_image *image,
                                 uint64_t vaddr);
const uint8_t *elf_at_loaded(const void *base, const struct elf_image *image, uint64_t vaddr);
const uint8_t *elf_at_file(const void *file, const struct elf_image *image, uint64_t vaddr);
int elf_lookup(const struct elf_image *image, elf_at at, const void *context, const char *name,
               struct elf_symbol *symbol);

/* Describe the dynamic symbol number `index` (below num_symbols) and return its name. Section 0
 * (SHN_UNDEF) means that this object does not define it. */
const char *elf_symbol_at(const struct elf_image *image, elf_at at, const void *context,
                          uint64_t index, struct elf_symbol *symbol);

/* Call `visit` for the name of each function and data symbol that this object defines and that begins
 * with `prefix`, in the order of the table, until it returns nonzero; return that, or 0. */
int elf_visit_defined(const struct elf_image *image, elf_at at, const void *context,
                      const char *prefix, int (*visit)(void *arg, const char *name), void *arg);

/* Return the value of a tag of the dynamic section, or 0. */
uint64_t elf_dynamic_value(const struct elf_image *image, elf_at at, const void *context,
                           uint64_t tag);

/* Return the next text of a tag whose value is one (DT_NEEDED, DT_SONAME, DT_RPATH, DT_RUNPATH), or
 * NULL. *index is 0 at first, and is advanced. */
const char *elf_dynamic_text(const struct elf_image *image, elf_at at, const void *context,
                             uint64_t tag, size_t *index);

/* True if the object needs a library (DT_NEEDED) whose file name begins with `prefix`. */
int elf_needs(const struct elf_image *image, elf_at at, const void *context, const char *prefix);

/* Return why a symbol is not constant data stored in the file, or NULL if it is. */
const char *elf_not_data(const struct elf_image *image, const struct elf_symbol *symbol);

/* Return why a symbol is not code, or NULL if it is. */
const char *elf_not_code(const struct elf_image *image, const struct elf_symbol *symbol);

/* True if [vaddr, vaddr + nbytes) is writable while the program runs; .bss included. */
int elf_is_variable(const struct elf_image *image, uint64_t vaddr, uint64_t nbytes);

/* Return the segment whose file bytes contain [vaddr, vaddr + nbytes), or NULL. */
const struct elf_segment *elf_segment_of(const struct elf_image *image, uint64_t vaddr,
                                         uint64_t nbytes);

/* The static check of an ELF shared object: what the dynamic loader will read is looked at first.
 *
 * No Python.h, no allocation, no libc beyond <string.h> and vsnprintf; the whole file lies in
 * memory (a read-only map). Sources: gABI (ELF header, program headers, dynamic section,
 * symbol table), GNU hash as glibc's elf/dl-lookup.c reads it, psABI relocation types.
 *
 * Time is linear in the file, never more. Bounds of ours: 4,096 program headers, 64 PT_LOADs,
 * addresses below 2^47, 64 GiB of memory beyond the file's size, the first 4,096 section headers.
 * At most 65,536 functions for the loader to call, 16 MiB of thread-local variables.
 * Not judged: machine code, data, and what other objects the loader will bring in. */
#ifndef DSO_PACKER_ELF_ELF_H
#define DSO_PACKER_ELF_ELF_H

#include <stddef.h>
#include <stdint.h>

enum { ELF_MAX_LOADS = 64 };

/* One word for programs; the texts of LibraryLoadError.reason, in this order. */
enum elf_reason {
  ELF_OK = 0,
  ELF_NOT_ELF,   /* "not-elf":   the magic is not there */
  ELF_TRUNCATED, /* "truncated": something lies beyond the end of the file */
  ELF_MACHINE,   /* "machine":   wrong class, byte order, machine */
  ELF_FORMAT,    /* "format":    another known format: archive, tar, object, PE, Mach-O, ZIP, ... */
  ELF_MALFORMED, /* "malformed": the headers or tables contradict themselves */
  ELF_POLICY,    /* "policy":    valid, but refused: RWX, executable stack, TEXTREL, AUDIT, ... */
};

struct elf_error {
  enum elf_reason reason;
  char message[512]; /* "<where>: <what>, expected <x>, found <y>", without the path */
};

struct elf_segment {
  uint64_t vaddr, memsz, offset, filesz;
  uint32_t flags; /* PF_R | PF_W | PF_X */
};

/* What the check learned; all addresses are link-time addresses (p_vaddr space). */
struct elf_image {
  uint16_t machine;
  uint32_t num_loads;
  struct elf_segment loads[ELF_MAX_LOADS];
  uint64_t symtab, strtab, strsz, num_symbols;
  uint64_t gnu_hash, sysv_hash; /* 0: absent */
  uint64_t dynamic;
  uint64_t relro_start, relro_end; /* the pages that are read-only once they are relocated */
};

struct elf_symbol {
  uint64_t value, size;
  uint8_t type, bind;
  uint16_t section;
};

/* Check a whole file. machine: the expected e_machine. Returns 0, or -1 with *error filled. */
int elf_check(const uint8_t *file, uint64_t nbytes, uint16_t machine, struct elf_image *image,
              struct elf_error *error);

/* The machine this code was compiled for (EM_X86_64, EM_AARCH64, ...). */
uint16_t elf_native_machine(void);

/* Find a symbol that this object itself defines, by its hash table. `at` turns a link-time
 * address into a readable pointer: for a loaded object base + vaddr, for a file its offset.
 * Returns 1 found, 0 absent (undefined counts as absent). Symbol versions are not looked at: of
 * several versions of a name the first in its hash chain is found. */
typedef const uint8_t *(*elf_at)(const void *context, const struct elf_image *image,
                                 uint64_t vaddr);
const uint8_t *elf_at_loaded(const void *base, const struct elf_image *image, uint64_t vaddr);
const uint8_t *elf_at_file(const void *file, const struct elf_image *image, uint64_t vaddr);
int elf_lookup(const struct elf_image *image, elf_at at, const void *context, const char *name,
               struct elf_symbol *symbol);

/* The dynamic symbol number `index` (below num_symbols): its name and what it is; section 0 says
 * that this object does not define it. */
const char *elf_symbol_at(const struct elf_image *image, elf_at at, const void *context,
                          uint64_t index, struct elf_symbol *symbol);

/* Whether the object needs a library (DT_NEEDED) whose file name begins so. */
int elf_needs(const struct elf_image *image, elf_at at, const void *context, const char *prefix);

/* Why a symbol is not constant data that is stored in the file, or NULL where it is. */
const char *elf_not_data(const struct elf_image *image, const struct elf_symbol *symbol);

/* Why a symbol is not code, or NULL where it is. */
const char *elf_not_code(const struct elf_image *image, const struct elf_symbol *symbol);

/* Whether the program may write [vaddr, vaddr + nbytes) at any time, .bss included. */
int elf_is_variable(const struct elf_image *image, uint64_t vaddr, uint64_t nbytes);

/* The segment that holds [vaddr, vaddr + nbytes) with file bytes behind it, or NULL. */
const struct elf_segment *elf_segment_of(const struct elf_image *image, uint64_t vaddr,
                                         uint64_t nbytes);

#endif

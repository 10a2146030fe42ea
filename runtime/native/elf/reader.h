/* The state that the parts of the static check share: the file, the facts found so far, the error.
 *
 * The parts run in the order of their prototypes; each relies on what the earlier parts checked.
 * All return 0, or -1 with the error filled. */
#pragma once

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "elf/elf.h"
#include "elf/layout.h"

enum {
  ELF_MAX_HEADERS = 4096, /* program headers and section headers that are read */
  ELF_MAX_TAGS = 64,
  ELF_PAGE = 0x1000, /* the smallest page of any supported machine */
};

struct elf_reader {
  const uint8_t *file;
  uint64_t nbytes;
  struct elf_image *image;
  struct elf_error *error;
  struct elf_header header;
  struct elf_segment dynamic, tls;        /* PT_DYNAMIC; PT_TLS, memsz 0 if absent */
  uint64_t headers_vaddr, headers_nbytes; /* the program headers in memory; 0 bytes if not mapped */
  uint64_t gnu_hash_nbytes, sysv_hash_nbytes; /* 0 if absent */
  uint64_t tag_seen;                          /* bit i: row i of the tag table has a value */
  uint64_t tag_values[ELF_MAX_TAGS];
  bool num_symbols_exact; /* false if no symbol is hashed; relocations may then name more */
};

/* A table of the dynamic section whose bytes are inside the file. */
struct elf_table {
  const char *name;
  const uint8_t *bytes;
  uint64_t vaddr, nbytes;
};

/* The value that a relocation writes. */
enum elf_relocates {
  ELF_RELOCATES_NOTHING,  /* none; it is skipped */
  ELF_RELOCATES_RELATIVE, /* this object's base + addend */
  ELF_RELOCATES_ADDRESS,  /* a symbol + addend, in a word */
  ELF_RELOCATES_RESOLVED, /* the result of the resolver at base + addend */
  ELF_RELOCATES_SYMBOL,   /* another function of a symbol */
  ELF_RELOCATES_SIZE,     /* a symbol's size; glibc requires the symbol to be defined */
  ELF_RELOCATES_TLS,      /* a module or offset of thread-local storage */
};

struct elf_relocation_type {
  uint16_t number;
  uint8_t kind, nbytes; /* enum elf_relocates; the number of bytes written */
};

/* The types that a shared object for a machine may contain (relocation_types.c); NULL if the
 * machine or the number has no row. */
struct elf_relocation_types {
  uint16_t machine;
  size_t count;
  const struct elf_relocation_type *rows;
};
const struct elf_relocation_types *elf_relocation_types(uint16_t machine);
const struct elf_relocation_type *elf_relocation_type(const struct elf_relocation_types *types,
                                                      uint32_t number);

int elf_identify(struct elf_reader *reader, uint16_t machine); /* identify.c */
int elf_check_segments(struct elf_reader *reader);             /* segments.c */
int elf_check_dynamic(struct elf_reader *reader);              /* dynamic.c */
int elf_check_hash(struct elf_reader *reader);                 /* hash.c */
int elf_check_hashed_names(struct elf_reader *reader);         /* hashed_names.c */
int elf_check_relocations(struct elf_reader *reader);          /* relocations.c */
int elf_check_symbols(struct elf_reader *reader);              /* symbols.c */
int elf_check_versions(struct elf_reader *reader);             /* versions.c */
int elf_check_sections(struct elf_reader *reader);             /* sections.c */

/* Fill the error. Always returns -1. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
int elf_refuse(struct elf_reader *reader, enum elf_reason reason, const char *format, ...);

/* Return true and the value of a tag of the dynamic section, or false if the tag is absent. */
bool elf_tag(const struct elf_reader *reader, uint64_t tag, uint64_t *value);
const char *elf_tag_name(uint64_t tag);

/* Find the next DT_NEEDED from entry *index on, and move *index to the entry after it. Return false
 * if there is none. */
bool elf_needed(const struct elf_reader *reader, uint64_t *index, uint64_t *name);

/* Locate the table at a tag's address. Refused unless one readable PT_LOAD contains its bytes. */
int elf_table_at(struct elf_reader *reader, uint64_t tag, uint64_t nbytes, struct elf_table *table);

/* Return the file bytes of [vaddr, vaddr + nbytes) in a readable segment, or NULL. */
const uint8_t *elf_bytes(const struct elf_reader *reader, uint64_t vaddr, uint64_t nbytes);

/* Return the segment whose memory, .bss included, contains [vaddr, vaddr + nbytes), or NULL. */
const struct elf_segment *elf_memory_of(const struct elf_image *image, uint64_t vaddr,
                                        uint64_t nbytes);

/* True if [offset, offset + nbytes) is within limit; then the sum cannot wrap. */
static inline bool elf_within(uint64_t offset, uint64_t nbytes, uint64_t limit) {
  return offset <= limit && nbytes <= limit - offset;
}

static inline uint32_t elf_u32(const uint8_t *bytes, uint64_t index) {
  uint32_t word;
  memcpy(&word, bytes + 4 * index, sizeof word);
  return word;
}

static inline uint64_t elf_u64(const uint8_t *bytes, uint64_t index) {
  uint64_t word;
  memcpy(&word, bytes + 8 * index, sizeof word);
  return word;
}

/* What the parts of the static check share: the file, what is known so far, and how to refuse.
 *
 * The parts run in the order of their prototypes; each relies on what those before it have
 * checked. All return 0, or -1 with the error filled. */
#ifndef DSO_PACKER_ELF_READER_H
#define DSO_PACKER_ELF_READER_H

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "elf/elf.h"
#include "elf/layout.h"

enum {
  ELF_MAX_HEADERS = 4096, /* program headers, and section headers, that are ever read */
  ELF_MAX_TAGS = 64,
  ELF_PAGE = 0x1000, /* the smallest page of any machine named here */
};

struct elf_reader {
  const uint8_t *file;
  uint64_t nbytes;
  struct elf_image *image;
  struct elf_error *error;
  struct elf_header header;
  struct elf_segment dynamic, tls;        /* PT_DYNAMIC; PT_TLS, memsz 0: none */
  uint64_t headers_vaddr, headers_nbytes; /* the program headers in memory; 0 bytes: not mapped */
  uint64_t gnu_hash_nbytes, sysv_hash_nbytes; /* 0: absent */
  uint64_t tag_seen;                          /* bit i: row i of the tag table has a value */
  uint64_t tag_values[ELF_MAX_TAGS];
  bool num_symbols_exact; /* false: no symbol is hashed, relocations may name more */
};

/* A table of the dynamic section, its bytes known to lie in the file. */
struct elf_table {
  const char *name;
  const uint8_t *bytes;
  uint64_t vaddr, nbytes;
};

/* What a relocation makes of its target. */
enum elf_relocates {
  ELF_RELOCATES_NOTHING,  /* it is skipped */
  ELF_RELOCATES_RELATIVE, /* this object's base + addend */
  ELF_RELOCATES_ADDRESS,  /* a symbol + addend, in a word */
  ELF_RELOCATES_RESOLVED, /* what the resolver at base + addend returns */
  ELF_RELOCATES_SYMBOL,   /* from a symbol in another way */
  ELF_RELOCATES_SIZE,     /* a symbol's size: glibc wants it to be there */
  ELF_RELOCATES_TLS,      /* a place in the threads' blocks */
};

struct elf_relocation_type {
  uint16_t number;
  uint8_t kind, nbytes; /* enum elf_relocates; how many bytes are written */
};

/* The types that a shared object for a machine may contain (elf_relocation_types.c). */
struct elf_relocation_types {
  uint16_t machine;
  size_t count;
  const struct elf_relocation_type *rows;
};
const struct elf_relocation_types *elf_relocation_types(uint16_t machine);
const struct elf_relocation_type *elf_relocation_type(const struct elf_relocation_types *types,
                                                      uint32_t number);

int elf_identify(struct elf_reader *reader, uint16_t machine); /* elf_identify.c */
int elf_check_segments(struct elf_reader *reader);             /* elf_segments.c */
int elf_check_dynamic(struct elf_reader *reader);              /* elf_dynamic.c */
int elf_check_hash(struct elf_reader *reader);                 /* elf_hash.c */
int elf_check_hashed_names(struct elf_reader *reader);         /* elf_hashed_names.c */
int elf_check_relocations(struct elf_reader *reader);          /* elf_relocations.c */
int elf_check_symbols(struct elf_reader *reader);              /* elf_symbols.c */
int elf_check_versions(struct elf_reader *reader);             /* elf_versions.c */
int elf_check_sections(struct elf_reader *reader);             /* elf_sections.c */

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
int elf_refuse(struct elf_reader *reader, enum elf_reason reason, const char *format, ...);

/* The value of a single-valued tag of the dynamic section; false: the tag is absent. */
bool elf_tag(const struct elf_reader *reader, uint64_t tag, uint64_t *value);
const char *elf_tag_name(uint64_t tag);

/* The next DT_NEEDED name from entry *index on, which moves behind it; false: no more. */
bool elf_needed(const struct elf_reader *reader, uint64_t *index, uint64_t *name);

/* The table at a tag's address; refused unless its file bytes lie in one PT_LOAD. */
int elf_table_at(struct elf_reader *reader, uint64_t tag, uint64_t nbytes, struct elf_table *table);

/* The file bytes of [vaddr, vaddr + nbytes) in a readable segment, or NULL. */
const uint8_t *elf_bytes(const struct elf_reader *reader, uint64_t vaddr, uint64_t nbytes);

/* The segment whose memory, .bss included, holds [vaddr, vaddr + nbytes), or NULL. */
const struct elf_segment *elf_memory_of(const struct elf_image *image, uint64_t vaddr,
                                        uint64_t nbytes);

/* From here on no sum of offset and size can wrap. */
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

#endif

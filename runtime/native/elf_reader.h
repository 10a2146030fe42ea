/* What the parts of the static check share: the file, what is known so far, and how to refuse.
 *
 * The parts run in the order of their prototypes; each relies on what those before it have
 * checked. All return 0, or -1 with the error filled. */
#ifndef DSO_PACKER_NATIVE_ELF_READER_H
#define DSO_PACKER_NATIVE_ELF_READER_H

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "elf.h"
#include "elf_layout.h"

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
  struct elf_segment dynamic, tls; /* PT_DYNAMIC; PT_TLS, memsz 0: none */
  uint64_t tag_seen;               /* bit i: row i of the tag table has a value */
  uint64_t tag_values[ELF_MAX_TAGS];
  bool num_symbols_exact; /* false: no symbol is hashed, relocations may name more */
};

/* A table of the dynamic section, its bytes known to lie in the file. */
struct elf_table {
  const char *name;
  const uint8_t *bytes;
  uint64_t vaddr, nbytes;
};

int elf_identify(struct elf_reader *reader, uint16_t machine); /* elf_identify.c */
int elf_check_segments(struct elf_reader *reader);             /* elf_segments.c */
int elf_check_dynamic(struct elf_reader *reader);              /* elf_dynamic.c */
int elf_check_hash(struct elf_reader *reader);                 /* elf_hash.c */
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

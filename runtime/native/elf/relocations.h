/* What the parts of the relocations' check share: the tables (elf_relocations.c), and where they
 * let the loader write (elf_targets.c). */
#ifndef DSO_PACKER_ELF_RELOCATIONS_H
#define DSO_PACKER_ELF_RELOCATIONS_H

#include "elf/reader.h"

enum { MAX_CALLS = 1 << 16, MAX_ZONES = 16, NUM_ARRAYS = 3 };

/* Addresses that few relocations may write to. */
struct zone {
  const char *name;
  uint64_t start, end;
  uint64_t first_call; /* of an array of functions: the number of its first entry */
};

struct elf_relocations {
  struct elf_reader *reader;
  const struct elf_relocation_types *types; /* NULL: a machine without a row */
  const struct elf_segment *last;           /* where the last target was: most are neighbours */
  const char *table;
  uint64_t index;
  uint64_t num_relative;        /* DT_RELACOUNT while DT_RELA is read */
  struct zone zones[MAX_ZONES]; /* the first NUM_ARRAYS are the arrays of functions */
  unsigned num_zones;
  uint64_t start, end; /* all zones lie in here */
  uint64_t num_calls;
  uint8_t *is_relocated; /* one bit for each of these: they are the entries of the arrays */
};

int elf_find_zones(struct elf_relocations *at);

/* That the loader may write the target of a relocation, and what it makes of the functions that
 * it calls itself. */
int elf_check_write(struct elf_relocations *at, const struct elf_rela *rela,
                    const struct elf_relocation_type *type);

/* Whether a range is writable and no zone overlaps it: relocations in it need no further look. */
bool elf_is_plain_data(struct elf_relocations *at, uint64_t vaddr, uint64_t nbytes);

/* An address that the loader will call. */
int elf_check_call(struct elf_relocations *at, uint64_t vaddr);

/* That each function which the loader calls has been relocated. */
int elf_check_calls(struct elf_relocations *at);

/* The symbol of a relocation, whose index was checked. */
struct elf_symbol_entry elf_symbol_of(const struct elf_relocations *at,
                                      const struct elf_rela *rela);
bool elf_may_be_absent(const struct elf_symbol_entry *symbol);
int elf_refuse_symbol(struct elf_relocations *at, const struct elf_rela *rela,
                      const char *expected);

#endif

/* The state that relocations.c (the tables) and targets.c (where they write) share. */
#pragma once

#include "elf/reader.h"

enum { MAX_CALLS = 1 << 16, MAX_ZONES = 16, NUM_ARRAYS = 3 };

/* A range of addresses that only certain relocations may write. */
struct zone {
  const char *name;
  uint64_t start, end;
  uint64_t first_call; /* number of the first entry, in an array of functions */
};

struct elf_relocations {
  struct elf_reader *reader;
  const struct elf_relocation_types *types; /* NULL for a machine without a row */
  const struct elf_segment *last; /* segment of the last target; most targets are neighbours */
  const char *table;
  uint64_t index;
  uint64_t num_relative;        /* DT_RELACOUNT while DT_RELA is read */
  struct zone zones[MAX_ZONES]; /* the first NUM_ARRAYS are the arrays of functions */
  unsigned num_zones;
  uint64_t start, end; /* contains all zones */
  uint64_t num_calls;
  uint8_t *is_relocated; /* one bit per entry of the arrays of functions */
};

/* Collect the ranges that relocations must not write, or only in whole entries. */
int elf_find_zones(struct elf_relocations *at);

/* Check that the loader may write a relocation's target, and the value if the loader calls it. */
int elf_check_write(struct elf_relocations *at, const struct elf_rela *rela,
                    const struct elf_relocation_type *type);

/* True if a range is writable and overlaps no zone; relocations in it need no further check. */
bool elf_is_plain_data(struct elf_relocations *at, uint64_t vaddr, uint64_t nbytes);

/* Check an address that the loader will call. */
int elf_check_call(struct elf_relocations *at, uint64_t vaddr);

/* Check that every entry of the arrays of functions was relocated. */
int elf_check_calls(struct elf_relocations *at);

/* Return the symbol of a relocation with a checked index. */
struct elf_symbol_entry elf_symbol_of(const struct elf_relocations *at,
                                      const struct elf_rela *rela);
bool elf_may_be_absent(const struct elf_symbol_entry *symbol);
int elf_refuse_symbol(struct elf_relocations *at, const struct elf_rela *rela,
                      const char *expected);

/* Symbols by name or by number, in checked tables. */

#include "elf/hash.h"

/* The tables that a look-up reads, and the name that it searches. */
struct search {
  const struct elf_image *image;
  const uint8_t *symbols, *strings;
  const char *name;
  size_t length; /* with the NUL */
};

static struct elf_symbol describe(const struct elf_symbol_entry *entry) {
  return (struct elf_symbol){.value = entry->st_value,
                             .size = entry->st_size,
                             .type = entry->st_info & 15,
                             .bind = entry->st_info >> 4,
                             .section = entry->st_shndx};
}

static bool matches(const struct search *search, uint64_t index, struct elf_symbol *symbol) {
  struct elf_symbol_entry entry;
  memcpy(&entry, search->symbols + index * sizeof entry, sizeof entry);
  if (entry.st_shndx == SHN_UNDEF ||
      !elf_within(entry.st_name, search->length, search->image->strsz) ||
      memcmp(search->strings + entry.st_name, search->name, search->length) != 0)
    return false;
  *symbol = describe(&entry);
  return true;
}

const char *elf_symbol_at(const struct elf_image *image, elf_at at, const void *context,
                          uint64_t index, struct elf_symbol *symbol) {
  struct elf_symbol_entry entry;
  memcpy(&entry, at(context, image, image->symtab) + index * sizeof entry, sizeof entry);
  *symbol = describe(&entry);
  return (const char *)at(context, image, image->strtab) + entry.st_name;
}

int elf_visit_defined(const struct elf_image *image, elf_at at, const void *context,
                      const char *prefix, int (*visit)(void *arg, const char *name), void *arg) {
  size_t length = strlen(prefix);
  int status = 0;
  /* Symbol 0 is reserved (gABI, Symbol Table). */
  for (uint64_t i = 1; i < image->num_symbols && status == 0; i++) {
    struct elf_symbol symbol;
    const char *name = elf_symbol_at(image, at, context, i, &symbol);
    if (symbol.section != SHN_UNDEF && strncmp(name, prefix, length) == 0 &&
        (symbol.type == STT_FUNC || symbol.type == STT_GNU_IFUNC || symbol.type == STT_OBJECT))
      status = visit(arg, name);
  }
  return status;
}

static int lookup_gnu(const struct search *search, const uint8_t *bytes,
                      struct elf_symbol *symbol) {
  struct elf_gnu_table table = elf_gnu_table_at(bytes);
  uint32_t hash = elf_gnu_hash_of(search->name);
  if (!elf_gnu_may_have(&table, hash)) return 0;
  uint64_t index = elf_u32(table.buckets, hash % table.header.num_buckets);
  if (index < table.header.symbol_offset) return 0;
  for (; index < search->image->num_symbols; index++) {
    uint32_t chained = elf_u32(table.chains, index - table.header.symbol_offset);
    if ((chained | 1) == (hash | 1) && matches(search, index, symbol)) return 1;
    if (chained & 1) return 0;
  }
  return 0;
}

static int lookup_sysv(const struct search *search, const uint8_t *bytes,
                       struct elf_symbol *symbol) {
  struct elf_sysv_hash header;
  memcpy(&header, bytes, sizeof header);
  const uint8_t *buckets = bytes + sizeof header;
  const uint8_t *chains = buckets + UINT64_C(4) * header.num_buckets;
  uint64_t steps = 0;
  for (uint32_t index = elf_u32(buckets, elf_sysv_hash_of(search->name) % header.num_buckets);
       index != 0 && index < search->image->num_symbols && steps < search->image->num_symbols;
       index = elf_u32(chains, index), steps++)
    if (matches(search, index, symbol)) return 1;
  return 0;
}

int elf_lookup(const struct elf_image *image, elf_at at, const void *context, const char *name,
               struct elf_symbol *symbol) {
  struct search search = {.image = image,
                          .name = name,
                          .length = strlen(name) + 1,
                          .symbols = at(context, image, image->symtab),
                          .strings = at(context, image, image->strtab)};
  if (image->gnu_hash != 0) return lookup_gnu(&search, at(context, image, image->gnu_hash), symbol);
  if (image->sysv_hash != 0)
    return lookup_sysv(&search, at(context, image, image->sysv_hash), symbol);
  return 0;
}

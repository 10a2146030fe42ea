/* Each symbol's bucket and hash match its name. Otherwise a look-up would search another chain and
 * report the symbol as absent.
 *
 * A walk stops at the first symbol of another bucket. So no two chains share a symbol, and all
 * walks together take linear time. Names may share bytes; the file's size bounds how many
 * characters are hashed, far above what linkers produce. */

#include "elf/hash.h"

enum { MIN_CHARACTERS = 1 << 20 };

struct names {
  struct elf_reader *reader;
  const uint8_t *symbols;
  const char *strings;
  const char *table;
  uint64_t characters; /* that may still be hashed */
};

static int refuse(struct names *at, uint64_t index, const char *expected) {
  return elf_refuse(at->reader, ELF_MALFORMED,
                    "%s: symbol %" PRIu64
                    ", expected %s, found another; the symbol's name or the table is damaged",
                    at->table, index, expected);
}

static struct elf_symbol_entry symbol_at(const struct names *at, uint64_t index) {
  struct elf_symbol_entry symbol;
  memcpy(&symbol, at->symbols + index * sizeof symbol, sizeof symbol);
  return symbol;
}

/* Return the symbol's name, or NULL with the error filled. The string table ends in NUL. */
static const char *name_of(struct names *at, const struct elf_symbol_entry *symbol,
                           uint64_t index) {
  if (symbol->st_name >= at->reader->image->strsz) {
    elf_refuse(at->reader, ELF_MALFORMED,
               "DT_SYMTAB: st_name of symbol %" PRIu64 ", expected below 0x%" PRIx64
               ", found 0x%" PRIx32,
               index, at->reader->image->strsz, symbol->st_name);
    return NULL;
  }
  const char *name = at->strings + symbol->st_name;
  uint64_t length = strlen(name);
  if (length <= at->characters) {
    at->characters -= length;
    return name;
  }
  refuse(at, index, "names no longer than the file in total");
  return NULL;
}

static bool gnu_fits(const struct elf_gnu_table *table, uint32_t bucket, uint32_t hash,
                     uint32_t chained) {
  return ((hash ^ chained) | 1) == 1 && hash % table->header.num_buckets == bucket &&
         elf_gnu_may_have(table, hash);
}

static int check_gnu_chain(struct names *at, const struct elf_gnu_table *table, uint32_t bucket,
                           uint64_t *count) {
  uint64_t index = elf_u32(table->buckets, bucket);
  if (index == 0) return 0;
  for (uint32_t chained = 0; !(chained & 1); index++) {
    struct elf_symbol_entry symbol = symbol_at(at, index);
    const char *name = name_of(at, &symbol, index);
    if (name == NULL) return -1;
    chained = elf_u32(table->chains, index - table->header.symbol_offset);
    if (!gnu_fits(table, bucket, elf_gnu_hash_of(name), chained))
      return refuse(at, index, "the hash of its name");
    ++*count;
  }
  return 0;
}

static int check_gnu(struct names *at, const uint8_t *bytes) {
  struct elf_gnu_table table = elf_gnu_table_at(bytes);
  uint64_t nbytes = at->reader->gnu_hash_nbytes - (uint64_t)(table.chains - bytes);
  uint64_t count = 0, expected = nbytes / sizeof(uint32_t); /* one word per symbol */
  at->table = "DT_GNU_HASH";
  for (uint32_t bucket = 0; bucket < table.header.num_buckets; bucket++)
    if (check_gnu_chain(at, &table, bucket, &count) != 0) return -1;
  return count == expected
             ? 0
             : elf_refuse(at->reader, ELF_MALFORMED,
                          "DT_GNU_HASH: symbols on chains, expected %" PRIu64 ", found %" PRIu64,
                          expected, count);
}

static bool is_looked_up(const struct elf_symbol_entry *symbol) {
  return symbol->st_shndx != SHN_UNDEF && symbol->st_info >> 4 != STB_LOCAL;
}

static int check_sysv_chain(struct names *at, const struct elf_sysv_hash *header,
                            const uint8_t *buckets, uint32_t bucket, uint64_t *count) {
  const uint8_t *chains = buckets + UINT64_C(4) * header->num_buckets;
  for (uint32_t index = elf_u32(buckets, bucket); index != 0; index = elf_u32(chains, index)) {
    struct elf_symbol_entry symbol = symbol_at(at, index);
    const char *name = name_of(at, &symbol, index);
    if (name == NULL) return -1;
    if (elf_sysv_hash_of(name) % header->num_buckets != bucket)
      return refuse(at, index, "the bucket of its name");
    *count += is_looked_up(&symbol);
  }
  return 0;
}

static int check_sysv(struct names *at, const uint8_t *bytes) {
  struct elf_sysv_hash header;
  uint64_t count = 0, expected = 0;
  memcpy(&header, bytes, sizeof header);
  at->table = "DT_HASH";
  for (uint32_t bucket = 0; bucket < header.num_buckets; bucket++)
    if (check_sysv_chain(at, &header, bytes + sizeof header, bucket, &count) != 0) return -1;
  for (uint64_t i = 0; i < header.num_chains; i++) {
    struct elf_symbol_entry symbol = symbol_at(at, i);
    expected += is_looked_up(&symbol);
  }
  return count == expected ? 0
                           : elf_refuse(at->reader, ELF_MALFORMED,
                                        "DT_HASH: defined symbols on chains, expected %" PRIu64
                                        ", found %" PRIu64,
                                        expected, count);
}

int elf_check_hashed_names(struct elf_reader *reader) {
  const struct elf_image *image = reader->image;
  struct names at = {.reader = reader,
                     .strings = (const char *)elf_bytes(reader, image->strtab, image->strsz)};
  const uint8_t *gnu = elf_bytes(reader, image->gnu_hash, reader->gnu_hash_nbytes);
  const uint8_t *sysv = elf_bytes(reader, image->sysv_hash, reader->sysv_hash_nbytes);
  at.symbols =
      elf_bytes(reader, image->symtab, image->num_symbols * sizeof(struct elf_symbol_entry));
  at.characters = reader->nbytes + MIN_CHARACTERS;
  if (image->gnu_hash != 0) return check_gnu(&at, gnu); /* look-ups then ignore DT_HASH */
  return image->sysv_hash == 0 ? 0 : check_sysv(&at, sysv);
}

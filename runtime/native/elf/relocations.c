/* The relocation tables: where the loader writes, which symbols it looks up, what it calls.
 *
 * Written values are checked only in the arrays of functions, since the loader itself calls those.
 * A wrong pointer in data is a bug of the object's code. */

#include "elf/relocations.h"

/* If no symbol is hashed, only the file's size bounds the number of undefined symbols. */
static int check_symbol_index(struct elf_relocations *at, uint64_t symbol) {
  struct elf_image *image = at->reader->image;
  if (symbol < image->num_symbols) return 0;
  uint64_t nbytes = (symbol + 1) * sizeof(struct elf_symbol_entry);
  if (!at->reader->num_symbols_exact && elf_bytes(at->reader, image->symtab, nbytes) != NULL) {
    image->num_symbols = symbol + 1;
    return 0;
  }
  return elf_refuse(at->reader, ELF_MALFORMED,
                    "%s: symbol index of relocation %" PRIu64 ", expected below %" PRIu64
                    ", found %" PRIu64,
                    at->table, at->index, image->num_symbols, symbol);
}

/* A TLS relocation refers to the block of the object that defines its symbol, so that object needs
 * a PT_TLS. glibc takes symbol 0 as this object, and divides by the alignment of its PT_TLS. */
static int check_tls(struct elf_relocations *at, const struct elf_rela *rela) {
  struct elf_symbol_entry symbol = elf_symbol_of(at, rela);
  if (rela->r_info >> 32 == 0) symbol.st_value = symbol.st_size = 0;
  bool is_here = rela->r_info >> 32 == 0 || symbol.st_shndx != SHN_UNDEF;
  if (is_here && at->reader->tls.memsz == 0)
    return elf_refuse_symbol(at, rela, "a PT_TLS beside a TLS relocation");
  if (is_here &&
      !elf_within(symbol.st_value + rela->r_addend, symbol.st_size, at->reader->tls.memsz))
    return elf_refuse_symbol(at, rela, "a variable inside PT_TLS");
  if (rela->r_info >> 32 != 0 && (symbol.st_info & 15) != STT_TLS)
    return elf_refuse_symbol(at, rela, "a TLS symbol");
  return 0;
}

static int refuse_type(struct elf_relocations *at, uint32_t number, const char *expected) {
  return elf_refuse(at->reader, ELF_MALFORMED,
                    "%s: type of relocation %" PRIu64 ", expected %s, found %" PRIu32, at->table,
                    at->index, expected, number);
}

static int check_kind(struct elf_relocations *at, const struct elf_rela *rela,
                      const struct elf_relocation_type *type) {
  struct elf_symbol_entry symbol;
  switch (type->kind) {
    case ELF_RELOCATES_RESOLVED: return elf_check_call(at, rela->r_addend);
    case ELF_RELOCATES_TLS: return check_tls(at, rela);
    case ELF_RELOCATES_SIZE:
      symbol = elf_symbol_of(at, rela);
      return elf_may_be_absent(&symbol) ? elf_refuse_symbol(at, rela, "a defined symbol") : 0;
    default: return 0;
  }
}

/* glibc asserts that the first DT_RELACOUNT entries are RELATIVE. */
static int check_relocation(struct elf_relocations *at, const struct elf_rela *rela) {
  static const struct elf_relocation_type any = {0, ELF_RELOCATES_RESOLVED, 8};
  uint32_t number = (uint32_t)rela->r_info;
  if (check_symbol_index(at, rela->r_info >> 32) != 0) return -1;
  if (at->types == NULL) return number == 0 ? 0 : elf_check_write(at, rela, &any);
  const struct elf_relocation_type *type = elf_relocation_type(at->types, number);
  if (type == NULL) return refuse_type(at, number, "a type for shared objects");
  if (at->index < at->num_relative && type->kind != ELF_RELOCATES_RELATIVE)
    return refuse_type(at, number, "RELATIVE within DT_RELACOUNT");
  if (type->kind == ELF_RELOCATES_NOTHING) return 0;
  return check_kind(at, rela, type) != 0 ? -1 : elf_check_write(at, rela, type);
}

/* ---- The tables */

static int check_number(struct elf_reader *reader, uint64_t tag, uint64_t expected) {
  uint64_t found = 0;
  if (elf_tag(reader, tag, &found) && found == expected) return 0;
  return elf_refuse(reader, ELF_MALFORMED,
                    "dynamic section: %s, expected 0x%" PRIx64 ", found 0x%" PRIx64,
                    elf_tag_name(tag), expected, found);
}

/* Locate the table of a tag, if present, in whole entries; check_pairs ensured its size tag. No
 * linker writes the tag of an empty table, so a size of 0 means lost relocations. */
static int find_table(struct elf_reader *reader, uint64_t tag, uint64_t size_tag,
                      uint64_t entry_size, struct elf_table *table) {
  uint64_t vaddr, nbytes = 0;
  *table = (struct elf_table){.name = elf_tag_name(tag)};
  if (!elf_tag(reader, tag, &vaddr)) return 0;
  elf_tag(reader, size_tag, &nbytes);
  if (nbytes == 0 || nbytes % entry_size != 0)
    return elf_refuse(reader, ELF_MALFORMED,
                      "dynamic section: %s, expected a multiple of 0x%" PRIx64
                      " above 0, found 0x%" PRIx64,
                      elf_tag_name(size_tag), entry_size, nbytes);
  return elf_table_at(reader, tag, nbytes, table);
}

static int check_entries(struct elf_relocations *at, const struct elf_table *table) {
  at->table = table->name;
  uint64_t count = table->nbytes / sizeof(struct elf_rela);
  for (at->index = 0; at->index < count; at->index++) {
    struct elf_rela rela;
    memcpy(&rela, table->bytes + at->index * sizeof rela, sizeof rela);
    if (check_relocation(at, &rela) != 0) return -1;
  }
  return 0;
}

static int check_rela(struct elf_relocations *at) {
  struct elf_table table;
  if (find_table(at->reader, DT_RELA, DT_RELASZ, sizeof(struct elf_rela), &table) != 0) return -1;
  if (table.bytes == NULL) return 0;
  if (check_number(at->reader, DT_RELAENT, sizeof(struct elf_rela)) != 0) return -1;
  elf_tag(at->reader, DT_RELACOUNT, &at->num_relative);
  int status = check_entries(at, &table);
  at->num_relative = 0;
  return status;
}

/* glibc asserts that DT_PLTREL is DT_RELA on 64-bit machines. */
static int check_jmprel(struct elf_relocations *at) {
  struct elf_table table;
  uint64_t value;
  if (find_table(at->reader, DT_JMPREL, DT_PLTRELSZ, sizeof(struct elf_rela), &table) != 0)
    return -1;
  if ((table.bytes != NULL || elf_tag(at->reader, DT_PLTREL, &value)) &&
      check_number(at->reader, DT_PLTREL, DT_RELA) != 0)
    return -1;
  return table.bytes == NULL ? 0 : check_entries(at, &table);
}

/* The loader adds its base to a word stored in the file. */
static int check_word(struct elf_relocations *at, uint64_t vaddr) {
  static const struct elf_relocation_type relative = {0, ELF_RELOCATES_RELATIVE, 8};
  const uint8_t *bytes = elf_bytes(at->reader, vaddr, sizeof(uint64_t));
  struct elf_rela rela = {.r_offset = vaddr, .r_addend = bytes == NULL ? 0 : elf_u64(bytes, 0)};
  return elf_check_write(at, &rela, &relative);
}

/* gABI, Relocation Table: an odd entry is a bitmap of the 63 words that follow. */
static int check_bitmap(struct elf_relocations *at, uint64_t start, uint64_t bits) {
  uint64_t nbytes = 63 * sizeof(uint64_t);
  if (elf_is_plain_data(at, start, nbytes)) return 0;
  for (; bits != 0; bits >>= 1, start += sizeof(uint64_t))
    if ((bits & 1) && check_word(at, start) != 0) return -1;
  return 0;
}

static int check_relr(struct elf_relocations *at) {
  struct elf_table table;
  if (find_table(at->reader, DT_RELR, DT_RELRSZ, sizeof(uint64_t), &table) != 0) return -1;
  if (table.bytes == NULL) return 0;
  if (check_number(at->reader, DT_RELRENT, sizeof(uint64_t)) != 0) return -1;
  at->table = table.name;
  uint64_t next = 0;
  for (at->index = 0; at->index < table.nbytes / sizeof(uint64_t); at->index++) {
    uint64_t entry = elf_u64(table.bytes, at->index);
    if (entry & 1) {
      if (check_bitmap(at, next, entry >> 1) != 0) return -1;
      next += 63 * sizeof(uint64_t);
    } else {
      if (check_word(at, entry) != 0) return -1;
      next = entry + sizeof(uint64_t);
    }
  }
  return 0;
}

int elf_check_relocations(struct elf_reader *reader) {
  uint8_t is_relocated[MAX_CALLS / 8]; /* cleared below, as far as it is used */
  struct elf_relocations at = {.reader = reader,
                               .is_relocated = is_relocated,
                               .types = elf_relocation_types(reader->image->machine),
                               .start = UINT64_MAX};
  if (elf_find_zones(&at) != 0) return -1;
  memset(is_relocated, 0, (size_t)(at.num_calls + 7) / 8);
  if (check_rela(&at) != 0 || check_jmprel(&at) != 0 || check_relr(&at) != 0) return -1;
  return elf_check_calls(&at);
}

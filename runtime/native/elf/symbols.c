/* The dynamic symbols: every name ends, every definition is inside a mapped segment. */

#include "elf/reader.h"

static int refuse_value(struct elf_reader *reader, uint64_t index,
                        const struct elf_symbol_entry *symbol, const char *expected) {
  return elf_refuse(reader, ELF_MALFORMED,
                    "DT_SYMTAB: value of symbol %" PRIu64 ", expected %s, found 0x%" PRIx64
                    " bytes at 0x%" PRIx64,
                    index, expected, symbol->st_size, symbol->st_value);
}

/* Section indexes must be below the header's count, if it has one. Above 65,279 sections the count
 * is 0 and symbols use SHN_XINDEX. */
static bool is_section(const struct elf_reader *reader, uint16_t index) {
  uint16_t count = reader->header.e_shnum;
  if (index >= SHN_LORESERVE) return index == SHN_ABS || index == SHN_XINDEX;
  return count == 0 || index < count;
}

/* True for a boundary symbol without a size (_end, __bss_start), which may be at the rounded end of
 * the last segment. */
static bool is_boundary(const struct elf_image *image, const struct elf_symbol_entry *symbol) {
  const struct elf_segment *last = &image->loads[image->num_loads - 1];
  uint64_t end = last->vaddr + last->memsz + ELF_PAGE;
  return symbol->st_size == 0 && symbol->st_value >= image->loads[0].vaddr &&
         symbol->st_value < end;
}

static int check_code(struct elf_reader *reader, uint64_t index,
                      const struct elf_symbol_entry *symbol) {
  const struct elf_segment *load = elf_segment_of(reader->image, symbol->st_value, 1);
  if (load != NULL && (load->flags & PF_X)) return 0;
  return refuse_value(reader, index, symbol, "in an executable segment (a function)");
}

static int check_value(struct elf_reader *reader, uint64_t index,
                       const struct elf_symbol_entry *symbol) {
  switch (symbol->st_info & 15) {
    case STT_TLS:
      if (elf_within(symbol->st_value, symbol->st_size, reader->tls.memsz)) return 0;
      return refuse_value(reader, index, symbol, "inside PT_TLS");
    case STT_FUNC:
    case STT_GNU_IFUNC:
      if (check_code(reader, index, symbol) != 0) return -1;
      break;
    default: break;
  }
  if (symbol->st_shndx == SHN_ABS || is_boundary(reader->image, symbol) ||
      elf_memory_of(reader->image, symbol->st_value, symbol->st_size) != NULL)
    return 0;
  return refuse_value(reader, index, symbol, "inside one PT_LOAD");
}

/* glibc takes an undefined symbol that is local, hidden or has a value as a definition. */
static int check_undefined(struct elf_reader *reader, uint64_t index,
                           const struct elf_symbol_entry *symbol) {
  if (symbol->st_info >> 4 != STB_LOCAL && (symbol->st_other & 3) == STV_DEFAULT &&
      symbol->st_value == 0)
    return 0;
  return elf_refuse(reader, ELF_MALFORMED,
                    "DT_SYMTAB: undefined symbol %" PRIu64
                    ", expected global binding, default visibility and value 0, found st_info "
                    "0x%02x, st_other 0x%02x, st_value 0x%" PRIx64,
                    index, symbol->st_info, symbol->st_other, symbol->st_value);
}

/* gABI, Symbol Table: STN_UNDEF. Relocations without a symbol use it, and ld.so would look it up if
 * it were not local. */
static int check_null_symbol(struct elf_reader *reader, const struct elf_symbol_entry *symbol) {
  static const struct elf_symbol_entry null;
  if (memcmp(symbol, &null, sizeof null) == 0) return 0;
  return elf_refuse(reader, ELF_MALFORMED,
                    "DT_SYMTAB: symbol 0, expected zeros only, found st_name 0x%" PRIx32
                    ", st_info 0x%02x, st_shndx 0x%x, st_value 0x%" PRIx64,
                    symbol->st_name, symbol->st_info, symbol->st_shndx, symbol->st_value);
}

static int check_symbol(struct elf_reader *reader, uint64_t index,
                        const struct elf_symbol_entry *symbol) {
  if (index == 0) return check_null_symbol(reader, symbol);
  if (symbol->st_name >= reader->image->strsz)
    return elf_refuse(reader, ELF_MALFORMED,
                      "DT_SYMTAB: st_name of symbol %" PRIu64 ", expected below 0x%" PRIx64
                      ", found 0x%" PRIx32,
                      index, reader->image->strsz, symbol->st_name);
  if (symbol->st_shndx == SHN_UNDEF) return check_undefined(reader, index, symbol);
  if (!is_section(reader, symbol->st_shndx))
    return elf_refuse(reader, ELF_MALFORMED,
                      "DT_SYMTAB: st_shndx of symbol %" PRIu64
                      ", expected one of %u sections, found 0x%x",
                      index, reader->header.e_shnum, symbol->st_shndx);
  return check_value(reader, index, symbol);
}

int elf_check_symbols(struct elf_reader *reader) {
  uint64_t count = reader->image->num_symbols;
  const uint8_t *bytes =
      elf_bytes(reader, reader->image->symtab, count * sizeof(struct elf_symbol_entry));
  for (uint64_t i = 0; i < count; i++) {
    struct elf_symbol_entry symbol;
    memcpy(&symbol, bytes + i * sizeof symbol, sizeof symbol);
    if (check_symbol(reader, i, &symbol) != 0) return -1;
  }
  return 0;
}

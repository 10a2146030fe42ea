/* Relocation tables: where the loader will write, which symbols it will ask for, what it calls.
 *
 * The values it writes are not judged: a wrong pointer in data is a bug of the object's code. */

#include "elf_reader.h"

/* psABI of each machine: the types that need more than a word to write to and a symbol. */
static const struct relocation_types {
  uint16_t machine;
  uint32_t copy, irelative, tlsdesc;
} relocation_types[] = {
    {EM_X86_64, 5, 37, 36},   {EM_AARCH64, 1024, 1032, 1031}, {EM_RISCV, 4, 58, 12},
    {EM_PPC64, 19, 248, ~0u}, {EM_LOONGARCH, 4, 12, 14},
};
enum { R_NONE = 0, R_X86_64_PC32 = 2, R_X86_64_32 = 10 };

struct relocations {
  struct elf_reader *reader;
  const struct relocation_types *types; /* NULL: a machine without a row */
  const struct elf_segment *last;       /* where the last target was: most are neighbours */
  const char *table;
  uint64_t index;
};

static const struct relocation_types *types_of(uint16_t machine) {
  for (size_t i = 0; i < sizeof relocation_types / sizeof *relocation_types; i++)
    if (relocation_types[i].machine == machine) return &relocation_types[i];
  return NULL;
}

static bool is_writable(struct relocations *at, uint64_t vaddr, uint64_t nbytes) {
  const struct elf_segment *load = at->last;
  if (load != NULL && vaddr >= load->vaddr && elf_within(vaddr - load->vaddr, nbytes, load->memsz))
    return true;
  load = elf_memory_of(at->reader->image, vaddr, nbytes);
  if (load == NULL || !(load->flags & PF_W)) return false;
  at->last = load;
  return true;
}

static int check_target(struct relocations *at, uint64_t vaddr, uint64_t nbytes) {
  if (is_writable(at, vaddr, nbytes)) return 0;
  return elf_refuse(at->reader, ELF_MALFORMED,
                    "%s: target of relocation %" PRIu64
                    ", expected inside a writable PT_LOAD, found 0x%" PRIx64,
                    at->table, at->index, vaddr);
}

/* Without a hashed symbol nothing bounds the symbols that are only asked for, except the file. */
static int check_symbol_index(struct relocations *at, uint64_t symbol) {
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

/* The loader calls the resolver while it relocates. */
static int check_resolver(struct relocations *at, uint64_t vaddr) {
  const struct elf_segment *load = elf_segment_of(at->reader->image, vaddr, 1);
  if (load != NULL && (load->flags & PF_X)) return 0;
  return elf_refuse(at->reader, ELF_MALFORMED,
                    "%s: resolver of IRELATIVE relocation %" PRIu64
                    ", expected in an executable segment, found 0x%" PRIx64,
                    at->table, at->index, vaddr);
}

static uint64_t target_size(const struct relocations *at, uint32_t type) {
  if (at->types == NULL) return 8;
  if (type == at->types->tlsdesc) return 16;
  bool narrow = type == R_X86_64_PC32 || type == R_X86_64_32;
  return at->types->machine == EM_X86_64 && narrow ? 4 : 8;
}

static int check_relocation(struct relocations *at, const struct elf_rela *rela) {
  uint32_t type = (uint32_t)rela->r_info;
  if (check_symbol_index(at, rela->r_info >> 32) != 0) return -1;
  if (type == R_NONE) return 0;
  if (at->types != NULL && type == at->types->copy)
    return elf_refuse(at->reader, ELF_MALFORMED,
                      "%s: type of relocation %" PRIu64
                      ", expected one for shared objects, found COPY",
                      at->table, at->index);
  if (check_target(at, rela->r_offset, target_size(at, type)) != 0) return -1;
  if (at->types != NULL && type == at->types->irelative) return check_resolver(at, rela->r_addend);
  return 0;
}

static int check_number(struct elf_reader *reader, uint64_t tag, uint64_t expected) {
  uint64_t found;
  if (!elf_tag(reader, tag, &found))
    return elf_refuse(reader, ELF_MALFORMED,
                      "dynamic section: %s, expected 0x%" PRIx64 ", found none", elf_tag_name(tag),
                      expected);
  if (found == expected) return 0;
  return elf_refuse(reader, ELF_MALFORMED,
                    "dynamic section: %s, expected 0x%" PRIx64 ", found 0x%" PRIx64,
                    elf_tag_name(tag), expected, found);
}

/* The table of a tag and its size tag, if it is there, in whole entries. */
static int find_table(struct elf_reader *reader, uint64_t tag, uint64_t size_tag,
                      uint64_t entry_size, struct elf_table *table) {
  uint64_t vaddr, nbytes;
  *table = (struct elf_table){.name = elf_tag_name(tag)};
  if (!elf_tag(reader, tag, &vaddr)) return 0;
  if (!elf_tag(reader, size_tag, &nbytes))
    return elf_refuse(reader, ELF_MALFORMED, "dynamic section: %s, expected beside %s, found none",
                      elf_tag_name(size_tag), table->name);
  if (nbytes % entry_size != 0)
    return elf_refuse(reader, ELF_MALFORMED,
                      "dynamic section: %s, expected a multiple of 0x%" PRIx64 ", found 0x%" PRIx64,
                      elf_tag_name(size_tag), entry_size, nbytes);
  return elf_table_at(reader, tag, nbytes, table);
}

/* entry_size 24: Elf64_Rela; 16: Elf64_Rel. */
static int check_entries(struct relocations *at, const struct elf_table *table,
                         uint64_t entry_size) {
  at->table = table->name;
  uint64_t count = table->nbytes / entry_size;
  for (at->index = 0; at->index < count; at->index++) {
    struct elf_rela rela = {0};
    memcpy(&rela, table->bytes + at->index * entry_size, entry_size);
    if (check_relocation(at, &rela) != 0) return -1;
  }
  return 0;
}

static int check_rela(struct relocations *at) {
  struct elf_table table;
  if (find_table(at->reader, DT_RELA, DT_RELASZ, sizeof(struct elf_rela), &table) != 0) return -1;
  if (table.bytes == NULL) return 0;
  if (check_number(at->reader, DT_RELAENT, sizeof(struct elf_rela)) != 0) return -1;
  return check_entries(at, &table, sizeof(struct elf_rela));
}

static int check_rel(struct relocations *at) {
  struct elf_table table;
  if (find_table(at->reader, DT_REL, DT_RELSZ, ELF_REL_SIZE, &table) != 0) return -1;
  if (table.bytes == NULL) return 0;
  if (check_number(at->reader, DT_RELENT, ELF_REL_SIZE) != 0) return -1;
  return check_entries(at, &table, ELF_REL_SIZE);
}

/* glibc asserts that 64-bit machines say DT_RELA here. */
static int check_jmprel(struct relocations *at) {
  struct elf_table table;
  uint64_t value;
  if (find_table(at->reader, DT_JMPREL, DT_PLTRELSZ, sizeof(struct elf_rela), &table) != 0)
    return -1;
  if ((table.bytes != NULL || elf_tag(at->reader, DT_PLTREL, &value)) &&
      check_number(at->reader, DT_PLTREL, DT_RELA) != 0)
    return -1;
  return table.bytes == NULL ? 0 : check_entries(at, &table, sizeof(struct elf_rela));
}

/* gABI, Relocation Table: an odd entry is a bitmap of the 63 words behind the last address. */
static int check_bitmap(struct relocations *at, uint64_t start, uint64_t bits) {
  if (is_writable(at, start, 63 * sizeof(uint64_t))) return 0;
  for (; bits != 0; bits >>= 1, start += sizeof(uint64_t))
    if ((bits & 1) && check_target(at, start, sizeof(uint64_t)) != 0) return -1;
  return 0;
}

static int check_relr(struct relocations *at) {
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
      if (check_target(at, entry, sizeof(uint64_t)) != 0) return -1;
      next = entry + sizeof(uint64_t);
    }
  }
  return 0;
}

int elf_check_relocations(struct elf_reader *reader) {
  struct relocations at = {.reader = reader, .types = types_of(reader->image->machine)};
  if (check_rela(&at) != 0 || check_rel(&at) != 0) return -1;
  return check_jmprel(&at) != 0 ? -1 : check_relr(&at);
}

/* Relocation tables: where the loader will write, which symbols it will ask for, what it calls.
 *
 * The values it writes are judged only where the loader itself calls them, in DT_INIT_ARRAY and
 * DT_FINI_ARRAY: a wrong pointer in data is a bug of the object's code. */

#include "elf_reader.h"

/* psABI of each machine: the types that need more than a word to write to and a symbol. */
static const struct relocation_types {
  uint16_t machine;
  uint32_t relative, copy, irelative, tlsdesc;
} relocation_types[] = {
    {EM_X86_64, 8, 5, 37, 36},    {EM_AARCH64, 1027, 1024, 1032, 1031}, {EM_RISCV, 3, 4, 58, 12},
    {EM_PPC64, 22, 19, 248, ~0u}, {EM_LOONGARCH, 3, 4, 12, 14},
};
enum { R_NONE = 0, R_X86_64_PC32 = 2, R_X86_64_32 = 10 };

/* An array of functions that the loader calls: each entry must be relocated. */
struct calls {
  uint64_t start, end, num_relocated;
};

struct relocations {
  struct elf_reader *reader;
  const struct relocation_types *types; /* NULL: a machine without a row */
  const struct elf_segment *last;       /* where the last target was: most are neighbours */
  const char *table;
  uint64_t index;
  uint64_t num_relative; /* DT_RELACOUNT while DT_RELA is read */
  struct calls init, fini;
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

/* The loader calls resolvers while it relocates, and constructors right after. */
static int check_code(struct relocations *at, uint64_t vaddr) {
  const struct elf_segment *load = elf_segment_of(at->reader->image, vaddr, 1);
  if (load != NULL && (load->flags & PF_X)) return 0;
  return elf_refuse(at->reader, ELF_MALFORMED,
                    "%s: function of relocation %" PRIu64
                    ", expected in an executable segment, found 0x%" PRIx64,
                    at->table, at->index, vaddr);
}

static bool overlaps(const struct calls *calls, uint64_t vaddr, uint64_t nbytes) {
  return vaddr < calls->end && vaddr + nbytes > calls->start;
}

/* function: what is written to the entry, where the relocation itself says so. */
static int check_entry(struct relocations *at, struct calls *calls, uint64_t vaddr,
                       const uint64_t *function) {
  if (!overlaps(calls, vaddr, sizeof(uint64_t))) return 0;
  if ((vaddr - calls->start) % sizeof(uint64_t) != 0)
    return elf_refuse(at->reader, ELF_MALFORMED,
                      "%s: target of relocation %" PRIu64
                      ", expected a whole entry of the array of functions at 0x%" PRIx64
                      ", found 0x%" PRIx64,
                      at->table, at->index, calls->start, vaddr);
  calls->num_relocated++;
  return function == NULL ? 0 : check_code(at, *function);
}

static int check_calls(struct relocations *at, uint64_t vaddr, const uint64_t *function) {
  if (check_entry(at, &at->init, vaddr, function) != 0) return -1;
  return check_entry(at, &at->fini, vaddr, function);
}

static uint64_t target_size(const struct relocations *at, uint32_t type) {
  if (type == at->types->tlsdesc) return 16;
  bool narrow = type == R_X86_64_PC32 || type == R_X86_64_32;
  return at->types->machine == EM_X86_64 && narrow ? 4 : 8;
}

static int check_write(struct relocations *at, uint64_t vaddr, const uint64_t *function,
                       uint64_t nbytes) {
  if (check_target(at, vaddr, nbytes) != 0) return -1;
  return check_calls(at, vaddr, function);
}

static int refuse_copy(struct relocations *at) {
  return elf_refuse(at->reader, ELF_MALFORMED,
                    "%s: type of relocation %" PRIu64
                    ", expected one for shared objects, found COPY",
                    at->table, at->index);
}

static int check_number(struct elf_reader *reader, uint64_t tag, uint64_t expected) {
  uint64_t found = 0;
  if (elf_tag(reader, tag, &found) && found == expected) return 0;
  return elf_refuse(reader, ELF_MALFORMED,
                    "dynamic section: %s, expected 0x%" PRIx64 ", found 0x%" PRIx64,
                    elf_tag_name(tag), expected, found);
}

/* The table of a tag, if it is there, in whole entries; its size tag is there with it. */
static int find_table(struct elf_reader *reader, uint64_t tag, uint64_t size_tag,
                      uint64_t entry_size, struct elf_table *table) {
  uint64_t vaddr, nbytes = 0;
  *table = (struct elf_table){.name = elf_tag_name(tag)};
  if (!elf_tag(reader, tag, &vaddr)) return 0;
  elf_tag(reader, size_tag, &nbytes);
  if (nbytes % entry_size != 0)
    return elf_refuse(reader, ELF_MALFORMED,
                      "dynamic section: %s, expected a multiple of 0x%" PRIx64 ", found 0x%" PRIx64,
                      elf_tag_name(size_tag), entry_size, nbytes);
  return elf_table_at(reader, tag, nbytes, table);
}

/* glibc asserts that the first DT_RELACOUNT entries are what they are said to be. */
static int refuse_counted(struct relocations *at, uint32_t type) {
  return elf_refuse(at->reader, ELF_MALFORMED,
                    "%s: type of relocation %" PRIu64 ", expected %" PRIu32
                    " (RELATIVE) within DT_RELACOUNT, found %" PRIu32,
                    at->table, at->index, at->types->relative, type);
}

static int check_relocation(struct relocations *at, const struct elf_rela *rela) {
  uint32_t type = (uint32_t)rela->r_info;
  if (check_symbol_index(at, rela->r_info >> 32) != 0) return -1;
  if (at->types == NULL) return type == R_NONE ? 0 : check_write(at, rela->r_offset, NULL, 8);
  if (type == at->types->relative)
    return check_write(at, rela->r_offset, &rela->r_addend, sizeof(uint64_t));
  if (at->index < at->num_relative) return refuse_counted(at, type);
  if (type == R_NONE) return 0;
  if (type == at->types->copy) return refuse_copy(at);
  if (type == at->types->irelative && check_code(at, rela->r_addend) != 0) return -1;
  return check_write(at, rela->r_offset, NULL, target_size(at, type));
}

/* entry_size 24: Elf64_Rela; 16: Elf64_Rel. */
static int check_entries(struct relocations *at, const struct elf_table *table,
                         uint64_t entry_size) {
  at->table = table->name;
  uint64_t count = table->nbytes / entry_size;
  for (at->index = 0; at->index < count; at->index++) {
    struct elf_rela rela = {0};
    const uint8_t *entry = table->bytes + at->index * entry_size;
    memcpy(&rela, entry, ELF_REL_SIZE);
    if (entry_size == sizeof rela) rela.r_addend = elf_u64(entry, 2);
    if (check_relocation(at, &rela) != 0) return -1;
  }
  return 0;
}

static int check_rela(struct relocations *at) {
  struct elf_table table;
  if (find_table(at->reader, DT_RELA, DT_RELASZ, sizeof(struct elf_rela), &table) != 0) return -1;
  if (table.bytes == NULL) return 0;
  if (check_number(at->reader, DT_RELAENT, sizeof(struct elf_rela)) != 0) return -1;
  elf_tag(at->reader, DT_RELACOUNT, &at->num_relative);
  int status = check_entries(at, &table, sizeof(struct elf_rela));
  at->num_relative = 0;
  return status;
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

/* A word that the loader adds its base to; the word itself lies in the file. */
static int check_word(struct relocations *at, uint64_t vaddr) {
  if (check_target(at, vaddr, sizeof(uint64_t)) != 0) return -1;
  if (!overlaps(&at->init, vaddr, sizeof(uint64_t)) &&
      !overlaps(&at->fini, vaddr, sizeof(uint64_t)))
    return 0;
  const uint8_t *bytes = elf_bytes(at->reader, vaddr, sizeof(uint64_t));
  uint64_t function = bytes == NULL ? 0 : elf_u64(bytes, 0);
  return check_calls(at, vaddr, &function);
}

/* gABI, Relocation Table: an odd entry is a bitmap of the 63 words behind the last address. */
static int check_bitmap(struct relocations *at, uint64_t start, uint64_t bits) {
  uint64_t nbytes = 63 * sizeof(uint64_t);
  if (is_writable(at, start, nbytes) && !overlaps(&at->init, start, nbytes) &&
      !overlaps(&at->fini, start, nbytes))
    return 0;
  for (; bits != 0; bits >>= 1, start += sizeof(uint64_t))
    if ((bits & 1) && check_word(at, start) != 0) return -1;
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
      if (check_word(at, entry) != 0) return -1;
      next = entry + sizeof(uint64_t);
    }
  }
  return 0;
}

static struct calls calls_of(const struct elf_reader *reader, uint64_t tag, uint64_t size_tag) {
  struct calls calls = {0};
  uint64_t nbytes = 0;
  if (elf_tag(reader, tag, &calls.start) && elf_tag(reader, size_tag, &nbytes))
    calls.end = calls.start + nbytes;
  return calls;
}

/* The loader calls an entry that nothing relocates at its link-time address: never right. */
static int check_all_relocated(struct elf_reader *reader, const struct calls *calls,
                               const char *name) {
  uint64_t count = (calls->end - calls->start) / sizeof(uint64_t);
  if (calls->num_relocated >= count) return 0;
  return elf_refuse(reader, ELF_MALFORMED,
                    "%s: relocated entries, expected %" PRIu64 ", found %" PRIu64, name, count,
                    calls->num_relocated);
}

int elf_check_relocations(struct elf_reader *reader) {
  struct relocations at = {.reader = reader,
                           .types = types_of(reader->image->machine),
                           .init = calls_of(reader, DT_INIT_ARRAY, DT_INIT_ARRAYSZ),
                           .fini = calls_of(reader, DT_FINI_ARRAY, DT_FINI_ARRAYSZ)};
  if (check_rela(&at) != 0 || check_rel(&at) != 0) return -1;
  if (check_jmprel(&at) != 0 || check_relr(&at) != 0) return -1;
  if (check_all_relocated(reader, &at.init, "DT_INIT_ARRAY") != 0) return -1;
  return check_all_relocated(reader, &at.fini, "DT_FINI_ARRAY");
}

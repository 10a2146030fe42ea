/* Where relocations write. The loader calls the entries of the arrays of functions, so each entry
 * is relocated once, by a type that produces an address. Tables that the loader reads during or
 * after relocation must stay as checked, so no relocation may write them. */

#include "elf/relocations.h"

static void add_zone(struct elf_relocations *at, const char *name, uint64_t start,
                     uint64_t nbytes) {
  if (nbytes > 0) {
    if (start < at->start) at->start = start;
    if (start + nbytes > at->end) at->end = start + nbytes;
  }
  at->zones[at->num_zones++] = (struct zone){
      .name = name, .start = start, .end = start + nbytes, .first_call = at->num_calls};
}

static int add_array(struct elf_relocations *at, uint64_t tag, uint64_t size_tag) {
  uint64_t start = 0, nbytes = 0;
  if (elf_tag(at->reader, tag, &start)) elf_tag(at->reader, size_tag, &nbytes);
  add_zone(at, elf_tag_name(tag), start, nbytes);
  at->num_calls += nbytes / sizeof(uint64_t);
  if (at->num_calls <= MAX_CALLS) return 0;
  return elf_refuse(at->reader, ELF_MALFORMED,
                    "%s: functions for the loader to call, expected at most %d in all arrays, "
                    "found %" PRIu64,
                    elf_tag_name(tag), MAX_CALLS, at->num_calls);
}

/* Only tables in writable segments can be a target. */
static void add_table(struct elf_relocations *at, const char *name, uint64_t start,
                      uint64_t nbytes) {
  const struct elf_segment *load = elf_segment_of(at->reader->image, start, nbytes);
  if (load != NULL && (load->flags & PF_W)) add_zone(at, name, start, nbytes);
}

static void add_sized_table(struct elf_relocations *at, uint64_t tag, uint64_t size_tag) {
  uint64_t start, nbytes;
  if (elf_tag(at->reader, tag, &start) && elf_tag(at->reader, size_tag, &nbytes))
    add_table(at, elf_tag_name(tag), start, nbytes);
}

int elf_find_zones(struct elf_relocations *at) {
  const struct elf_reader *reader = at->reader;
  const struct elf_image *image = reader->image;
  uint64_t versions;
  if (add_array(at, DT_INIT_ARRAY, DT_INIT_ARRAYSZ) != 0) return -1;
  if (add_array(at, DT_FINI_ARRAY, DT_FINI_ARRAYSZ) != 0) return -1;
  if (add_array(at, DT_PREINIT_ARRAY, DT_PREINIT_ARRAYSZ) != 0) return -1;
  add_table(at, "PT_DYNAMIC", reader->dynamic.vaddr, reader->dynamic.memsz);
  add_table(at, "program headers", reader->headers_vaddr, reader->headers_nbytes);
  add_table(at, "DT_STRTAB", image->strtab, image->strsz);
  add_table(at, "DT_SYMTAB", image->symtab, image->num_symbols * sizeof(struct elf_symbol_entry));
  add_table(at, "DT_GNU_HASH", image->gnu_hash, reader->gnu_hash_nbytes);
  add_table(at, "DT_HASH", image->sysv_hash, reader->sysv_hash_nbytes);
  if (elf_tag(reader, DT_VERSYM, &versions))
    add_table(at, "DT_VERSYM", versions, image->num_symbols * sizeof(uint16_t));
  add_sized_table(at, DT_RELA, DT_RELASZ);
  add_sized_table(at, DT_JMPREL, DT_PLTRELSZ);
  add_sized_table(at, DT_RELR, DT_RELRSZ);
  return 0;
}

static bool is_writable(struct elf_relocations *at, uint64_t vaddr, uint64_t nbytes) {
  const struct elf_segment *load = at->last;
  if (load != NULL && vaddr >= load->vaddr && elf_within(vaddr - load->vaddr, nbytes, load->memsz))
    return true;
  load = elf_memory_of(at->reader->image, vaddr, nbytes);
  if (load == NULL || !(load->flags & PF_W)) return false;
  at->last = load;
  return true;
}

static int check_target(struct elf_relocations *at, uint64_t vaddr, uint64_t nbytes) {
  if (is_writable(at, vaddr, nbytes)) return 0;
  return elf_refuse(at->reader, ELF_MALFORMED,
                    "%s: target of relocation %" PRIu64
                    ", expected inside a writable PT_LOAD, found 0x%" PRIx64,
                    at->table, at->index, vaddr);
}

/* The loader calls resolvers during relocation, and constructors after it. */
int elf_check_call(struct elf_relocations *at, uint64_t vaddr) {
  const struct elf_segment *load = elf_segment_of(at->reader->image, vaddr, 1);
  if (load != NULL && (load->flags & PF_X)) return 0;
  return elf_refuse(at->reader, ELF_MALFORMED,
                    "%s: function of relocation %" PRIu64
                    ", expected in an executable segment, found 0x%" PRIx64,
                    at->table, at->index, vaddr);
}

struct elf_symbol_entry elf_symbol_of(const struct elf_relocations *at,
                                      const struct elf_rela *rela) {
  struct elf_symbol_entry symbol;
  uint64_t offset = (rela->r_info >> 32) * sizeof symbol;
  memcpy(&symbol, elf_bytes(at->reader, at->reader->image->symtab + offset, sizeof symbol),
         sizeof symbol);
  return symbol;
}

/* True for a weak undefined symbol: glibc uses NULL if no object defines it. */
bool elf_may_be_absent(const struct elf_symbol_entry *symbol) {
  return symbol->st_shndx == SHN_UNDEF && symbol->st_info >> 4 == STB_WEAK;
}

int elf_refuse_symbol(struct elf_relocations *at, const struct elf_rela *rela,
                      const char *expected) {
  return elf_refuse(at->reader, ELF_MALFORMED,
                    "%s: relocation %" PRIu64 " of type %" PRIu32
                    ", expected %s, found symbol %" PRIu64,
                    at->table, at->index, (uint32_t)rela->r_info, expected, rela->r_info >> 32);
}

/* Check the function that an entry will point to, if this object defines it. */
static int check_function(struct elf_relocations *at, const struct elf_rela *rela,
                          const struct elf_relocation_type *type) {
  uint64_t vaddr = rela->r_addend;
  if (type->kind == ELF_RELOCATES_RESOLVED) return 0; /* the resolver was checked */
  if (type->kind == ELF_RELOCATES_ADDRESS && rela->r_info >> 32 != 0) {
    struct elf_symbol_entry symbol = elf_symbol_of(at, rela);
    if (elf_may_be_absent(&symbol)) return elf_refuse_symbol(at, rela, "a defined function");
    if (symbol.st_shndx == SHN_UNDEF) return 0; /* another object defines it */
    vaddr += symbol.st_value;
  }
  return elf_check_call(at, vaddr);
}

static int refuse_zone(struct elf_relocations *at, const struct zone *zone, uint64_t vaddr,
                       const char *expected) {
  return elf_refuse(at->reader, ELF_MALFORMED,
                    "%s: target of relocation %" PRIu64 ", expected %s %s at 0x%" PRIx64
                    ", found 0x%" PRIx64,
                    at->table, at->index, expected, zone->name, zone->start, vaddr);
}

static int check_entry(struct elf_relocations *at, const struct zone *array,
                       const struct elf_rela *rela, const struct elf_relocation_type *type) {
  uint64_t offset = rela->r_offset - array->start; /* wraps if it starts before the array */
  if (offset % sizeof(uint64_t) != 0 || type->nbytes != sizeof(uint64_t))
    return refuse_zone(at, array, rela->r_offset, "a whole entry of");
  if (type->kind != ELF_RELOCATES_RELATIVE && type->kind != ELF_RELOCATES_ADDRESS &&
      type->kind != ELF_RELOCATES_RESOLVED)
    return refuse_zone(at, array, rela->r_offset, "RELATIVE, 64 or IRELATIVE for an entry of");
  uint64_t call = array->first_call + offset / sizeof(uint64_t);
  uint8_t bit = (uint8_t)(1u << call % 8);
  if (at->is_relocated[call / 8] & bit)
    return refuse_zone(at, array, rela->r_offset, "one relocation for each entry of");
  at->is_relocated[call / 8] |= bit;
  return check_function(at, rela, type);
}

static bool overlaps(uint64_t start, uint64_t end, uint64_t vaddr, uint64_t nbytes) {
  return vaddr < end && vaddr + nbytes > start;
}

static int check_zones(struct elf_relocations *at, const struct elf_rela *rela,
                       const struct elf_relocation_type *type) {
  for (unsigned i = 0; i < at->num_zones; i++) {
    const struct zone *zone = &at->zones[i];
    if (!overlaps(zone->start, zone->end, rela->r_offset, type->nbytes)) continue;
    if (i >= NUM_ARRAYS) return refuse_zone(at, zone, rela->r_offset, "outside of");
    if (check_entry(at, zone, rela, type) != 0) return -1;
  }
  return 0;
}

int elf_check_write(struct elf_relocations *at, const struct elf_rela *rela,
                    const struct elf_relocation_type *type) {
  if (check_target(at, rela->r_offset, type->nbytes) != 0) return -1;
  if (!overlaps(at->start, at->end, rela->r_offset, type->nbytes)) return 0;
  return check_zones(at, rela, type);
}

bool elf_is_plain_data(struct elf_relocations *at, uint64_t vaddr, uint64_t nbytes) {
  return is_writable(at, vaddr, nbytes) && !overlaps(at->start, at->end, vaddr, nbytes);
}

/* The loader would call an entry that is not relocated at its link-time address. */
int elf_check_calls(struct elf_relocations *at) {
  for (unsigned i = 0; i < NUM_ARRAYS; i++) {
    const struct zone *array = &at->zones[i];
    uint64_t count = (array->end - array->start) / sizeof(uint64_t), found = 0;
    for (uint64_t call = array->first_call; call < array->first_call + count; call++)
      found += at->is_relocated[call / 8] >> call % 8 & 1;
    if (found != count)
      return elf_refuse(at->reader, ELF_MALFORMED,
                        "%s: relocated entries, expected %" PRIu64 ", found %" PRIu64, array->name,
                        count, found);
  }
  return 0;
}

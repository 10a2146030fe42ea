/* The dynamic section: known tags occur once; their names and code are inside the file. */

#include "elf/reader.h"

enum rule {
  ONCE,    /* at most once */
  NAME,    /* an offset into the string table, at most once */
  NAMES,   /* an offset into the string table, any number of times */
  REFUSED, /* makes the loader run or search other code */
  UNUSED,  /* glibc ignores it on 64-bit machines, so its table would be lost */
};

static const struct tag_rule {
  uint64_t tag;
  const char *name;
  enum rule rule;
} tag_rules[] = {
    {DT_NEEDED, "DT_NEEDED", NAMES},
    {DT_SONAME, "DT_SONAME", NAME},
    {DT_RPATH, "DT_RPATH", NAME},
    {DT_RUNPATH, "DT_RUNPATH", NAME},
    {DT_STRTAB, "DT_STRTAB", ONCE},
    {DT_STRSZ, "DT_STRSZ", ONCE},
    {DT_SYMTAB, "DT_SYMTAB", ONCE},
    {DT_SYMENT, "DT_SYMENT", ONCE},
    {DT_HASH, "DT_HASH", ONCE},
    {DT_GNU_HASH, "DT_GNU_HASH", ONCE},
    {DT_RELA, "DT_RELA", ONCE},
    {DT_RELASZ, "DT_RELASZ", ONCE},
    {DT_RELAENT, "DT_RELAENT", ONCE},
    {DT_RELACOUNT, "DT_RELACOUNT", ONCE},
    {DT_REL, "DT_REL", UNUSED},
    {DT_RELR, "DT_RELR", ONCE},
    {DT_RELRSZ, "DT_RELRSZ", ONCE},
    {DT_RELRENT, "DT_RELRENT", ONCE},
    {DT_JMPREL, "DT_JMPREL", ONCE},
    {DT_PLTRELSZ, "DT_PLTRELSZ", ONCE},
    {DT_PLTREL, "DT_PLTREL", ONCE},
    {DT_PLTGOT, "DT_PLTGOT", ONCE},
    {DT_INIT, "DT_INIT", ONCE},
    {DT_FINI, "DT_FINI", ONCE},
    {DT_INIT_ARRAY, "DT_INIT_ARRAY", ONCE},
    {DT_INIT_ARRAYSZ, "DT_INIT_ARRAYSZ", ONCE},
    {DT_FINI_ARRAY, "DT_FINI_ARRAY", ONCE},
    {DT_FINI_ARRAYSZ, "DT_FINI_ARRAYSZ", ONCE},
    {DT_PREINIT_ARRAY, "DT_PREINIT_ARRAY", ONCE},
    {DT_PREINIT_ARRAYSZ, "DT_PREINIT_ARRAYSZ", ONCE},
    {DT_FLAGS, "DT_FLAGS", ONCE},
    {DT_FLAGS_1, "DT_FLAGS_1", ONCE},
    {DT_TEXTREL, "DT_TEXTREL", ONCE},
    {DT_VERSYM, "DT_VERSYM", ONCE},
    {DT_VERDEF, "DT_VERDEF", ONCE},
    {DT_VERDEFNUM, "DT_VERDEFNUM", ONCE},
    {DT_VERNEED, "DT_VERNEED", ONCE},
    {DT_VERNEEDNUM, "DT_VERNEEDNUM", ONCE},
    {DT_AUDIT, "DT_AUDIT", REFUSED},
    {DT_DEPAUDIT, "DT_DEPAUDIT", REFUSED},
    {DT_FILTER, "DT_FILTER", REFUSED},
    {DT_AUXILIARY, "DT_AUXILIARY", REFUSED},
};
enum { NUM_TAG_RULES = sizeof tag_rules / sizeof *tag_rules };
_Static_assert((int)NUM_TAG_RULES <= (int)ELF_MAX_TAGS, "one bit of tag_seen and one value each");

/* Return the row of a tag, or NUM_TAG_RULES for other tags, which glibc and the check skip. */
static unsigned row_of(uint64_t tag) {
  unsigned row = 0;
  while (row < NUM_TAG_RULES && tag_rules[row].tag != tag) row++;
  return row;
}

bool elf_tag(const struct elf_reader *reader, uint64_t tag, uint64_t *value) {
  unsigned row = row_of(tag);
  if (row == NUM_TAG_RULES || !(reader->tag_seen >> row & 1)) return false;
  *value = reader->tag_values[row];
  return true;
}

const char *elf_tag_name(uint64_t tag) {
  unsigned row = row_of(tag);
  return row == NUM_TAG_RULES ? "a dynamic tag" : tag_rules[row].name;
}

int elf_table_at(struct elf_reader *reader, uint64_t tag, uint64_t nbytes,
                 struct elf_table *table) {
  table->name = elf_tag_name(tag);
  table->nbytes = nbytes;
  if (!elf_tag(reader, tag, &table->vaddr)) {
    elf_refuse(reader, ELF_MALFORMED, "dynamic section: %s, expected 1, found none", table->name);
    return -1; /* tells the static analysis that table->bytes is set otherwise */
  }
  table->bytes = elf_bytes(reader, table->vaddr, nbytes);
  /* struct elf_image uses address 0 for "absent"; the ELF header is stored there */
  if (table->bytes != NULL && (table->vaddr != 0 || nbytes == 0)) return 0;
  elf_refuse(reader, ELF_MALFORMED,
             "%s: table, expected inside the file bytes of one readable PT_LOAD, found "
             "0x%" PRIx64 " bytes at address 0x%" PRIx64,
             table->name, nbytes, table->vaddr);
  return -1;
}

static struct elf_dynamic_entry entry_at(const struct elf_reader *reader, uint64_t index) {
  struct elf_dynamic_entry entry;
  memcpy(&entry, reader->file + reader->dynamic.offset + index * sizeof entry, sizeof entry);
  return entry;
}

bool elf_needed(const struct elf_reader *reader, uint64_t *index, uint64_t *name) {
  for (;;) {
    struct elf_dynamic_entry entry = entry_at(reader, *index);
    if (entry.d_tag == DT_NULL) return false;
    ++*index;
    *name = entry.d_val;
    if (entry.d_tag == DT_NEEDED) return true;
  }
}

const char *elf_dynamic_text(const struct elf_image *image, elf_at at, const void *context,
                             uint64_t tag, size_t *index) {
  const uint8_t *entries = at(context, image, image->dynamic);
  struct elf_dynamic_entry entry;
  do {
    memcpy(&entry, entries + *index * sizeof entry, sizeof entry);
    if (entry.d_tag == DT_NULL) return NULL;
    ++*index;
  } while (entry.d_tag != tag);
  return (const char *)at(context, image, image->strtab) + entry.d_val;
}

uint64_t elf_dynamic_value(const struct elf_image *image, elf_at at, const void *context,
                           uint64_t tag) {
  const uint8_t *entries = at(context, image, image->dynamic);
  struct elf_dynamic_entry entry;
  for (;; entries += sizeof entry) {
    memcpy(&entry, entries, sizeof entry);
    if (entry.d_tag == DT_NULL) return 0;
    if (entry.d_tag == tag) return entry.d_val;
  }
}

int elf_needs(const struct elf_image *image, elf_at at, const void *context, const char *prefix) {
  const char *path;
  for (size_t i = 0; (path = elf_dynamic_text(image, at, context, DT_NEEDED, &i)) != NULL;) {
    const char *slash = strrchr(path, '/');
    if (strncmp(slash != NULL ? slash + 1 : path, prefix, strlen(prefix)) == 0) return 1;
  }
  return 0;
}

static int collect(struct elf_reader *reader, const struct elf_dynamic_entry *entry,
                   uint64_t index) {
  unsigned row = row_of(entry->d_tag);
  if (row == NUM_TAG_RULES) return 0;
  const struct tag_rule *rule = &tag_rules[row];
  if (rule->rule == REFUSED)
    return elf_refuse(reader, ELF_POLICY,
                      "dynamic section: %s at entry %" PRIu64
                      " makes the loader use another object's code; link without it",
                      rule->name, index);
  if (rule->rule == UNUSED)
    return elf_refuse(reader, ELF_MALFORMED,
                      "dynamic section: %s at entry %" PRIu64 ", expected DT_RELA instead",
                      rule->name, index);
  if ((reader->tag_seen >> row & 1) && rule->rule != NAMES)
    return elf_refuse(reader, ELF_MALFORMED,
                      "dynamic section: %s, expected 1, found another at entry %" PRIu64,
                      rule->name, index);
  reader->tag_seen |= UINT64_C(1) << row;
  reader->tag_values[row] = entry->d_val;
  return 0;
}

static int collect_all(struct elf_reader *reader) {
  uint64_t count = reader->dynamic.filesz / sizeof(struct elf_dynamic_entry);
  for (uint64_t i = 0; i < count; i++) {
    struct elf_dynamic_entry entry = entry_at(reader, i);
    if (entry.d_tag == DT_NULL) return 0;
    if (collect(reader, &entry, i) != 0) return -1;
  }
  return elf_refuse(
      reader, ELF_MALFORMED,
      "dynamic section: DT_NULL, expected as the last of %" PRIu64 " entries, found none", count);
}

/* glibc reads names by pointer and ignores DT_STRSZ; a NUL as the last byte bounds them all. */
static int check_strings(struct elf_reader *reader) {
  struct elf_table strings;
  uint64_t nbytes;
  if (!elf_tag(reader, DT_STRSZ, &nbytes))
    return elf_refuse(reader, ELF_MALFORMED, "dynamic section: DT_STRSZ, expected 1, found none");
  if (elf_table_at(reader, DT_STRTAB, nbytes, &strings) != 0) return -1;
  if (nbytes == 0 || strings.bytes[nbytes - 1] != 0)
    return elf_refuse(reader, ELF_MALFORMED,
                      "DT_STRTAB: string table of 0x%" PRIx64
                      " bytes, expected a NUL as its last byte, found none",
                      nbytes);
  reader->image->strtab = strings.vaddr;
  reader->image->strsz = nbytes;
  return 0;
}

static int check_names(struct elf_reader *reader) {
  for (uint64_t i = 0;; i++) {
    struct elf_dynamic_entry entry = entry_at(reader, i);
    if (entry.d_tag == DT_NULL) return 0;
    unsigned row = row_of(entry.d_tag);
    if (row == NUM_TAG_RULES || (tag_rules[row].rule != NAME && tag_rules[row].rule != NAMES))
      continue;
    if (entry.d_val >= reader->image->strsz)
      return elf_refuse(reader, ELF_MALFORMED,
                        "dynamic section: %s at entry %" PRIu64
                        ", expected a name offset below 0x%" PRIx64 ", found 0x%" PRIx64,
                        tag_rules[row].name, i, reader->image->strsz, entry.d_val);
  }
}

static int check_flags(struct elf_reader *reader) {
  uint64_t value, flags = 0, flags_1 = 0;
  elf_tag(reader, DT_FLAGS, &flags);
  elf_tag(reader, DT_FLAGS_1, &flags_1);
  if (elf_tag(reader, DT_TEXTREL, &value) || (flags & DF_TEXTREL))
    return elf_refuse(reader, ELF_POLICY,
                      "dynamic section: DT_TEXTREL, expected none, since relocations would write "
                      "to code; compile with -fPIC");
  if (flags_1 & DF_1_PIE)
    return elf_refuse(reader, ELF_FORMAT,
                      "dynamic section: not an ELF shared object, found a position-independent "
                      "executable (DF_1_PIE); link with -shared instead");
  return 0;
}

/* If the first tag of a pair is present, glibc reads the second without checking that it exists. */
static const struct {
  uint64_t tag, wanted;
} tag_pairs[] = {
    {DT_RELA, DT_RELASZ},
    {DT_RELASZ, DT_RELA},
    {DT_RELA, DT_RELAENT},
    {DT_RELR, DT_RELRSZ},
    {DT_RELRSZ, DT_RELR},
    {DT_RELR, DT_RELRENT},
    {DT_JMPREL, DT_PLTRELSZ},
    {DT_PLTRELSZ, DT_JMPREL},
    {DT_JMPREL, DT_PLTREL},
    {DT_VERNEED, DT_VERSYM},
    {DT_VERDEF, DT_VERSYM},
    {DT_INIT_ARRAY, DT_INIT_ARRAYSZ},
    {DT_INIT_ARRAYSZ, DT_INIT_ARRAY},
    {DT_FINI_ARRAY, DT_FINI_ARRAYSZ},
    {DT_FINI_ARRAYSZ, DT_FINI_ARRAY},
    {DT_PREINIT_ARRAY, DT_PREINIT_ARRAYSZ},
};

static int check_pairs(struct elf_reader *reader) {
  uint64_t value;
  for (size_t i = 0; i < sizeof tag_pairs / sizeof *tag_pairs; i++)
    if (elf_tag(reader, tag_pairs[i].tag, &value) && !elf_tag(reader, tag_pairs[i].wanted, &value))
      return elf_refuse(reader, ELF_MALFORMED,
                        "dynamic section: %s, expected beside %s, found none",
                        elf_tag_name(tag_pairs[i].wanted), elf_tag_name(tag_pairs[i].tag));
  return 0;
}

/* The loader calls DT_INIT and DT_FINI at the address in the tag. */
static int check_code(struct elf_reader *reader, uint64_t tag) {
  uint64_t vaddr;
  if (!elf_tag(reader, tag, &vaddr)) return 0;
  const struct elf_segment *load = elf_segment_of(reader->image, vaddr, 1);
  if (load != NULL && (load->flags & PF_X)) return 0;
  return elf_refuse(reader, ELF_MALFORMED,
                    "%s: address, expected in an executable segment, found 0x%" PRIx64,
                    elf_tag_name(tag), vaddr);
}

static int check_array(struct elf_reader *reader, uint64_t tag, uint64_t size_tag) {
  uint64_t vaddr, nbytes = 0;
  if (!elf_tag(reader, tag, &vaddr)) return 0;
  elf_tag(reader, size_tag, &nbytes);
  if (nbytes % sizeof(uint64_t) != 0)
    return elf_refuse(reader, ELF_MALFORMED, "%s: size, expected a multiple of 8, found 0x%" PRIx64,
                      elf_tag_name(size_tag), nbytes);
  struct elf_table table;
  return elf_table_at(reader, tag, nbytes, &table);
}

int elf_check_dynamic(struct elf_reader *reader) {
  reader->image->dynamic = reader->dynamic.vaddr;
  if (collect_all(reader) != 0 || check_strings(reader) != 0 || check_names(reader) != 0) return -1;
  if (check_flags(reader) != 0 || check_pairs(reader) != 0) return -1;
  if (check_code(reader, DT_INIT) != 0 || check_code(reader, DT_FINI) != 0) return -1;
  if (check_array(reader, DT_INIT_ARRAY, DT_INIT_ARRAYSZ) != 0) return -1;
  if (check_array(reader, DT_FINI_ARRAY, DT_FINI_ARRAYSZ) != 0) return -1;
  return check_array(reader, DT_PREINIT_ARRAY, DT_PREINIT_ARRAYSZ);
}

/* Symbol versions (GNU): linked lists that the loader follows without a bound. */

#include "elf/reader.h"

enum { MIN_STEPS = 1 << 20 };

struct versions {
  struct elf_reader *reader;
  const char *table;
  uint64_t steps;   /* entries and characters that may still be read; linear in the file's size */
  uint16_t highest; /* the highest version index that is defined or needed */
};

static int copy_entry(struct versions *at, uint64_t vaddr, void *entry, uint64_t nbytes) {
  const uint8_t *bytes = elf_bytes(at->reader, vaddr, nbytes);
  if (bytes == NULL || at->steps-- == 0) {
    elf_refuse(at->reader, ELF_MALFORMED,
               "%s: version entry, expected inside the file bytes of one PT_LOAD, not "
               "read before, found one at 0x%" PRIx64,
               at->table, vaddr);
    return -1; /* tells the static analysis that *entry is set otherwise */
  }
  memcpy(entry, bytes, nbytes);
  return 0;
}

static int check_name(struct versions *at, uint32_t name) {
  if (name < at->reader->image->strsz) return 0;
  return elf_refuse(at->reader, ELF_MALFORMED,
                    "%s: version name, expected an offset below 0x%" PRIx64 ", found 0x%" PRIx32,
                    at->table, at->reader->image->strsz, name);
}

/* Each compared character counts as a step, so that no choice of names makes this slow. */
static bool same_name(struct versions *at, uint64_t a, uint64_t b) {
  const uint8_t *strings =
      elf_bytes(at->reader, at->reader->image->strtab, at->reader->image->strsz);
  for (; at->steps > 0 && strings[a] == strings[b]; at->steps--, a++, b++)
    if (strings[a] == 0 || a == b) return true;
  return false;
}

/* glibc asserts that the file of a needed version is loaded. */
static int check_file(struct versions *at, uint32_t file) {
  uint64_t name;
  for (uint64_t i = 0, last = 0; elf_needed(at->reader, &i, &name) && at->steps > i - last;
       last = i) {
    at->steps -= i - last;
    if (name == file || same_name(at, name, file)) return 0;
  }
  return elf_refuse(at->reader, ELF_MALFORMED,
                    "%s: file of a needed version, expected a name of DT_NEEDED, found the "
                    "name at 0x%" PRIx32,
                    at->table, file);
}

static void raise_highest(struct versions *at, uint16_t index) {
  index &= VERSION_INDEX;
  if (index > at->highest) at->highest = index;
}

static int check_needed_by_one(struct versions *at, uint64_t vaddr) {
  struct elf_vernaux needed;
  do {
    if (copy_entry(at, vaddr, &needed, sizeof needed) != 0) return -1;
    if (check_name(at, needed.vna_name) != 0) return -1;
    raise_highest(at, needed.vna_other);
    vaddr += needed.vna_next;
  } while (needed.vna_next != 0);
  return 0;
}

static int check_needed(struct versions *at, uint64_t vaddr) {
  struct elf_verneed file;
  do {
    if (copy_entry(at, vaddr, &file, sizeof file) != 0) return -1;
    if (check_name(at, file.vn_file) != 0 || check_file(at, file.vn_file) != 0) return -1;
    if (check_needed_by_one(at, vaddr + file.vn_aux) != 0) return -1;
    vaddr += file.vn_next;
  } while (file.vn_next != 0);
  return 0;
}

/* Only the first verdaux names the version; glibc never reads the parents after it. */
static int check_defined(struct versions *at, uint64_t vaddr) {
  struct elf_verdef version;
  struct elf_verdaux name;
  do {
    if (copy_entry(at, vaddr, &version, sizeof version) != 0) return -1;
    if (copy_entry(at, vaddr + version.vd_aux, &name, sizeof name) != 0) return -1;
    if (check_name(at, name.vda_name) != 0) return -1;
    raise_highest(at, version.vd_ndx);
    vaddr += version.vd_next;
  } while (version.vd_next != 0);
  return 0;
}

static int check_list(struct versions *at, uint64_t tag,
                      int (*check)(struct versions *, uint64_t)) {
  uint64_t vaddr;
  if (!elf_tag(at->reader, tag, &vaddr)) return 0;
  at->table = elf_tag_name(tag);
  at->steps = at->reader->nbytes + MIN_STEPS;
  return check(at, vaddr);
}

/* glibc uses these as indexes into an array of highest + 1 versions, NULL if the highest is 0. */
static int check_indexes(struct versions *at) {
  struct elf_table table;
  uint64_t vaddr, count = at->reader->image->num_symbols;
  if (!elf_tag(at->reader, DT_VERSYM, &vaddr)) return 0;
  if (elf_table_at(at->reader, DT_VERSYM, count * sizeof(uint16_t), &table) != 0) return -1;
  for (uint64_t i = 0; i < count; i++) {
    uint16_t index;
    memcpy(&index, table.bytes + i * sizeof index, sizeof index);
    if ((index & VERSION_INDEX) > at->highest)
      return elf_refuse(at->reader, ELF_MALFORMED,
                        "DT_VERSYM: version of symbol %" PRIu64 ", expected at most %u, found %u",
                        i, at->highest, index & VERSION_INDEX);
  }
  return 0;
}

int elf_check_versions(struct elf_reader *reader) {
  struct versions at = {.reader = reader};
  if (check_list(&at, DT_VERNEED, check_needed) != 0) return -1;
  if (check_list(&at, DT_VERDEF, check_defined) != 0) return -1;
  return check_indexes(&at);
}

/* The hash tables: the number of symbols, and the end of every chain.
 *
 * No field stores the number of dynamic symbols. It follows from DT_GNU_HASH (the last chain ends
 * at the last symbol) or DT_HASH (one chain word per symbol). */

#include "elf/hash.h"

static uint64_t gnu_fixed_size(const struct elf_gnu_hash *header) {
  return sizeof *header + UINT64_C(8) * header->bloom_size + UINT64_C(4) * header->num_buckets;
}

/* glibc divides by num_buckets, asserts on bloom_size and shifts by bloom_shift. */
static int check_gnu_header(struct elf_reader *reader, const struct elf_gnu_hash *header) {
  uint32_t words = header->bloom_size;
  if (header->num_buckets != 0 && words != 0 && (words & (words - 1)) == 0 &&
      header->bloom_shift < 32)
    return 0;
  return elf_refuse(reader, ELF_MALFORMED,
                    "DT_GNU_HASH: header, expected buckets, a power of two of bloom words and a "
                    "shift below 32, found %" PRIu32 ", %" PRIu32 " and %" PRIu32,
                    header->num_buckets, words, header->bloom_shift);
}

static int last_bucket(struct elf_reader *reader, const struct elf_gnu_table *table,
                       uint32_t *last) {
  *last = 0;
  for (uint32_t i = 0; i < table->header.num_buckets; i++) {
    uint32_t index = elf_u32(table->buckets, i);
    if (index != 0 && index < table->header.symbol_offset)
      return elf_refuse(reader, ELF_MALFORMED,
                        "DT_GNU_HASH: bucket %" PRIu32
                        ", expected 0 or a symbol index from %" PRIu32 ", found %" PRIu32,
                        i, table->header.symbol_offset, index);
    if (index > *last) *last = index;
  }
  return 0;
}

/* The chain of the highest bucket ends last. */
static int count_chained(struct elf_reader *reader, const struct elf_gnu_table *table,
                         uint64_t num_words, uint32_t last) {
  uint64_t word = last - table->header.symbol_offset;
  while (word < num_words && !(elf_u32(table->chains, word) & 1)) word++;
  if (word >= num_words)
    return elf_refuse(reader, ELF_MALFORMED,
                      "DT_GNU_HASH: chain of symbol %" PRIu32
                      ", expected to end in its segment, found no end",
                      last);
  reader->image->num_symbols = word + table->header.symbol_offset + 1;
  reader->gnu_hash_nbytes += 4 * (word + 1);
  reader->num_symbols_exact = true;
  return 0;
}

static int check_gnu_hash(struct elf_reader *reader) {
  struct elf_table bytes;
  struct elf_gnu_hash header;
  if (elf_table_at(reader, DT_GNU_HASH, sizeof header, &bytes) != 0) return -1;
  memcpy(&header, bytes.bytes, sizeof header);
  if (check_gnu_header(reader, &header) != 0) return -1;
  if (elf_table_at(reader, DT_GNU_HASH, gnu_fixed_size(&header), &bytes) != 0) return -1;
  struct elf_gnu_table table = elf_gnu_table_at(bytes.bytes);
  reader->image->gnu_hash = bytes.vaddr;
  reader->gnu_hash_nbytes = bytes.nbytes;
  reader->image->num_symbols = header.symbol_offset;
  uint32_t last;
  if (last_bucket(reader, &table, &last) != 0) return -1;
  if (last == 0) return 0;
  const struct elf_segment *load = elf_segment_of(reader->image, bytes.vaddr, bytes.nbytes);
  uint64_t left = load->filesz - (bytes.vaddr - load->vaddr) - bytes.nbytes;
  return count_chained(reader, &table, left / 4, last);
}

/* A bucket's chain ends in index 0. Each symbol is on one chain at most, so more than num_chains
 * steps in total mean a cycle. */
static int check_sysv_chains(struct elf_reader *reader, const uint8_t *buckets,
                             const struct elf_sysv_hash *header) {
  const uint8_t *chains = buckets + UINT64_C(4) * header->num_buckets;
  uint64_t steps = 0;
  for (uint32_t i = 0; i < header->num_buckets; i++) {
    for (uint32_t index = elf_u32(buckets, i); index != 0; index = elf_u32(chains, index)) {
      if (index >= header->num_chains)
        return elf_refuse(reader, ELF_MALFORMED,
                          "DT_HASH: bucket %" PRIu32 ", expected symbol indexes below %" PRIu32
                          ", found %" PRIu32,
                          i, header->num_chains, index);
      if (++steps > header->num_chains)
        return elf_refuse(
            reader, ELF_MALFORMED,
            "DT_HASH: bucket %" PRIu32 ", expected each symbol on one chain, found a cycle", i);
    }
  }
  return 0;
}

static int check_sysv_hash(struct elf_reader *reader) {
  struct elf_table table;
  struct elf_sysv_hash header;
  if (elf_table_at(reader, DT_HASH, sizeof header, &table) != 0) return -1;
  memcpy(&header, table.bytes, sizeof header);
  if (header.num_buckets == 0)
    return elf_refuse(reader, ELF_MALFORMED,
                      "DT_HASH: number of buckets, expected at least 1, found 0");
  uint64_t nbytes =
      sizeof header + UINT64_C(4) * header.num_buckets + UINT64_C(4) * header.num_chains;
  if (elf_table_at(reader, DT_HASH, nbytes, &table) != 0) return -1;
  if (check_sysv_chains(reader, table.bytes + sizeof header, &header) != 0) return -1;
  if (reader->num_symbols_exact ? header.num_chains != reader->image->num_symbols
                                : header.num_chains < reader->image->num_symbols)
    return elf_refuse(reader, ELF_MALFORMED,
                      "DT_HASH: number of symbols, expected %" PRIu64
                      " as in DT_GNU_HASH, found %" PRIu32,
                      reader->image->num_symbols, header.num_chains);
  reader->image->sysv_hash = table.vaddr;
  reader->sysv_hash_nbytes = table.nbytes;
  reader->image->num_symbols = header.num_chains;
  reader->num_symbols_exact = true;
  return 0;
}

static int locate_symbols(struct elf_reader *reader) {
  struct elf_table table;
  uint64_t entry_size = 0, size = sizeof(struct elf_symbol_entry);
  if (!elf_tag(reader, DT_SYMENT, &entry_size) || entry_size != size)
    return elf_refuse(reader, ELF_MALFORMED,
                      "dynamic section: DT_SYMENT, expected 0x%" PRIx64 ", found 0x%" PRIx64, size,
                      entry_size);
  if (elf_table_at(reader, DT_SYMTAB, reader->image->num_symbols * size, &table) != 0) return -1;
  reader->image->symtab = table.vaddr;
  return 0;
}

int elf_check_hash(struct elf_reader *reader) {
  uint64_t value;
  bool gnu = elf_tag(reader, DT_GNU_HASH, &value), sysv = elf_tag(reader, DT_HASH, &value);
  if (!gnu && !sysv)
    return elf_refuse(reader, ELF_MALFORMED,
                      "dynamic section: hash table, expected DT_GNU_HASH or DT_HASH, found "
                      "neither");
  if (gnu && check_gnu_hash(reader) != 0) return -1;
  if (sysv && check_sysv_hash(reader) != 0) return -1;
  return locate_symbols(reader);
}

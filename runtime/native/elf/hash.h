/* The layout of the GNU hash table, and the two hash functions. */
#pragma once

#include "elf/reader.h"

/* Pointers to the arrays of a GNU hash table with a valid header. */
struct elf_gnu_table {
  struct elf_gnu_hash header;
  const uint8_t *bloom, *buckets, *chains;
};

static inline struct elf_gnu_table elf_gnu_table_at(const uint8_t *bytes) {
  struct elf_gnu_table table;
  memcpy(&table.header, bytes, sizeof table.header);
  table.bloom = bytes + sizeof table.header;
  table.buckets = table.bloom + UINT64_C(8) * table.header.bloom_size;
  table.chains = table.buckets + UINT64_C(4) * table.header.num_buckets;
  return table;
}

/* True if the Bloom filter lets a hash pass; glibc searches no further otherwise. */
static inline bool elf_gnu_may_have(const struct elf_gnu_table *table, uint32_t hash) {
  uint64_t bloom = elf_u64(table->bloom, hash / 64 & (table->header.bloom_size - 1));
  return bloom >> hash % 64 & bloom >> (hash >> table->header.bloom_shift) % 64 & 1;
}

/* glibc, elf/dl-new-hash.h */
static inline uint32_t elf_gnu_hash_of(const char *name) {
  uint32_t hash = 5381;
  for (const uint8_t *c = (const uint8_t *)name; *c != 0; c++) hash = hash * 33 + *c;
  return hash;
}

/* gABI, Hash Table */
static inline uint32_t elf_sysv_hash_of(const char *name) {
  uint32_t hash = 0;
  for (const uint8_t *c = (const uint8_t *)name; *c != 0; c++) {
    hash = (hash << 4) + *c;
    hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
  }
  return hash;
}

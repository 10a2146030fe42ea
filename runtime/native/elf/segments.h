/* Shared by segments.c (PT_LOAD) and other_segments.c (the other program headers). */
#pragma once

#include "elf/reader.h"

static inline uint64_t elf_page_floor(uint64_t address) {
  return address & ~(uint64_t)(ELF_PAGE - 1);
}
static inline uint64_t elf_page_ceil(uint64_t address) {
  return elf_page_floor(address + (ELF_PAGE - 1));
}

static inline struct elf_segment elf_segment_from(const struct elf_program_header *header) {
  return (struct elf_segment){.vaddr = header->p_vaddr,
                              .memsz = header->p_memsz,
                              .offset = header->p_offset,
                              .filesz = header->p_filesz,
                              .flags = header->p_flags};
}

/* Check that a header's file bytes are in the file, and its addresses below 2^47. */
int elf_check_extent(struct elf_reader *reader, unsigned index,
                     const struct elf_program_header *header);

/* Check a program header other than PT_LOAD, after all PT_LOADs. */
int elf_check_other_segment(struct elf_reader *reader, unsigned index,
                            const struct elf_program_header *header);

/* The section headers. The loader ignores them but inspectors read them, so both must see the same
 * symbols.
 *
 * They may be absent. Only the first ELF_MAX_HEADERS are read; linkers put the dynamic sections
 * first. Nothing is decompressed. */

#include "elf/reader.h"

static struct elf_section_header section_at(const struct elf_reader *reader, uint64_t index) {
  struct elf_section_header section;
  memcpy(&section, reader->file + reader->header.e_shoff + index * sizeof section, sizeof section);
  return section;
}

static int refuse_table(struct elf_reader *reader, uint64_t count) {
  return elf_refuse(reader, ELF_TRUNCATED,
                    "ELF header: section header table at 0x%" PRIx64
                    ", expected inside the file of 0x%" PRIx64 " bytes, found %" PRIu64 " entries",
                    reader->header.e_shoff, reader->nbytes, count);
}

/* gABI, ELF Header: from SHN_LORESERVE sections on, e_shnum is 0 and section 0 stores the
 * number. */
static int count_sections(struct elf_reader *reader, uint64_t *count) {
  const struct elf_header *header = &reader->header;
  uint64_t size = sizeof(struct elf_section_header);
  if (header->e_shentsize != size)
    return elf_refuse(reader, ELF_MALFORMED,
                      "ELF header: e_shentsize, expected %" PRIu64 ", found %u", size,
                      header->e_shentsize);
  if (header->e_shoff < sizeof *header)
    return elf_refuse(reader, ELF_MALFORMED,
                      "ELF header: e_shoff, expected 0x%zx or more for %u sections, found "
                      "0x%" PRIx64,
                      sizeof *header, header->e_shnum, header->e_shoff);
  *count = header->e_shnum;
  if (*count == 0) {
    if (!elf_within(header->e_shoff, size, reader->nbytes)) return refuse_table(reader, 1);
    *count = section_at(reader, 0).sh_size;
    if (*count < SHN_LORESERVE)
      return elf_refuse(reader, ELF_MALFORMED,
                        "section 0: sh_size with e_shnum 0, expected the number of sections, at "
                        "least 0x%x, found 0x%" PRIx64,
                        SHN_LORESERVE, *count);
  }
  if (*count > reader->nbytes / size || !elf_within(header->e_shoff, *count * size, reader->nbytes))
    return refuse_table(reader, *count);
  return 0;
}

static uint64_t names_index(const struct elf_reader *reader) {
  uint64_t index = reader->header.e_shstrndx;
  return index == SHN_XINDEX ? section_at(reader, 0).sh_link : index;
}

static int check_names_index(struct elf_reader *reader, uint64_t count) {
  uint64_t index = names_index(reader);
  if (index < count) return 0;
  return elf_refuse(reader, ELF_MALFORMED,
                    "ELF header: e_shstrndx, expected below %" PRIu64 ", found %" PRIu64, count,
                    index);
}

static int check_contents(struct elf_reader *reader, uint64_t index,
                          const struct elf_section_header *section) {
  if (section->sh_type == SHT_NULL || section->sh_type == SHT_NOBITS ||
      elf_within(section->sh_offset, section->sh_size, reader->nbytes))
    return 0;
  return elf_refuse(reader, ELF_TRUNCATED,
                    "section %" PRIu64 ": contents, expected inside the file of 0x%" PRIx64
                    " bytes, found 0x%" PRIx64 " bytes at 0x%" PRIx64,
                    index, reader->nbytes, section->sh_size, section->sh_offset);
}

/* A section and the table of the dynamic section must be the same bytes. */
static int check_same(struct elf_reader *reader, uint64_t index,
                      const struct elf_section_header *section, const char *name, uint64_t vaddr,
                      uint64_t nbytes) {
  const uint8_t *bytes = elf_bytes(reader, vaddr, nbytes);
  if (section->sh_addr == vaddr && section->sh_size == nbytes && bytes != NULL &&
      (uint64_t)(bytes - reader->file) == section->sh_offset)
    return 0;
  return elf_refuse(
      reader, ELF_MALFORMED,
      "section %" PRIu64 ": differs from %s, expected 0x%" PRIx64 " bytes at address 0x%" PRIx64
      ", found 0x%" PRIx64 " at 0x%" PRIx64 " (offset 0x%" PRIx64 ")",
      index, name, nbytes, vaddr, section->sh_size, section->sh_addr, section->sh_offset);
}

/* The loader maps the section's bytes at the section's address. */
static int check_mapped(struct elf_reader *reader, uint64_t index,
                        const struct elf_section_header *section) {
  bool bits = section->sh_type != SHT_NOBITS;
  if (!(section->sh_flags & SHF_ALLOC) || section->sh_size == 0) return 0;
  if (!bits && (section->sh_flags & SHF_TLS)) return 0; /* .tbss occupies no memory in a segment */
  const struct elf_segment *load =
      bits ? elf_segment_of(reader->image, section->sh_addr, section->sh_size)
           : elf_memory_of(reader->image, section->sh_addr, section->sh_size);
  if (load != NULL &&
      (!bits || load->offset + (section->sh_addr - load->vaddr) == section->sh_offset))
    return 0;
  return elf_refuse(reader, ELF_MALFORMED,
                    "section %" PRIu64 ": address, expected inside one PT_LOAD, at the same file "
                    "offset, found 0x%" PRIx64 " bytes at address 0x%" PRIx64 ", offset 0x%" PRIx64,
                    index, section->sh_size, section->sh_addr, section->sh_offset);
}

static bool has_name(const struct elf_reader *reader, const struct elf_section_header *section,
                     const char *name) {
  struct elf_section_header names = section_at(reader, names_index(reader));
  size_t length = strlen(name) + 1;
  return elf_within(names.sh_offset, names.sh_size, reader->nbytes) &&
         elf_within(section->sh_name, length, names.sh_size) &&
         memcmp(reader->file + names.sh_offset + section->sh_name, name, length) == 0;
}

/* PT_GNU_RELRO makes pages read-only, so it must not contain variables. */
static int check_relro(struct elf_reader *reader, uint64_t index,
                       const struct elf_section_header *section) {
  static const char *const variables[] = {".data", ".bss", ".sdata", ".sbss", ".ldata", ".lbss"};
  const struct elf_image *image = reader->image;
  if (!(section->sh_flags & SHF_ALLOC) || section->sh_addr >= image->relro_end ||
      section->sh_addr + section->sh_size <= image->relro_start)
    return 0;
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
    if (has_name(reader, section, variables[i]))
      return elf_refuse(reader, ELF_MALFORMED,
                        "section %" PRIu64 ": %s, expected outside of PT_GNU_RELRO 0x%" PRIx64
                        " to 0x%" PRIx64 ", found at 0x%" PRIx64,
                        index, variables[i], image->relro_start, image->relro_end,
                        section->sh_addr);
  return 0;
}

/* If no symbol is hashed, the section gives the number of symbols. */
static uint64_t symbols_size(const struct elf_reader *reader,
                             const struct elf_section_header *section) {
  uint64_t nbytes = reader->image->num_symbols * sizeof(struct elf_symbol_entry);
  return !reader->num_symbols_exact && section->sh_size > nbytes ? section->sh_size : nbytes;
}

static int check_symbol_section(struct elf_reader *reader, uint64_t index, uint64_t count,
                                const struct elf_section_header *section) {
  const struct elf_image *image = reader->image;
  if (check_same(reader, index, section, "DT_SYMTAB", image->symtab,
                 symbols_size(reader, section)) != 0)
    return -1;
  if (section->sh_entsize != sizeof(struct elf_symbol_entry) || section->sh_link >= count)
    return elf_refuse(reader, ELF_MALFORMED,
                      "section %" PRIu64 ": sh_entsize and sh_link, expected %zu and an index "
                      "below %" PRIu64 ", found %" PRIu64 " and %" PRIu32,
                      index, sizeof(struct elf_symbol_entry), count, section->sh_entsize,
                      section->sh_link);
  struct elf_section_header strings = section_at(reader, section->sh_link);
  return check_same(reader, section->sh_link, &strings, "DT_STRTAB", image->strtab, image->strsz);
}

static int check_section(struct elf_reader *reader, uint64_t index, uint64_t count) {
  struct elf_section_header section = section_at(reader, index);
  if (check_contents(reader, index, &section) != 0) return -1;
  if (check_mapped(reader, index, &section) != 0) return -1;
  if (check_relro(reader, index, &section) != 0) return -1;
  switch (section.sh_type) {
    case SHT_DYNSYM: return check_symbol_section(reader, index, count, &section);
    case SHT_DYNAMIC:
      return check_same(reader, index, &section, "PT_DYNAMIC", reader->dynamic.vaddr,
                        reader->dynamic.filesz);
    default: return 0;
  }
}

int elf_check_sections(struct elf_reader *reader) {
  uint64_t count = 0;
  if (reader->header.e_shoff == 0 && reader->header.e_shnum == 0) return 0;
  if (count_sections(reader, &count) != 0 || check_names_index(reader, count) != 0) return -1;
  uint64_t limit = count < ELF_MAX_HEADERS ? count : ELF_MAX_HEADERS;
  for (uint64_t i = 0; i < limit; i++)
    if (check_section(reader, i, count) != 0) return -1;
  return 0;
}

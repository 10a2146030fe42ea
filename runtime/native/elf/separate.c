/* Data in a separate segment, to which only its symbol refers. */
#include "elf/separate.h"

#include "elf/reader.h"

static const char SECTION[] = ".packer.blob";

struct object {
  const uint8_t *file;
  uint64_t nbytes;
  const struct elf_image *image;
  struct elf_header header;
  struct elf_segment segment; /* that contains the data */
};

static bool overlap(uint64_t a, uint64_t a_nbytes, uint64_t b, uint64_t b_nbytes) {
  return a < b + b_nbytes && b < a + a_nbytes;
}

static bool is_in_segment(const struct object *self, uint64_t address) {
  return address >= self->segment.vaddr && address - self->segment.vaddr < self->segment.memsz;
}

/* ---- Program headers and sections */

/* No other program header has bytes of the segment, in the file or in memory. */
static bool is_alone(const struct object *self) {
  unsigned num_same = 0;
  for (unsigned i = 0; i < self->header.e_phnum; i++) {
    struct elf_program_header at;
    memcpy(&at, self->file + self->header.e_phoff + i * sizeof at, sizeof at);
    if (at.p_type == PT_LOAD && at.p_vaddr == self->segment.vaddr) num_same++;
    else if (overlap(at.p_offset, at.p_filesz, self->segment.offset, self->segment.filesz) ||
             overlap(at.p_vaddr, at.p_memsz, self->segment.vaddr, self->segment.memsz))
      return false;
  }
  return num_same == 1;
}

static struct elf_section_header section_at(const struct object *self, uint64_t index) {
  struct elf_section_header section;
  memcpy(&section, self->file + self->header.e_shoff + index * sizeof section, sizeof section);
  return section;
}

static bool has_name(const struct object *self, const struct elf_section_header *section) {
  struct elf_section_header names = section_at(self, self->header.e_shstrndx);
  return elf_within(names.sh_offset, names.sh_size, self->nbytes) &&
         elf_within(section->sh_name, sizeof SECTION, names.sh_size) &&
         memcmp(self->file + names.sh_offset + section->sh_name, SECTION, sizeof SECTION) == 0;
}

/* Without this mark the linker may have resolved references of the code to the data. */
static bool has_section(const struct object *self) {
  uint64_t count = self->header.e_shnum;
  if (count > ELF_MAX_HEADERS || self->header.e_shstrndx >= count ||
      !elf_within(self->header.e_shoff, count * sizeof(struct elf_section_header), self->nbytes))
    return false;
  for (uint64_t i = 0; i < count; i++) {
    struct elf_section_header section = section_at(self, i);
    if (section.sh_addr == self->segment.vaddr && section.sh_offset == self->segment.offset &&
        section.sh_size == self->segment.filesz && has_name(self, &section))
      return true;
  }
  return false;
}

/* ---- Symbols and relocations */

static bool shares_no_symbol(const struct object *self, const struct elf_symbol *symbol) {
  unsigned num_same = 0;
  for (uint64_t i = 1; i < self->image->num_symbols; i++) {
    struct elf_symbol other;
    (void)elf_symbol_at(self->image, elf_at_file, self->file, i, &other);
    uint64_t nbytes = other.size > 0 ? other.size : 1;
    bool is_data = other.section != SHN_UNDEF && other.type != STT_SECTION;
    if (is_data && overlap(other.value, nbytes, symbol->value, symbol->size)) num_same++;
  }
  return num_same == 1;
}

static uint64_t tag(const struct object *self, uint64_t wanted) {
  return elf_dynamic_value(self->image, elf_at_file, self->file, wanted);
}

static bool refers(const struct object *self, const struct elf_rela *rela) {
  uint64_t index = rela->r_info >> 32;
  struct elf_symbol symbol = {.value = 0};
  if (is_in_segment(self, rela->r_offset)) return true;
  if (index == 0) return is_in_segment(self, rela->r_addend);
  if (index >= self->image->num_symbols) return true;
  (void)elf_symbol_at(self->image, elf_at_file, self->file, index, &symbol);
  return symbol.section != SHN_UNDEF &&
         (is_in_segment(self, symbol.value) || is_in_segment(self, symbol.value + rela->r_addend));
}

static bool any_refers(const struct object *self, uint64_t table_tag, uint64_t size_tag) {
  uint64_t vaddr = tag(self, table_tag), count = tag(self, size_tag) / sizeof(struct elf_rela);
  const uint8_t *table = elf_at_file(self->file, self->image, vaddr);
  for (uint64_t i = 0; vaddr != 0 && i < count; i++) {
    struct elf_rela rela;
    memcpy(&rela, table + i * sizeof rela, sizeof rela);
    if (refers(self, &rela)) return true;
  }
  return false;
}

static bool word_refers(const struct object *self, uint64_t vaddr) {
  if (is_in_segment(self, vaddr)) return true;
  if (elf_segment_of(self->image, vaddr, sizeof vaddr) == NULL) return false; /* .bss: 0 */
  return is_in_segment(self, elf_u64(elf_at_file(self->file, self->image, vaddr), 0));
}

/* gABI, Relocation Table: an odd entry is a bitmap of the 63 words that follow. */
static bool any_word_refers(const struct object *self) {
  uint64_t vaddr = tag(self, DT_RELR), count = tag(self, DT_RELRSZ) / sizeof(uint64_t), next = 0;
  const uint8_t *table = elf_at_file(self->file, self->image, vaddr);
  for (uint64_t i = 0; vaddr != 0 && i < count; i++) {
    uint64_t entry = elf_u64(table, i);
    if ((entry & 1) == 0) {
      if (word_refers(self, entry)) return true;
      next = entry + sizeof entry;
      continue;
    }
    uint64_t at = next;
    for (uint64_t bits = entry >> 1; bits != 0; bits >>= 1, at += sizeof entry)
      if ((bits & 1) != 0 && word_refers(self, at)) return true;
    next += 63 * sizeof entry;
  }
  return false;
}

int elf_is_separate(const uint8_t *file, uint64_t nbytes, const struct elf_image *image,
                    const struct elf_symbol *symbol) {
  const struct elf_segment *segment = elf_segment_of(image, symbol->value, symbol->size);
  struct object self = {.file = file, .nbytes = nbytes, .image = image};
  if (segment == NULL || segment->flags != PF_R || segment->filesz != segment->memsz) return 0;
  self.segment = *segment;
  memcpy(&self.header, file, sizeof self.header);
  return is_alone(&self) && has_section(&self) && shares_no_symbol(&self, symbol) &&
         !any_refers(&self, DT_RELA, DT_RELASZ) && !any_refers(&self, DT_JMPREL, DT_PLTRELSZ) &&
         !any_word_refers(&self);
}

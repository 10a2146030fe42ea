/* The program headers other than PT_LOAD. Their contents are bytes that a PT_LOAD maps. */

#include "elf/segments.h"

/* Each thread that uses the object's thread-local variables allocates a block of p_memsz. */
enum { MAX_TLS_NBYTES = 16 << 20, MAX_TLS_ALIGN = 1 << 20 };

/* p_offset and p_vaddr must refer to the same bytes. */
static int check_mapped(struct elf_reader *reader, unsigned index, const char *name,
                        const struct elf_program_header *header) {
  if (elf_check_extent(reader, index, header) != 0) return -1;
  const uint8_t *bytes = elf_bytes(reader, header->p_vaddr, header->p_filesz);
  if (bytes != NULL && (header->p_filesz == 0 || bytes == reader->file + header->p_offset))
    return 0;
  if (header->p_memsz == 0) return 0;
  return elf_refuse(reader, ELF_MALFORMED,
                    "program header %u: %s, expected inside a readable PT_LOAD, at the same file "
                    "offset, found 0x%" PRIx64 " bytes at address 0x%" PRIx64 ", offset 0x%" PRIx64,
                    index, name, header->p_filesz, header->p_vaddr, header->p_offset);
}

/* Readers use p_memsz as the size; only p_filesz bytes were checked. */
static int check_all_mapped(struct elf_reader *reader, unsigned index, const char *name,
                            const struct elf_program_header *header) {
  if (header->p_filesz == header->p_memsz) return check_mapped(reader, index, name, header);
  return elf_refuse(reader, ELF_MALFORMED,
                    "program header %u: %s, expected the same p_filesz and p_memsz, found "
                    "0x%" PRIx64 " and 0x%" PRIx64,
                    index, name, header->p_filesz, header->p_memsz);
}

/* glibc uses the address of PT_PHDR as the address of the program headers. */
static int check_headers_header(struct elf_reader *reader, unsigned index,
                                const struct elf_program_header *header) {
  uint64_t nbytes = reader->header.e_phnum * sizeof *header;
  if (header->p_offset == reader->header.e_phoff && header->p_filesz >= nbytes)
    return check_all_mapped(reader, index, "PT_PHDR", header);
  return elf_refuse(reader, ELF_MALFORMED,
                    "program header %u: PT_PHDR, expected e_phoff 0x%" PRIx64 " and 0x%" PRIx64
                    " bytes, found 0x%" PRIx64 " and 0x%" PRIx64,
                    index, reader->header.e_phoff, nbytes, header->p_offset, header->p_filesz);
}

static int check_dynamic_header(struct elf_reader *reader, unsigned index,
                                const struct elf_program_header *header) {
  if (reader->dynamic.memsz != 0)
    return elf_refuse(reader, ELF_MALFORMED,
                      "program header %u: PT_DYNAMIC, expected 1, found another", index);
  if (header->p_filesz == 0 || header->p_filesz % sizeof(struct elf_dynamic_entry) != 0 ||
      header->p_filesz != header->p_memsz)
    return elf_refuse(reader, ELF_MALFORMED,
                      "program header %u: PT_DYNAMIC size, expected a multiple of 16, the same in "
                      "p_filesz and p_memsz, found 0x%" PRIx64 " and 0x%" PRIx64,
                      index, header->p_filesz, header->p_memsz);
  if (check_mapped(reader, index, "PT_DYNAMIC", header) != 0) return -1;
  /* glibc writes to the dynamic section unless its header is read-only */
  const struct elf_segment *load = elf_segment_of(reader->image, header->p_vaddr, header->p_filesz);
  if ((header->p_flags & PF_W) && !(load->flags & PF_W))
    return elf_refuse(reader, ELF_MALFORMED,
                      "program header %u: writable PT_DYNAMIC, expected in a writable PT_LOAD, "
                      "found p_flags 0x%" PRIx32,
                      index, load->flags);
  reader->dynamic = elf_segment_from(header);
  return 0;
}

static int check_tls(struct elf_reader *reader, unsigned index,
                     const struct elf_program_header *header) {
  uint64_t align = header->p_align;
  if (reader->tls.memsz != 0)
    return elf_refuse(reader, ELF_MALFORMED,
                      "program header %u: PT_TLS, expected at most 1, found another", index);
  if (header->p_memsz == 0) return 0; /* the loader ignores it */
  if (align == 0 || (align & (align - 1)) != 0 || align > MAX_TLS_ALIGN ||
      header->p_memsz > MAX_TLS_NBYTES)
    return elf_refuse(reader, ELF_MALFORMED,
                      "program header %u: PT_TLS, expected p_align a power of two of at most "
                      "0x%x and p_memsz at most 0x%x, found 0x%" PRIx64 " and 0x%" PRIx64,
                      index, MAX_TLS_ALIGN, MAX_TLS_NBYTES, align, header->p_memsz);
  if (check_mapped(reader, index, "PT_TLS", header) != 0) return -1;
  reader->tls.memsz = header->p_memsz;
  return 0;
}

/* The loader calls mprotect(PROT_READ) on the pages of this range, which must not reach other
 * mappings. Every linker puts data that is only relocated before data that the program writes. Only
 * section headers show where in a segment the former ends (sections.c). */
static int check_relro(struct elf_reader *reader, unsigned index,
                       const struct elf_program_header *header) {
  struct elf_image *image = reader->image;
  for (uint32_t i = 0; i < image->num_loads; i++) {
    const struct elf_segment *load = &image->loads[i];
    if (!(load->flags & PF_W) || header->p_vaddr != load->vaddr ||
        header->p_offset != load->offset ||
        header->p_memsz > elf_page_ceil(load->vaddr + load->memsz) - load->vaddr)
      continue;
    image->relro_start = elf_page_floor(header->p_vaddr);
    image->relro_end = elf_page_floor(header->p_vaddr + header->p_memsz);
    return 0;
  }
  return elf_refuse(reader, ELF_MALFORMED,
                    "program header %u: PT_GNU_RELRO, expected at the start of a writable PT_LOAD, "
                    "inside it, found 0x%" PRIx64 " bytes at address 0x%" PRIx64
                    ", offset 0x%" PRIx64,
                    index, header->p_memsz, header->p_vaddr, header->p_offset);
}

static int check_stack(struct elf_reader *reader, unsigned index,
                       const struct elf_program_header *header) {
  if (!(header->p_flags & PF_X)) return 0;
  return elf_refuse(reader, ELF_POLICY,
                    "program header %u: PT_GNU_STACK p_flags, expected no X, found 0x%" PRIx32
                    ", an executable stack; link with -z noexecstack",
                    index, header->p_flags);
}

int elf_check_other_segment(struct elf_reader *reader, unsigned index,
                            const struct elf_program_header *header) {
  switch (header->p_type) {
    case PT_DYNAMIC: return check_dynamic_header(reader, index, header);
    case PT_INTERP: return check_all_mapped(reader, index, "PT_INTERP", header);
    case PT_NOTE: return check_all_mapped(reader, index, "PT_NOTE", header);
    case PT_PHDR: return check_headers_header(reader, index, header);
    case PT_TLS: return check_tls(reader, index, header);
    case PT_GNU_EH_FRAME: return check_all_mapped(reader, index, "PT_GNU_EH_FRAME", header);
    case PT_GNU_PROPERTY: return check_all_mapped(reader, index, "PT_GNU_PROPERTY", header);
    case PT_GNU_RELRO: return check_relro(reader, index, header);
    case PT_GNU_STACK: return check_stack(reader, index, header);
    default: return 0;
  }
}

/* The program headers: what the loader maps where, and which mappings are refused. */

#include "elf/reader.h"

/* Address space that an object may request beyond its file's size (.bss, gaps between segments).
 * This is generous for real objects, but refuses a small file that requests a terabyte. */
#define MAX_EXTRA_SPAN (UINT64_C(64) << 30)
/* User addresses end here on x86-64 and aarch64, in every mode of the kernel. */
#define MAX_ADDRESS (UINT64_C(1) << 47)
/* Each thread that uses the object's thread-local variables allocates a block of p_memsz. */
enum { MAX_TLS_NBYTES = 16 << 20, MAX_TLS_ALIGN = 1 << 20 };

static uint64_t page_floor(uint64_t address) { return address & ~(uint64_t)(ELF_PAGE - 1); }
static uint64_t page_ceil(uint64_t address) { return page_floor(address + (ELF_PAGE - 1)); }

static struct elf_program_header header_at(const struct elf_reader *reader, unsigned index) {
  struct elf_program_header header;
  memcpy(&header, reader->file + reader->header.e_phoff + index * sizeof header, sizeof header);
  return header;
}

static struct elf_segment segment_of(const struct elf_program_header *header) {
  return (struct elf_segment){.vaddr = header->p_vaddr,
                              .memsz = header->p_memsz,
                              .offset = header->p_offset,
                              .filesz = header->p_filesz,
                              .flags = header->p_flags};
}

static int check_table(struct elf_reader *reader) {
  const struct elf_header *header = &reader->header;
  if (header->e_phentsize != sizeof(struct elf_program_header))
    return elf_refuse(reader, ELF_MALFORMED, "ELF header: e_phentsize, expected %zu, found %u",
                      sizeof(struct elf_program_header), header->e_phentsize);
  if (header->e_phnum == 0 || header->e_phnum > ELF_MAX_HEADERS)
    return elf_refuse(reader, ELF_MALFORMED, "ELF header: e_phnum, expected 1 to %d, found %u",
                      ELF_MAX_HEADERS, header->e_phnum);
  if (!elf_within(header->e_phoff, header->e_phnum * sizeof(struct elf_program_header),
                  reader->nbytes))
    return elf_refuse(reader, ELF_TRUNCATED,
                      "ELF header: program header table at 0x%" PRIx64
                      ", expected inside the file of 0x%" PRIx64 " bytes, found %u entries",
                      header->e_phoff, reader->nbytes, header->e_phnum);
  return 0;
}

static int check_extent(struct elf_reader *reader, unsigned index,
                        const struct elf_program_header *header) {
  if (!elf_within(header->p_offset, header->p_filesz, reader->nbytes))
    return elf_refuse(reader, ELF_TRUNCATED,
                      "program header %u: file bytes, expected inside the file of 0x%" PRIx64
                      " bytes, found 0x%" PRIx64 " bytes at 0x%" PRIx64,
                      index, reader->nbytes, header->p_filesz, header->p_offset);
  if (header->p_filesz > header->p_memsz)
    return elf_refuse(reader, ELF_MALFORMED,
                      "program header %u: p_memsz, expected at least p_filesz 0x%" PRIx64
                      ", found 0x%" PRIx64,
                      index, header->p_filesz, header->p_memsz);
  if (!elf_within(header->p_vaddr, header->p_memsz, MAX_ADDRESS))
    return elf_refuse(reader, ELF_MALFORMED,
                      "program header %u: address range, expected below 2^47, found 0x%" PRIx64
                      " bytes at 0x%" PRIx64,
                      index, header->p_memsz, header->p_vaddr);
  return 0;
}

/* The gABI requires p_vaddr and p_offset to be equal modulo p_align. glibc 2.35 and later require
 * it only modulo the page, because tools have written wrong large p_align. */
static int check_alignment(struct elf_reader *reader, unsigned index,
                           const struct elf_program_header *header) {
  uint64_t align = header->p_align;
  if (align < ELF_PAGE || (align & (align - 1)) != 0)
    return elf_refuse(reader, ELF_MALFORMED,
                      "program header %u: p_align, expected a power of two of 0x1000 or more, "
                      "found 0x%" PRIx64,
                      index, align);
  if ((header->p_vaddr - header->p_offset) % ELF_PAGE != 0)
    return elf_refuse(reader, ELF_MALFORMED,
                      "program header %u: p_offset, expected equal to p_vaddr 0x%" PRIx64
                      " modulo the page 0x1000, found 0x%" PRIx64,
                      index, header->p_vaddr, header->p_offset);
  return 0;
}

/* Two segments may share a page only if both map the same file bytes there. Otherwise the later
 * mapping hides bytes that were checked in the earlier one. */
static bool comes_after(const struct elf_segment *last, const struct elf_program_header *header) {
  uint64_t end = last->vaddr + last->memsz;
  if (page_floor(header->p_vaddr) >= page_ceil(end)) return true;
  return header->p_vaddr >= end && last->memsz == last->filesz &&
         header->p_vaddr - header->p_offset == last->vaddr - last->offset;
}

static int add_load(struct elf_reader *reader, unsigned index,
                    const struct elf_program_header *header) {
  struct elf_image *image = reader->image;
  if (image->num_loads == ELF_MAX_LOADS)
    return elf_refuse(reader, ELF_MALFORMED,
                      "program header %u: PT_LOAD, expected at most %d, found more", index,
                      ELF_MAX_LOADS);
  if (check_extent(reader, index, header) != 0 || check_alignment(reader, index, header) != 0)
    return -1;
  if (image->num_loads > 0 && !comes_after(&image->loads[image->num_loads - 1], header))
    return elf_refuse(reader, ELF_MALFORMED,
                      "program header %u: p_vaddr, expected behind the PT_LOAD before it "
                      "(ascending, not overlapping), found 0x%" PRIx64,
                      index, header->p_vaddr);
  if ((header->p_flags & PF_W) && (header->p_flags & PF_X))
    return elf_refuse(reader, ELF_POLICY,
                      "program header %u: segment is writable and executable; link without -z rwx "
                      "or --omagic, expected p_flags without W or without X, found 0x%" PRIx32,
                      index, header->p_flags);
  image->loads[image->num_loads++] = segment_of(header);
  return 0;
}

static int check_span(struct elf_reader *reader) {
  const struct elf_image *image = reader->image;
  if (image->num_loads == 0)
    return elf_refuse(reader, ELF_MALFORMED,
                      "program headers: PT_LOAD, expected at least 1, found none");
  const struct elf_segment *last = &image->loads[image->num_loads - 1];
  uint64_t span = last->vaddr + last->memsz - image->loads[0].vaddr;
  if (span > MAX_EXTRA_SPAN + reader->nbytes)
    return elf_refuse(reader, ELF_MALFORMED,
                      "program headers: memory asked for, expected at most 64 GiB more than the "
                      "file's 0x%" PRIx64 " bytes, found 0x%" PRIx64,
                      reader->nbytes, span);
  return 0;
}

/* The loader, and dl_iterate_phdr, read the program headers in the first segment whose pages
 * contain them. If there is none, the loader keeps a copy. */
static int find_headers(struct elf_reader *reader) {
  uint64_t start = reader->header.e_phoff;
  uint64_t nbytes = reader->header.e_phnum * sizeof(struct elf_program_header);
  for (uint32_t i = 0; i < reader->image->num_loads; i++) {
    const struct elf_segment *load = &reader->image->loads[i];
    uint64_t page = page_floor(load->offset), end = page_ceil(load->offset + load->filesz);
    if (start < page || !elf_within(start, nbytes, end)) continue;
    reader->headers_vaddr = page_floor(load->vaddr) + (start - page);
    reader->headers_nbytes = nbytes;
    if (load->flags & PF_R) return 0;
    return elf_refuse(reader, ELF_MALFORMED,
                      "ELF header: program headers at 0x%" PRIx64
                      ", expected in a readable PT_LOAD, found p_flags 0x%" PRIx32,
                      start, load->flags);
  }
  return 0;
}

/* p_offset and p_vaddr must refer to the same bytes. */
static int check_mapped(struct elf_reader *reader, unsigned index, const char *name,
                        const struct elf_program_header *header) {
  if (check_extent(reader, index, header) != 0) return -1;
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
  reader->dynamic = segment_of(header);
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
        header->p_memsz > page_ceil(load->vaddr + load->memsz) - load->vaddr)
      continue;
    image->relro_start = page_floor(header->p_vaddr);
    image->relro_end = page_floor(header->p_vaddr + header->p_memsz);
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
                    "program header %u: PT_GNU_STACK asks for an executable stack; link with "
                    "-z noexecstack, expected p_flags without X, found 0x%" PRIx32,
                    index, header->p_flags);
}

/* Without the header the loader's default applies: an executable stack on x86-64. */
static int check_stack_present(struct elf_reader *reader, bool present) {
  if (present || reader->image->machine != EM_X86_64) return 0;
  return elf_refuse(reader, ELF_POLICY,
                    "program headers: PT_GNU_STACK, expected 1, found none, which means an "
                    "executable stack; link with -z noexecstack");
}

static int check_other(struct elf_reader *reader, unsigned index,
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

int elf_check_segments(struct elf_reader *reader) {
  if (check_table(reader) != 0) return -1;
  unsigned count = reader->header.e_phnum;
  bool stack = false;
  for (unsigned i = 0; i < count; i++) {
    struct elf_program_header header = header_at(reader, i);
    if (header.p_type == PT_LOAD && add_load(reader, i, &header) != 0) return -1;
    stack = stack || header.p_type == PT_GNU_STACK;
  }
  if (check_span(reader) != 0 || find_headers(reader) != 0) return -1;
  for (unsigned i = 0; i < count; i++) {
    struct elf_program_header header = header_at(reader, i);
    if (check_other(reader, i, &header) != 0) return -1;
  }
  if (reader->dynamic.memsz == 0)
    return elf_refuse(reader, ELF_MALFORMED,
                      "program headers: PT_DYNAMIC, expected 1, found none; nothing in this file "
                      "can be looked up");
  return check_stack_present(reader, stack);
}

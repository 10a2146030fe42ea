/* PT_LOAD: what the loader maps where, and which mappings are refused. */

#include "elf/segments.h"

/* Address space that an object may request beyond its file's size (.bss, gaps between segments).
 * This is generous for real objects, but refuses a small file that requests a terabyte. */
#define MAX_EXTRA_SPAN (UINT64_C(64) << 30)
/* User addresses end here on x86-64 and aarch64, in every mode of the kernel. */
#define MAX_ADDRESS (UINT64_C(1) << 47)

static struct elf_program_header header_at(const struct elf_reader *reader, unsigned index) {
  struct elf_program_header header;
  memcpy(&header, reader->file + reader->header.e_phoff + index * sizeof header, sizeof header);
  return header;
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

int elf_check_extent(struct elf_reader *reader, unsigned index,
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
  if (elf_page_floor(header->p_vaddr) >= elf_page_ceil(end)) return true;
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
  if (elf_check_extent(reader, index, header) != 0 || check_alignment(reader, index, header) != 0)
    return -1;
  if (image->num_loads > 0 && !comes_after(&image->loads[image->num_loads - 1], header))
    return elf_refuse(reader, ELF_MALFORMED,
                      "program header %u: p_vaddr, expected after the previous PT_LOAD (ascending, "
                      "not overlapping), found 0x%" PRIx64,
                      index, header->p_vaddr);
  if ((header->p_flags & PF_W) && (header->p_flags & PF_X))
    return elf_refuse(reader, ELF_POLICY,
                      "program header %u: p_flags, expected not both W and X, found 0x%" PRIx32
                      " (writable and executable); link without -z rwx or --omagic",
                      index, header->p_flags);
  image->loads[image->num_loads++] = elf_segment_from(header);
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
                      "program headers: memory size, expected at most 64 GiB more than the "
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
    uint64_t page = elf_page_floor(load->offset), end = elf_page_ceil(load->offset + load->filesz);
    if (start < page || !elf_within(start, nbytes, end)) continue;
    reader->headers_vaddr = elf_page_floor(load->vaddr) + (start - page);
    reader->headers_nbytes = nbytes;
    if (load->flags & PF_R) return 0;
    return elf_refuse(reader, ELF_MALFORMED,
                      "ELF header: program headers at 0x%" PRIx64
                      ", expected in a readable PT_LOAD, found p_flags 0x%" PRIx32,
                      start, load->flags);
  }
  return 0;
}

/* Without the header the loader's default applies: an executable stack on x86-64. */
static int check_stack_present(struct elf_reader *reader, bool present) {
  if (present || reader->image->machine != EM_X86_64) return 0;
  return elf_refuse(reader, ELF_POLICY,
                    "program headers: PT_GNU_STACK, expected 1, found none (an executable "
                    "stack); link with -z noexecstack");
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
    if (elf_check_other_segment(reader, i, &header) != 0) return -1;
  }
  if (reader->dynamic.memsz == 0)
    return elf_refuse(reader, ELF_MALFORMED,
                      "program headers: PT_DYNAMIC, expected 1, found none; nothing in this file "
                      "can be looked up");
  return check_stack_present(reader, stack);
}

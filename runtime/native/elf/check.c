/* The static check, one call per part, and look-ups of addresses in a checked image. */

#include "elf/elf.h"

#include <stdarg.h>
#include <stdio.h>

#include "elf/reader.h"

int elf_check(const uint8_t *file, uint64_t nbytes, uint16_t machine, struct elf_image *image,
              struct elf_error *error) {
  struct elf_reader reader = {.file = file, .nbytes = nbytes, .image = image, .error = error};
  memset(image, 0, sizeof *image);
  memset(error, 0, sizeof *error);

  /* an ELF-64 shared object for this machine */
  if (elf_identify(&reader, machine) != 0) return -1;
  /* from here on every PT_LOAD is inside the file, ascending, disjoint, below 2^47 */
  if (elf_check_segments(&reader) != 0) return -1;
  /* from here on every known tag occurs once, and every name at an offset below strsz ends in
   * NUL */
  if (elf_check_dynamic(&reader) != 0) return -1;
  /* from here on a look-up of any name terminates and stays inside the tables */
  if (elf_check_hash(&reader) != 0) return -1;
  /* from here on a look-up finds every defined name */
  if (elf_check_hashed_names(&reader) != 0) return -1;
  /* from here on relocations write to writable segments only, and to no table of the loader */
  if (elf_check_relocations(&reader) != 0) return -1;
  if (elf_check_symbols(&reader) != 0) return -1;
  if (elf_check_versions(&reader) != 0) return -1;
  /* inspectors read section headers: they must agree with what the loader reads */
  return elf_check_sections(&reader);
}

uint16_t elf_native_machine(void) {
#if defined(__x86_64__)
  return EM_X86_64;
#elif defined(__aarch64__)
  return EM_AARCH64;
#elif defined(__riscv)
  return EM_RISCV;
#elif defined(__powerpc64__)
  return EM_PPC64;
#elif defined(__loongarch__)
  return EM_LOONGARCH;
#else
#error "name this machine's e_machine here"
#endif
}

int elf_refuse(struct elf_reader *reader, enum elf_reason reason, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(reader->error->message, sizeof reader->error->message, format, arguments);
  va_end(arguments);
  reader->error->reason = reason;
  return -1;
}

const struct elf_segment *elf_segment_of(const struct elf_image *image, uint64_t vaddr,
                                         uint64_t nbytes) {
  for (uint32_t i = 0; i < image->num_loads; i++) {
    const struct elf_segment *load = &image->loads[i];
    if (vaddr >= load->vaddr && elf_within(vaddr - load->vaddr, nbytes, load->filesz)) return load;
  }
  return NULL;
}

const struct elf_segment *elf_memory_of(const struct elf_image *image, uint64_t vaddr,
                                        uint64_t nbytes) {
  for (uint32_t i = 0; i < image->num_loads; i++) {
    const struct elf_segment *load = &image->loads[i];
    if (vaddr >= load->vaddr && elf_within(vaddr - load->vaddr, nbytes, load->memsz)) return load;
  }
  return NULL;
}

const char *elf_not_data(const struct elf_image *image, const struct elf_symbol *symbol) {
  if (symbol->type == STT_FUNC) return "is a function, expected data";
  if (symbol->type != STT_OBJECT && symbol->type != STT_NOTYPE) return "is not plain data";
  if (symbol->section == SHN_ABS) return "is an absolute value, expected data";
  if (symbol->size == 0) return "has size 0";
  const struct elf_segment *segment = elf_segment_of(image, symbol->value, symbol->size);
  if (segment == NULL) return "is not stored in the file (.bss, or beyond its segment)";
  if (!(segment->flags & PF_R)) return "is in a segment that cannot be read";
  if (segment->flags & PF_W) return "is in a writable segment, expected a read-only one";
  return NULL;
}

const char *elf_not_code(const struct elf_image *image, const struct elf_symbol *symbol) {
  if (symbol->type != STT_FUNC && symbol->type != STT_NOTYPE) return "is not a function";
  if (symbol->section == SHN_ABS) return "is an absolute value, expected a function";
  const struct elf_segment *segment = elf_segment_of(image, symbol->value, 1);
  if (segment == NULL || !(segment->flags & PF_X)) return "is not in an executable segment";
  return NULL;
}

int elf_is_variable(const struct elf_image *image, uint64_t vaddr, uint64_t nbytes) {
  const struct elf_segment *segment = elf_memory_of(image, vaddr, nbytes);
  return segment != NULL && (segment->flags & PF_W) != 0 &&
         (vaddr >= image->relro_end || vaddr + nbytes <= image->relro_start);
}

const uint8_t *elf_at_loaded(const void *base, const struct elf_image *image, uint64_t vaddr) {
  (void)image;
  return (const uint8_t *)base + vaddr;
}

const uint8_t *elf_at_file(const void *file, const struct elf_image *image, uint64_t vaddr) {
  const struct elf_segment *load = elf_segment_of(image, vaddr, 1);
  return load == NULL ? NULL : (const uint8_t *)file + load->offset + (vaddr - load->vaddr);
}

const uint8_t *elf_bytes(const struct elf_reader *reader, uint64_t vaddr, uint64_t nbytes) {
  const struct elf_segment *load = elf_segment_of(reader->image, vaddr, nbytes);
  return load == NULL || !(load->flags & PF_R)
             ? NULL
             : reader->file + load->offset + (vaddr - load->vaddr);
}

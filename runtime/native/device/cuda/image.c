/* Reading cubins, PTX and fatbins, and choosing the best image for a device. */
#include "device/cuda/image.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "elf/layout.h"

static int refuse(struct cuda_images *images, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int refuse(struct cuda_images *images, const char *format, ...) {
  va_list values;
  va_start(values, format);
  vsnprintf(images->wrong, sizeof images->wrong, format, values);
  va_end(values);
  return -1;
}

static int add(struct cuda_images *images, const struct cuda_image *image) {
  if (images->count == CUDA_MAX_IMAGES)
    return refuse(images, "expected at most %d images", CUDA_MAX_IMAGES);
  images->images[images->count++] = *image;
  return 0;
}

static int is_within(uint64_t offset, uint64_t nbytes, size_t room) {
  return offset <= room && nbytes <= room - offset;
}

/* ---- Cubins: ELF-64. Each table, segment and section must be within the bytes. */

enum {
  ABI_VERSION = 8,           /* the index of this byte in e_ident */
  ABI_OF_CUDA_13 = 8,        /* e_flags changed with it (LLVM, BinaryFormat/ELF.h, EF_CUDA_*) */
  FLAG_ACCELERATORS = 0x800, /* sm_90a */
  FLAG_ACCELERATORS_13 = 0x8,
};

static int check_segments(const unsigned char *data, size_t nbytes, const struct elf_header *header,
                          struct cuda_images *images) {
  struct elf_program_header segment;
  if ((header->e_phnum > 0 && header->e_phentsize != sizeof segment) ||
      !is_within(header->e_phoff, header->e_phnum * sizeof segment, nbytes))
    return refuse(images, "cubin: the program header table extends beyond its %zu bytes", nbytes);
  for (unsigned i = 0; i < header->e_phnum; i++) {
    memcpy(&segment, data + header->e_phoff + i * sizeof segment, sizeof segment);
    if (!is_within(segment.p_offset, segment.p_filesz, nbytes))
      return refuse(images, "cubin: segment %u at 0x%llx extends beyond its %zu bytes", i,
                    (unsigned long long)segment.p_offset, nbytes);
  }
  return 0;
}

static int check_sections(const unsigned char *data, size_t nbytes, const struct elf_header *header,
                          struct cuda_images *images) {
  struct elf_section_header section;
  if ((header->e_shnum > 0 && header->e_shentsize != sizeof section) ||
      !is_within(header->e_shoff, header->e_shnum * sizeof section, nbytes))
    return refuse(images, "cubin: the section header table extends beyond its %zu bytes", nbytes);
  for (unsigned i = 0; i < header->e_shnum; i++) {
    memcpy(&section, data + header->e_shoff + i * sizeof section, sizeof section);
    if (section.sh_type != SHT_NOBITS && !is_within(section.sh_offset, section.sh_size, nbytes))
      return refuse(images, "cubin: section %u at 0x%llx extends beyond its %zu bytes", i,
                    (unsigned long long)section.sh_offset, nbytes);
  }
  return 0;
}

static int read_cubin(const unsigned char *data, size_t nbytes, struct cuda_images *images) {
  struct elf_header header;
  if (nbytes < sizeof header)
    return refuse(images, "cubin: truncated in its header, at 0x%zx", nbytes);
  memcpy(&header, data, sizeof header);
  if (header.e_machine != EM_CUDA)
    return refuse(images, "ELF file for machine %u, expected %d (CUDA)", header.e_machine, EM_CUDA);
  if (check_segments(data, nbytes, &header, images) != 0 ||
      check_sections(data, nbytes, &header, images) != 0)
    return -1;
  int is_13 = header.e_ident[ABI_VERSION] >= ABI_OF_CUDA_13;
  uint32_t accelerators = is_13 ? FLAG_ACCELERATORS_13 : FLAG_ACCELERATORS;
  const struct cuda_image image = {
      .kind = CUDA_CUBIN,
      .capability = (int)((is_13 ? header.e_flags >> 8 : header.e_flags) & 0xff),
      .suffix = header.e_flags & accelerators ? 'a' : '\0',
      .data = data,
      .nbytes = nbytes,
  };
  return add(images, &image);
}

/* ---- PTX: text with a line ".target sm_90a" (PTX ISA, Directives) */

static size_t skip_spaces(const unsigned char *data, size_t nbytes, size_t at) {
  while (at < nbytes && (data[at] == ' ' || data[at] == '\t')) at++;
  return at;
}

/* Read a target such as "sm_90a" at `at`. Returns 1 if there is one. */
static int read_target(const unsigned char *data, size_t nbytes, size_t at,
                       struct cuda_image *image) {
  int number = 0, digits = 0;
  if (nbytes - at < 3 || memcmp(data + at, "sm_", 3) != 0) return 0;
  for (at += 3; at < nbytes && data[at] >= '0' && data[at] <= '9' && digits < 4; at++, digits++)
    number = 10 * number + (data[at] - '0');
  image->capability = number;
  image->suffix = at < nbytes && (data[at] == 'a' || data[at] == 'f') ? (char)data[at] : '\0';
  return digits >= 2;
}

static int find_target(const unsigned char *data, size_t nbytes, struct cuda_image *image) {
  static const char directive[] = ".target";
  const size_t length = sizeof directive - 1;
  for (size_t at = 0; at < nbytes; at++) {
    at = skip_spaces(data, nbytes, at);
    if (nbytes - at > length && memcmp(data + at, directive, length) == 0)
      return read_target(data, nbytes, skip_spaces(data, nbytes, at + length), image);
    const unsigned char *end = memchr(data + at, '\n', nbytes - at);
    if (end == NULL) return 0;
    at = (size_t)(end - data);
  }
  return 0;
}

static int read_ptx(const unsigned char *data, size_t nbytes, struct cuda_images *images) {
  struct cuda_image image = {.kind = CUDA_PTX, .data = data, .nbytes = nbytes};
  if (find_target(data, nbytes, &image)) return add(images, &image);
  return refuse(images, "expected PTX with a line like '.target sm_80', a cubin or a fatbin");
}

/* ---- Fatbins, as written by CUDA's fatbinary: a header, then entries with a header each. */

struct fatbin_header {
  uint32_t magic;
  uint16_t version, header_nbytes;
  uint64_t nbytes; /* after the header */
};

struct fatbin_entry {
  uint16_t kind, version;
  uint32_t header_nbytes;
  uint64_t nbytes;
  uint32_t compressed_nbytes, options_offset;
  uint16_t minor, major;
  uint32_t capability, name_offset, name_nbytes;
  uint64_t flags;
};

enum { FATBIN_MAGIC = (int)0xBA55ED50, FATBIN_VERSION = 1 };
enum { ENTRY_IS_OF_ONE = 0x100000, ENTRY_IS_OF_FAMILY = 0x200000 }; /* sm_90a, sm_100f */

static int add_compressed(const unsigned char *data, const struct fatbin_entry *entry,
                          struct cuda_images *images) {
  const struct cuda_image image = {
      .kind = (enum cuda_image_kind)entry->kind,
      .capability = (int)(entry->capability & 0xffff),
      .is_compressed = 1,
      .data = data,
      .nbytes = (size_t)entry->nbytes,
  };
  return add(images, &image);
}

static int read_entry(const unsigned char *data, const struct fatbin_entry *entry,
                      struct cuda_images *images) {
  size_t nbytes = (size_t)entry->nbytes;
  int index = images->count, status;
  if (entry->kind != CUDA_PTX && entry->kind != CUDA_CUBIN) return 0; /* for example LTO code */
  if (entry->compressed_nbytes != 0) status = add_compressed(data, entry, images);
  else if (entry->kind == CUDA_PTX) status = read_ptx(data, nbytes, images);
  else status = read_cubin(data, nbytes, images);
  /* A cubin of CUDA 13 does not contain the suffix; the fatbin's entry does. */
  if (status == 0 && entry->flags & ENTRY_IS_OF_ONE) images->images[index].suffix = 'a';
  if (status == 0 && entry->flags & ENTRY_IS_OF_FAMILY) images->images[index].suffix = 'f';
  return status;
}

static int read_fatbin(const unsigned char *data, size_t nbytes, struct cuda_images *images) {
  struct fatbin_header header;
  struct fatbin_entry entry;
  if (nbytes < sizeof header)
    return refuse(images, "fatbin: truncated in its header, at 0x%zx", nbytes);
  memcpy(&header, data, sizeof header);
  if (header.version != FATBIN_VERSION || header.header_nbytes < sizeof header ||
      !is_within(header.header_nbytes, header.nbytes, nbytes))
    return refuse(images,
                  "fatbin: version %u with 0x%llx bytes after its header, expected version %d and "
                  "at most 0x%zx bytes",
                  header.version, (unsigned long long)header.nbytes, FATBIN_VERSION, nbytes);
  size_t at = header.header_nbytes, end = at + (size_t)header.nbytes;
  while (at < end) {
    if (end - at >= sizeof entry) memcpy(&entry, data + at, sizeof entry);
    if (end - at < sizeof entry || entry.header_nbytes < sizeof entry ||
        !is_within(entry.header_nbytes, entry.nbytes, end - at))
      return refuse(images, "fatbin: the entry at 0x%zx extends beyond the end at 0x%zx", at, end);
    if (read_entry(data + at + entry.header_nbytes, &entry, images) != 0) return -1;
    at += entry.header_nbytes + (size_t)entry.nbytes;
  }
  return images->count > 0 ? 0 : refuse(images, "fatbin: contains neither PTX nor a cubin");
}

int cuda_images_read(const unsigned char *data, size_t nbytes, struct cuda_images *images) {
  uint32_t magic = 0;
  images->count = 0;
  memcpy(&magic, data, nbytes < sizeof magic ? 0 : sizeof magic);
  if (magic == (uint32_t)FATBIN_MAGIC) return read_fatbin(data, nbytes, images);
  if (nbytes >= 4 && memcmp(data, "\177ELF", 4) == 0) return read_cubin(data, nbytes, images);
  return read_ptx(data, nbytes, images);
}

/* ---- Choice */

/* The rank of an image for a device, or -1 if the device cannot run it. CUDA C++ Programming Guide,
 * Binary and PTX Compatibility. */
static int fitness(const struct cuda_image *image, int capability) {
  int is_exact = image->capability == capability;
  int is_of_family = image->capability / 10 == capability / 10 && image->capability <= capability;
  int fits = image->capability <= capability;
  if (image->suffix == 'a') fits = is_exact;
  else if (image->suffix == 'f' || image->kind == CUDA_CUBIN) fits = is_of_family;
  if (!fits) return -1;
  /* An image with a suffix ranks higher: it may use more features of the device. */
  return (image->kind == CUDA_CUBIN) << 16 | image->capability << 2 | (image->suffix != '\0');
}

const struct cuda_image *cuda_images_best(const struct cuda_images *images, int capability) {
  const struct cuda_image *best = NULL;
  int best_fitness = -1;
  for (int i = 0; i < images->count; i++) {
    int found = fitness(&images->images[i], capability);
    if (found <= best_fitness) continue;
    best = &images->images[i];
    best_fitness = found;
  }
  return best;
}

void cuda_images_describe(const struct cuda_images *images, char *text, size_t nbytes) {
  size_t length = 0;
  *text = '\0';
  for (int i = 0; i < images->count && length < nbytes; i++) {
    const struct cuda_image *image = &images->images[i];
    length += (size_t)snprintf(text + length, nbytes - length, "%s%s sm_%d%.1s", i ? ", " : "",
                               image->kind == CUDA_PTX ? "ptx" : "cubin", image->capability,
                               &image->suffix);
  }
}

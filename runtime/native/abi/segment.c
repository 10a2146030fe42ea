/* Search of the loaded images for an address. */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "abi/segment.h"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

struct search {
  uintptr_t address;
  struct segment_part found;
};

static int look_at_image(struct dl_phdr_info *image, size_t nbytes, void *arg) {
  struct search *search = arg;
  (void)nbytes;
  for (ElfW(Half) i = 0; i < image->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &image->dlpi_phdr[i];
    uintptr_t offset = search->address - (image->dlpi_addr + segment->p_vaddr);
    if (segment->p_type != PT_LOAD || offset >= segment->p_memsz) continue;
    search->found = (struct segment_part){segment->p_memsz - offset, segment->p_flags};
    return 1;
  }
  return 0;
}

struct segment_part segment_part_from(const void *address) {
  struct search search = {.address = (uintptr_t)address};
  (void)dl_iterate_phdr(look_at_image, &search);
  return search.found;
}

void segment_give_back(const void *address, size_t nbytes) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  uintptr_t first = ((uintptr_t)address + page - 1) & ~(uintptr_t)(page - 1);
  uintptr_t end = ((uintptr_t)address + nbytes) & ~(uintptr_t)(page - 1);
  if (first >= end) return; /* before the search, which takes longer */
  struct segment_part part = segment_part_from(address);
  if (part.nbytes >= nbytes && !(part.flags & PF_W))
    (void)madvise((void *)first, end - first, MADV_DONTNEED); /* advice: it may fail */
}

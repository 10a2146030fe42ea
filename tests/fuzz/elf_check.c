/* The static check of an ELF file, and all that it promises of one that it accepts: each byte that
 * the loader, the runtime and the inspector read by it is read here, inside the file. */
#include <stdlib.h>
#include <string.h>

#include "elf/elf.h"
#include "elf/layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

static volatile uint64_t sum; /* what is read is used */

static void read_bytes(const uint8_t *bytes, uint64_t nbytes) {
  for (uint64_t i = 0; i < nbytes; i++) sum += bytes[i];
}

static void read_data(const uint8_t *file, const struct elf_image *image,
                      const struct elf_symbol *symbol) {
  if (elf_not_data(image, symbol) == NULL)
    read_bytes(elf_at_file(file, image, symbol->value), symbol->size);
  if (elf_not_code(image, symbol) == NULL) read_bytes(elf_at_file(file, image, symbol->value), 1);
  sum += (uint64_t)elf_is_variable(image, symbol->value, sizeof(void *));
}

/* Each name ends; the hash tables find a defined symbol whose name is unique. */
static void read_symbols(const uint8_t *file, const struct elf_image *image) {
  for (uint64_t i = 0; i < image->num_symbols; i++) {
    struct elf_symbol symbol, found;
    const char *name = elf_symbol_at(image, elf_at_file, file, i, &symbol);
    sum += strlen(name);
    if (symbol.section != SHN_UNDEF) read_data(file, image, &symbol);
    if (i < 256 && elf_lookup(image, elf_at_file, file, name, &found))
      read_data(file, image, &found);
  }
}

static void read_segments(const uint8_t *file, const struct elf_image *image) {
  for (uint32_t i = 0; i < image->num_loads; i++)
    read_bytes(file + image->loads[i].offset, image->loads[i].filesz);
}

static void check(const uint8_t *file, uint64_t nbytes, uint16_t machine) {
  static const char *const names[] = {"__tvm_dev_mblob", "__tvm_ffi__library_bin", "add", "", "f"};
  struct elf_image image;
  struct elf_error error;
  struct elf_symbol symbol;
  if (elf_check(file, nbytes, machine, &image, &error) != 0) {
    if (error.reason == ELF_OK || error.message[0] == '\0') abort();
    return;
  }
  read_segments(file, &image);
  read_symbols(file, &image);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (elf_lookup(&image, elf_at_file, file, names[i], &symbol)) read_data(file, &image, &symbol);
  sum += (uint64_t)elf_needs(&image, elf_at_file, file, "libtvm");
}

/* An input is checked for the machine that it names, and for the one it is loaded on. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
  struct elf_header header = {.e_machine = EM_X86_64};
  uint8_t *file = malloc(nbytes + 1); /* its end is the end of a block; 0 bytes are one, too */
  memcpy(file, data, nbytes);
  file = realloc(file, nbytes > 0 ? nbytes : 1);
  if (nbytes >= sizeof header) memcpy(&header, file, sizeof header);
  check(file, nbytes, header.e_machine);
  if (header.e_machine != EM_X86_64) check(file, nbytes, EM_X86_64);
  free(file);
  return 0;
}

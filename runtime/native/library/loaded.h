/* An open library: a checked file, opened with dlopen, and the symbols that it defines. */
#pragma once

#include "library/checked_file.h"
#include "library/checksums.h"

struct context;

struct loaded {
  void *handle;
  const uint8_t *address; /* l_addr, the address of link-time address 0 */
  struct file_key key;
  struct elf_image image;
  struct checksums checksums;
  char *spelling;          /* the name passed to dlopen */
  struct context *context; /* its context symbols point to it; NULL if it has none */
  struct loaded *next;
};

/* Check and open an absolute path. Return 0, or -1 with *error filled and nothing open. */
int loaded_open(struct loaded *library, const char *path, struct load_error *error);
void loaded_close(struct loaded *library);

/* Find a symbol that this object defines. Return 1 if found, 0 if absent. dlsym is not used,
 * because it would also find a dependency's symbol. */
int loaded_symbol(const struct loaded *library, const char *name, struct elf_symbol *symbol);

/* True if TVM made the library; its functions without metadata are then packed C functions. A
 * function of any other library may have any type, so only functions with metadata can be
 * called. */
int loaded_is_tvm(const struct loaded *library);

/* Store the address of constant data that is stored in the file. Return NULL, or why `symbol` is
 * not such data. */
const char *loaded_data(const struct loaded *library, const struct elf_symbol *symbol,
                        const uint8_t **bytes);

/* Store the address of a function. Return NULL, or why `symbol` cannot be called. */
const char *loaded_code(const struct loaded *library, const struct elf_symbol *symbol,
                        const uint8_t **code);

/* Return the address of a function that this object defines, of its default version, or NULL. An
 * indirect function (STT_GNU_IFUNC) is resolved. */
void *loaded_address(const struct loaded *library, const char *name);

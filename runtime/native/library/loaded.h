/* A checked file, opened with dlopen, with its own symbols. No Python.h. */
#ifndef DSO_PACKER_LIBRARY_LOADED_H
#define DSO_PACKER_LIBRARY_LOADED_H

#include "library/checked_file.h"
#include "library/checksums.h"

struct context;

struct loaded {
  void *handle;
  const uint8_t *address; /* l_addr: link-time address 0 lies here */
  struct file_key key;
  struct elf_image image;
  struct checksums checksums;
  char *spelling;          /* the name that dlopen knows it by */
  struct context *context; /* what its context symbols point to, or NULL without */
  struct loaded *next;
};

/* Check and open an absolute path. Returns 0, or -1 with *error filled and nothing open. */
int loaded_open(struct loaded *library, const char *path, struct load_error *error);
void loaded_close(struct loaded *library);

/* A symbol that this very object defines: 1 found, 0 absent. Never dlsym, which would also find
 * a dependency's. */
int loaded_symbol(const struct loaded *library, const char *name, struct elf_symbol *symbol);

/* Whether TVM made it: then a function without a declaration is a packed C function. Code of others
 * has any type, and packer declares what can be called. */
int loaded_is_tvm(const struct loaded *library);

/* Why `symbol` is not constant data behind file bytes, or NULL when it is; then *bytes is set. */
const char *loaded_data(const struct loaded *library, const struct elf_symbol *symbol,
                        const uint8_t **bytes);

/* Why `symbol` cannot be called, or NULL when it can; then *code is set. */
const char *loaded_code(const struct loaded *library, const struct elf_symbol *symbol,
                        const uint8_t **code);

#endif

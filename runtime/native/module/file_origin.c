/* An open library file as the origin of modules: its symbols. */
#include "module/file_origin.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "elf/layout.h"

static const struct file_origin *file_of(const struct origin *origin) {
  return (const struct file_origin *)(const void *)origin;
}

static int find(const struct origin *self, const char *prefix, const char *name,
                struct elf_symbol *symbol) {
  char few[256], *text = few;
  size_t begin = strlen(prefix), size = begin + strlen(name) + 1;
  *symbol = (struct elf_symbol){.value = 0};
  if (size > sizeof few && (text = heap_new(size)) == NULL)
    return raised_format("OutOfMemoryError", "%s: no memory for a name", self->path);
  memcpy(text, prefix, begin);
  memcpy(text + begin, name, size - begin);
  int found = loaded_symbol(&file_of(self)->loaded, text, symbol);
  if (text != few) free(text);
  return found;
}

static int refuse(const struct origin *self, const char *prefix, const char *name,
                  const struct elf_symbol *symbol, const char *wrong) {
  return raised_format("LibraryLoadError", "%s: %s%s at 0x%" PRIx64 ": %s", self->path, prefix,
                       name, symbol->value, wrong);
}

static int find_data(const struct origin *self, const char *prefix, const char *name,
                     const uint8_t **bytes, size_t *nbytes) {
  struct elf_symbol symbol;
  int found = find(self, prefix, name, &symbol);
  if (found <= 0) return found;
  const char *wrong = loaded_data(&file_of(self)->loaded, &symbol, bytes);
  *nbytes = (size_t)symbol.size;
  return wrong == NULL ? 1 : refuse(self, prefix, name, &symbol, wrong);
}

static int data(const struct origin *self, const char *symbol, const uint8_t **bytes,
                size_t *nbytes) {
  return find_data(self, "", symbol, bytes, nbytes);
}

/* ---- The three ways to find a function. Each returns 1, 0 or -1. */

static int find_code(const struct origin *self, const char *prefix, const char *name,
                     const uint8_t **code) {
  struct elf_symbol symbol;
  int found = find(self, prefix, name, &symbol);
  if (found <= 0) return found;
  const char *wrong = loaded_code(&file_of(self)->loaded, &symbol, code);
  return wrong == NULL ? 1 : refuse(self, prefix, name, &symbol, wrong);
}

static int make(const struct origin *self, const char *name, const uint8_t *code,
                const uint8_t *facts, size_t nbytes, struct host_function **found) {
  *found = host_function_new(self, name, facts, nbytes);
  if (*found == NULL) return -1;
  (*found)->code = code;
  return 1;
}

/* __tvm_ffi_<name>, with or without facts. */
static int find_safe(const struct origin *self, const char *name, struct host_function **found) {
  const uint8_t *code, *facts = NULL;
  size_t nbytes = 0;
  int status = find_code(self, "__tvm_ffi_", name, &code);
  if (status <= 0) return status;
  status = find_data(self, "__packer_fn_", name, &facts, &nbytes);
  return status < 0 ? -1 : make(self, name, code, status > 0 ? facts : NULL, nbytes, found);
}

static int find_packed_code(const struct origin *self, struct host_function *found) {
  int status = find_code(self, "", found->name, &found->code);
  if (status == 0)
    return raised_format("LibraryLoadError",
                         "%s: __packer_fn_%s: declares a packed C function, found no symbol '%s'",
                         self->path, found->name, found->name);
  return status;
}

/* <name>, if its facts declare it a packed C function. */
static int find_declared(const struct origin *self, const char *name,
                         struct host_function **found) {
  const uint8_t *facts;
  size_t nbytes;
  int status = find_data(self, "__packer_fn_", name, &facts, &nbytes);
  if (status <= 0) return status;
  if (make(self, name, NULL, facts, nbytes, found) < 0) return -1;
  (*found)->is_packed = (*found)->facts.is_packed;
  status = (*found)->is_packed ? find_packed_code(self, *found) : 0;
  if (status <= 0) host_function_free(*found);
  return status;
}

/* <name> without facts: a packed C function, if TVM built the library. */
static int find_plain(const struct origin *self, const char *name, struct host_function **found) {
  const struct loaded *loaded = &file_of(self)->loaded;
  struct elf_symbol symbol;
  const uint8_t *code;
  int status = find(self, "", name, &symbol);
  if (status <= 0 || loaded_code(loaded, &symbol, &code) != NULL || !loaded_is_tvm(loaded))
    return status < 0 ? -1 : 0;
  status = make(self, name, code, NULL, 0, found);
  if (status > 0) (*found)->is_packed = 1;
  return status;
}

static int function(const struct origin *self, const char *name, struct host_function **found) {
  int status = find_safe(self, name, found);
  if (status == 0) status = find_declared(self, name, found);
  return status == 0 ? find_plain(self, name, found) : status;
}

/* ---- Names */

static int visit_symbols(const struct origin *self, const char *start,
                         int (*visit)(void *arg, const char *symbol), void *arg) {
  const struct loaded *loaded = &file_of(self)->loaded;
  size_t length = strlen(start);
  int status = 0;
  /* Symbol 0 is reserved (gABI, Symbol Table). */
  for (uint64_t i = 1; i < loaded->image.num_symbols && status == 0; i++) {
    struct elf_symbol symbol;
    const char *name = elf_symbol_at(&loaded->image, elf_at_loaded, loaded->address, i, &symbol);
    if (symbol.section != SHN_UNDEF && strncmp(name, start, length) == 0 &&
        (symbol.type == STT_FUNC || symbol.type == STT_GNU_IFUNC || symbol.type == STT_OBJECT))
      status = visit(arg, name);
  }
  return status;
}

/* The export knew the types of the functions that it left out. */
static int has_declarations(const struct loaded *loaded) {
  struct elf_symbol symbol;
  return loaded_symbol(loaded, "__packer_checksums", &symbol) > 0;
}

static char *hint(const struct origin *self, const char *name) {
  if (!is_function_name(name) || loaded_address(&file_of(self)->loaded, name) == NULL) return NULL;
  if (has_declarations(&file_of(self)->loaded))
    return heap_format(
        "; %s has a C function '%s' without a declaration: export it with "
        "--function '%s=<its C type>'; an export prints why it leaves a function out, "
        "with a declaration that works",
        self->path, name, name);
  return heap_format("; %s has a C function '%s' without a declaration: export it with --function "
                     "'%s=int(int)', if it is int %s(int), and else with its own type",
                     self->path, name, name, name);
}

void file_origin_release_needed(struct file_origin *self) {
  while (self->needed != NULL) {
    struct file_origin *needed = self->needed;
    self->needed = needed->next;
    object_release(&needed->origin.object);
  }
}

/* Close the descriptor last: dlopen compares names first, and a new file may get its number. */
static void close_file(struct origin *self) {
  struct file_origin *file = (struct file_origin *)(void *)self;
  loaded_close(&file->loaded);
  file_origin_release_needed(file);
  if (file->descriptor >= 0) close(file->descriptor);
}

static int is_read_only(const struct origin *self, const void *address) {
  const struct loaded *loaded = &file_of(self)->loaded;
  uint64_t at = (uint64_t)(uintptr_t)address - (uint64_t)(uintptr_t)loaded->address;
  for (uint32_t i = 0; i < loaded->image.num_loads; i++) {
    const struct elf_segment *load = &loaded->image.loads[i];
    if (at - load->vaddr < load->memsz) return (load->flags & PF_W) == 0;
  }
  return 0;
}

const struct origin_type file_origin_type = {
    .data = data,
    .function = function,
    .visit_symbols = visit_symbols,
    .is_read_only = is_read_only,
    .hint = hint,
    .close = close_file,
};

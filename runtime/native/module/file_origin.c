/* An open library file as the origin of modules: its symbols. */
#include "module/file_origin.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "elf/layout.h"

static const struct file_origin *file_of(const struct origin *origin) {
  return (const struct file_origin *)(const void *)origin;
}

static int data(const struct origin *self, const char *name, const uint8_t **bytes,
                size_t *nbytes) {
  const struct loaded *loaded = &file_of(self)->loaded;
  struct elf_symbol symbol;
  if (!loaded_symbol(loaded, name, &symbol)) return 0;
  const char *wrong = loaded_data(loaded, &symbol, bytes);
  *nbytes = (size_t)symbol.size;
  if (wrong == NULL) return 1;
  return raised_format("LibraryLoadError", "%s: %s at 0x%" PRIx64 ": %s", self->path, name,
                       symbol.value, wrong);
}

static int function(const struct origin *self, const char *name, struct found_function *found,
                    struct load_error *error) {
  return loaded_function(&file_of(self)->loaded, name, found, error);
}

/* ---- Names */

static int visit_symbols(const struct origin *self, const char *start,
                         int (*visit)(void *arg, const char *symbol), void *arg) {
  const struct loaded *loaded = &file_of(self)->loaded;
  return elf_visit_defined(&loaded->image, elf_at_loaded, loaded->address, start, visit, arg);
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

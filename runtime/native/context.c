#include "context.h"

#include "loaded.h"
#include "raised.h"

typedef void (*context_value)(const char *kind, const char *message);

enum { FLAG_WRITE = 2, TYPE_OBJECT = 1 }; /* gABI, Program Header and Symbol Table */

/* The variable usually lies in .bss, so memory counts here, not file bytes. */
static int lies_in_writable_memory(const struct elf_image *image, uint64_t vaddr) {
  for (uint32_t i = 0; i < image->num_loads; i++) {
    const struct elf_segment *load = &image->loads[i];
    if (vaddr >= load->vaddr && vaddr - load->vaddr < load->memsz &&
        load->memsz - (vaddr - load->vaddr) >= sizeof(context_value))
      return (load->flags & FLAG_WRITE) != 0;
  }
  return 0;
}

static void fill(const struct loaded *library, const char *name, context_value value) {
  struct elf_symbol symbol;
  if (!loaded_symbol(library, name, &symbol) || symbol.type != TYPE_OBJECT ||
      symbol.size != sizeof value || symbol.value % sizeof value != 0 ||
      !lies_in_writable_memory(&library->image, symbol.value))
    return;
  context_value *variable = (context_value *)(uintptr_t)(library->address + symbol.value);
  if (*variable == NULL) *variable = value;
}

void context_fill(const struct loaded *library) {
  fill(library, "__TVMFFIErrorSetRaisedFromCStr", raised_set);
}

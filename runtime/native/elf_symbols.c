#include "elf_reader.h"
int elf_check_symbols(struct elf_reader *reader) {
  struct elf_table table;
  if (elf_table_at(reader, DT_SYMTAB, reader->image->num_symbols * sizeof(struct elf_symbol_entry), &table) != 0) return -1;
  reader->image->symtab = table.vaddr;
  return 0;
}

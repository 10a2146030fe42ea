#include "elf_reader.h"
int elf_check_relocations(struct elf_reader *reader) { (void)reader; return 0; }

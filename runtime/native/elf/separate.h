/* Data in a separate segment. */
#pragma once

#include "elf/elf.h"

/* True if the object only names the bytes of a data symbol: they are in a read-only PT_LOAD that has
 * the section ".packer.blob" and nothing else, no other program header or symbol shares them, and no
 * relocation writes to that segment or stores an address in it. The loader then needs no byte of
 * them, and neither does the object's code, unless it asks for the symbol by its name.
 *
 * `file` passed elf_check, which filled `image`; `symbol` was found in it. */
int elf_is_separate(const uint8_t *file, uint64_t nbytes, const struct elf_image *image,
                    const struct elf_symbol *symbol);

/* Stubs: machine code that jumps to an address. */
#pragma once

#include <stdint.h>

enum { STUB_NBYTES = 24 };

/* Write a stub for an ELF machine. It changes only a register that calling conventions give to such
 * code. Return 0, or -1 if the machine has no stub here. */
int stub_write(uint16_t machine, uint64_t target, uint8_t code[STUB_NBYTES]);

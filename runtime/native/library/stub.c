/* Stubs: machine code that jumps to an address. Each loads the address from its own bytes, so it
 * may be located anywhere. */
#include "library/stub.h"

#include <string.h>

#include "elf/layout.h"

static const struct stub {
  uint16_t machine, address_at;
  uint8_t code[STUB_NBYTES];
} stubs[] = {
    {EM_X86_64, 6,
     "\xf3\x0f\x1e\xfa"                         /* endbr64 */
     "\x48\xb8\x00\x00\x00\x00\x00\x00\x00\x00" /* movabs rax, address */
     "\xff\xe0"},                               /* jmp rax */
    {EM_AARCH64, 8,
     "\x50\x00\x00\x58"   /* ldr x16, address */
     "\x00\x02\x1f\xd6"}, /* br x16 */
    {EM_RISCV, 16,
     "\x17\x0e\x00\x00"   /* auipc t3, 0 */
     "\x03\x3e\x0e\x01"   /* ld t3, 16(t3) */
     "\x67\x00\x0e\x00"   /* jr t3 */
     "\x13\x00\x00\x00"}, /* nop */
};

int stub_write(uint16_t machine, uint64_t target, uint8_t code[STUB_NBYTES]) {
  for (size_t i = 0; i < sizeof stubs / sizeof *stubs; i++) {
    if (stubs[i].machine != machine) continue;
    memcpy(code, stubs[i].code, STUB_NBYTES);
    memcpy(code + stubs[i].address_at, &target, sizeof target);
    return 0;
  }
  return -1;
}

/* The relocation types that a shared object may contain, per machine. Other types are refused.
 *
 * Sources: the psABI of each machine for the numbers, glibc's elf_machine_rela for what each type
 * writes and reads. COPY is for executables only. Types that edit instructions are text
 * relocations. */

#include "elf/reader.h"

enum {
  NONE = ELF_RELOCATES_NOTHING,
  RELATIVE = ELF_RELOCATES_RELATIVE,
  ADDRESS = ELF_RELOCATES_ADDRESS,
  IRELATIVE = ELF_RELOCATES_RESOLVED,
  SYMBOL = ELF_RELOCATES_SYMBOL,
  SIZE = ELF_RELOCATES_SIZE,
  TLS = ELF_RELOCATES_TLS,
};

static const struct elf_relocation_type x86_64[] = {
    {8, RELATIVE, 8},   {7, SYMBOL, 8}, /* JUMP_SLOT */
    {1, ADDRESS, 8},                    /* 64 */
    {6, SYMBOL, 8},                     /* GLOB_DAT */
    {37, IRELATIVE, 8}, {16, TLS, 8},   /* DTPMOD64 */
    {17, TLS, 8},                       /* DTPOFF64 */
    {18, TLS, 8},                       /* TPOFF64 */
    {36, TLS, 16},                      /* TLSDESC */
    {2, SYMBOL, 4},                     /* PC32 */
    {10, SYMBOL, 4},                    /* 32 */
    {32, SIZE, 4},                      /* SIZE32 */
    {33, SIZE, 8},                      /* SIZE64 */
    {0, NONE, 0},
};

static const struct elf_relocation_type aarch64[] = {
    {1027, RELATIVE, 8},  {1026, SYMBOL, 8}, /* JUMP_SLOT */
    {257, ADDRESS, 8},                       /* ABS64 */
    {1025, SYMBOL, 8},                       /* GLOB_DAT */
    {1032, IRELATIVE, 8}, {1028, TLS, 8},    /* TLS_DTPMOD */
    {1029, TLS, 8},                          /* TLS_DTPREL */
    {1030, TLS, 8},                          /* TLS_TPREL */
    {1031, TLS, 16},                         /* TLSDESC */
    {258, SYMBOL, 8},                        /* ABS32; glibc writes 8 bytes */
    {0, NONE, 0},
};

static const struct elf_relocation_type riscv64[] = {
    {3, RELATIVE, 8},   {5, SYMBOL, 8}, /* JUMP_SLOT */
    {2, ADDRESS, 8},                    /* 64 */
    {58, IRELATIVE, 8}, {7, TLS, 8},    /* TLS_DTPMOD64 */
    {9, TLS, 8},                        /* TLS_DTPREL64 */
    {11, TLS, 8},                       /* TLS_TPREL64 */
    {12, TLS, 16},                      /* TLSDESC */
    {0, NONE, 0},
};

static const struct elf_relocation_type ppc64[] = {
    {22, RELATIVE, 8},   {21, SYMBOL, 8},     /* JMP_SLOT */
    {38, ADDRESS, 8},                         /* ADDR64 */
    {20, SYMBOL, 8},                          /* GLOB_DAT */
    {248, IRELATIVE, 8}, {247, IRELATIVE, 8}, /* JMP_IREL */
    {68, TLS, 16},                            /* DTPMOD64; it may also write the next entry */
    {78, TLS, 8},                             /* DTPREL64 */
    {73, TLS, 8},                             /* TPREL64 */
    {43, SYMBOL, 8},                          /* UADDR64 */
    {44, SYMBOL, 8},                          /* REL64 */
    {1, SYMBOL, 4},                           /* ADDR32 */
    {24, SYMBOL, 4},                          /* UADDR32 */
    {26, SYMBOL, 4},                          /* REL32 */
    {0, NONE, 0},
};

static const struct elf_relocation_type loongarch[] = {
    {3, RELATIVE, 8},   {5, SYMBOL, 8}, /* JUMP_SLOT */
    {2, ADDRESS, 8},                    /* 64 */
    {12, IRELATIVE, 8}, {7, TLS, 8},    /* TLS_DTPMOD64 */
    {9, TLS, 8},                        /* TLS_DTPREL64 */
    {11, TLS, 8},                       /* TLS_TPREL64 */
    {14, TLS, 16},                      /* TLS_DESC64 */
    {0, NONE, 0},
};

#define TYPES(machine, rows) {machine, sizeof(rows) / sizeof *(rows), rows}
static const struct elf_relocation_types machines[] = {
    TYPES(EM_X86_64, x86_64), TYPES(EM_AARCH64, aarch64),     TYPES(EM_RISCV, riscv64),
    TYPES(EM_PPC64, ppc64),   TYPES(EM_LOONGARCH, loongarch),
};

const struct elf_relocation_types *elf_relocation_types(uint16_t machine) {
  for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
    if (machines[i].machine == machine) return &machines[i];
  return NULL;
}

const struct elf_relocation_type *elf_relocation_type(const struct elf_relocation_types *types,
                                                      uint32_t number) {
  for (size_t i = 0; i < types->count; i++)
    if (types->rows[i].number == number) return &types->rows[i];
  return NULL;
}

/* ELF-64 structures and numbers, by the names of the gABI ("System V ABI, chapters 4 and 5").
 *
 * <elf.h> is not used: some systems lack it. Tables in a hostile file may be unaligned, so copy an
 * entry out of the file (memcpy) before reading it. Only little-endian files on little-endian
 * machines are supported. */
#pragma once

#include <stdint.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "little-endian machines only");

struct elf_header { /* Elf64_Ehdr */
  uint8_t e_ident[16];
  uint16_t e_type, e_machine;
  uint32_t e_version;
  uint64_t e_entry, e_phoff, e_shoff;
  uint32_t e_flags;
  uint16_t e_ehsize, e_phentsize, e_phnum, e_shentsize, e_shnum, e_shstrndx;
};

struct elf_program_header { /* Elf64_Phdr */
  uint32_t p_type, p_flags;
  uint64_t p_offset, p_vaddr, p_paddr, p_filesz, p_memsz, p_align;
};

struct elf_section_header { /* Elf64_Shdr */
  uint32_t sh_name, sh_type;
  uint64_t sh_flags, sh_addr, sh_offset, sh_size;
  uint32_t sh_link, sh_info;
  uint64_t sh_addralign, sh_entsize;
};

struct elf_dynamic_entry { /* Elf64_Dyn */
  uint64_t d_tag, d_val;
};

struct elf_symbol_entry { /* Elf64_Sym */
  uint32_t st_name;
  uint8_t st_info, st_other;
  uint16_t st_shndx;
  uint64_t st_value, st_size;
};

struct elf_rela { /* Elf64_Rela */
  uint64_t r_offset, r_info, r_addend;
};

struct elf_gnu_hash { /* then uint64_t bloom[], uint32_t buckets[], uint32_t chains[] */
  uint32_t num_buckets, symbol_offset, bloom_size, bloom_shift;
};

struct elf_sysv_hash { /* then uint32_t buckets[], uint32_t chains[] */
  uint32_t num_buckets, num_chains;
};

struct elf_verneed { /* Elf64_Verneed */
  uint16_t vn_version, vn_cnt;
  uint32_t vn_file, vn_aux, vn_next;
};

struct elf_vernaux { /* Elf64_Vernaux */
  uint32_t vna_hash;
  uint16_t vna_flags, vna_other;
  uint32_t vna_name, vna_next;
};

struct elf_verdef { /* Elf64_Verdef */
  uint16_t vd_version, vd_flags, vd_ndx, vd_cnt;
  uint32_t vd_hash, vd_aux, vd_next;
};

struct elf_verdaux { /* Elf64_Verdaux */
  uint32_t vda_name, vda_next;
};

struct elf_note { /* Elf64_Nhdr; then name and descriptor, each padded */
  uint32_t n_namesz, n_descsz, n_type;
};

_Static_assert(sizeof(struct elf_header) == 64, "Elf64_Ehdr");
_Static_assert(sizeof(struct elf_program_header) == 56, "Elf64_Phdr");
_Static_assert(sizeof(struct elf_section_header) == 64, "Elf64_Shdr");
_Static_assert(sizeof(struct elf_dynamic_entry) == 16, "Elf64_Dyn");
_Static_assert(sizeof(struct elf_symbol_entry) == 24, "Elf64_Sym");
_Static_assert(sizeof(struct elf_rela) == 24, "Elf64_Rela");
_Static_assert(sizeof(struct elf_verneed) == 16 && sizeof(struct elf_vernaux) == 16, "needed");
_Static_assert(sizeof(struct elf_verdef) == 20 && sizeof(struct elf_verdaux) == 8, "defined");

/* gABI, ELF Header: e_ident, e_type, e_machine */
enum { EI_CLASS = 4, EI_DATA = 5, EI_VERSION = 6, EI_OSABI = 7 };
enum { ELFCLASS32 = 1, ELFCLASS64 = 2, ELFDATA2LSB = 1, ELFDATA2MSB = 2, EV_CURRENT = 1 };
enum { ELFOSABI_NONE = 0, ELFOSABI_GNU = 3 };
enum { ET_REL = 1, ET_EXEC = 2, ET_DYN = 3, ET_CORE = 4 };
enum {
  EM_386 = 3,
  EM_MIPS = 8,
  EM_PPC64 = 21,
  EM_S390 = 22,
  EM_ARM = 40,
  EM_X86_64 = 62,
  EM_AARCH64 = 183,
  EM_CUDA = 190,
  EM_AMDGPU = 224,
  EM_RISCV = 243,
  EM_LOONGARCH = 258,
};

/* gABI, Program Header */
enum { PN_XNUM = 0xffff };
enum { PT_LOAD = 1, PT_DYNAMIC = 2, PT_INTERP = 3, PT_NOTE = 4, PT_PHDR = 6, PT_TLS = 7 };
enum {
  PT_GNU_EH_FRAME = 0x6474e550,
  PT_GNU_STACK = 0x6474e551,
  PT_GNU_RELRO = 0x6474e552,
  PT_GNU_PROPERTY = 0x6474e553,
};
enum { PF_X = 1, PF_W = 2, PF_R = 4 };

/* gABI, Sections; Symbol Table */
enum { SHN_UNDEF = 0, SHN_LORESERVE = 0xff00, SHN_ABS = 0xfff1, SHN_XINDEX = 0xffff };
enum {
  VERSION_INDEX = 0x7fff,
  VER_NDX_GLOBAL = 1
}; /* of a version index; the other bit hides the symbol */
enum { SHF_ALLOC = 2, SHF_TLS = 0x400, STV_DEFAULT = 0 };
enum { STB_LOCAL = 0, STB_GLOBAL = 1, STB_WEAK = 2 };
enum { SHT_NULL = 0, SHT_STRTAB = 3, SHT_DYNAMIC = 6, SHT_NOBITS = 8, SHT_DYNSYM = 11 };
enum {
  STT_NOTYPE = 0,
  STT_OBJECT = 1,
  STT_FUNC = 2,
  STT_SECTION = 3,
  STT_TLS = 6,
  STT_GNU_IFUNC = 10
};

/* gABI, Dynamic Section; GNU and Solaris extensions from binutils include/elf/common.h */
enum {
  DT_NULL = 0,
  DT_NEEDED = 1,
  DT_PLTRELSZ = 2,
  DT_PLTGOT = 3,
  DT_HASH = 4,
  DT_STRTAB = 5,
  DT_SYMTAB = 6,
  DT_RELA = 7,
  DT_RELASZ = 8,
  DT_RELAENT = 9,
  DT_STRSZ = 10,
  DT_SYMENT = 11,
  DT_INIT = 12,
  DT_FINI = 13,
  DT_SONAME = 14,
  DT_RPATH = 15,
  DT_REL = 17,
  DT_PLTREL = 20,
  DT_TEXTREL = 22,
  DT_JMPREL = 23,
  DT_INIT_ARRAY = 25,
  DT_FINI_ARRAY = 26,
  DT_INIT_ARRAYSZ = 27,
  DT_FINI_ARRAYSZ = 28,
  DT_RUNPATH = 29,
  DT_FLAGS = 30,
  DT_PREINIT_ARRAY = 32,
  DT_PREINIT_ARRAYSZ = 33,
  DT_RELRSZ = 35,
  DT_RELR = 36,
  DT_RELRENT = 37,
  DT_GNU_HASH = 0x6ffffef5,
  DT_DEPAUDIT = 0x6ffffefb,
  DT_AUDIT = 0x6ffffefc,
  DT_VERSYM = 0x6ffffff0,
  DT_RELACOUNT = 0x6ffffff9,
  DT_FLAGS_1 = 0x6ffffffb,
  DT_VERDEF = 0x6ffffffc,
  DT_VERDEFNUM = 0x6ffffffd,
  DT_VERNEED = 0x6ffffffe,
  DT_VERNEEDNUM = 0x6fffffff,
  DT_AUXILIARY = 0x7ffffffd,
  DT_FILTER = 0x7fffffff,
};
enum { DF_TEXTREL = 4, DF_1_PIE = 0x08000000 };

/* The kind of file: an ELF-64 shared object for one machine, or the name of another format. */

#include "elf/reader.h"

/* Formats that users pass by mistake, recognised by the bytes at one offset. */
static const struct format {
  uint16_t offset;
  uint8_t length;
  const char *magic, *text;
} formats[] = {
    {0, 8, "!<arch>\n", "an ar archive (static library); link it first with packer link"},
    {0, 8, "!<thin>\n", "a thin ar archive (static library); link it first (cc -shared)"},
    {257, 5, "ustar", "a tar archive; link it first with packer link"},
    {0, 4, "\xfe\xed\xfa\xce", "a 32-bit big-endian Mach-O file (macOS)"},
    {0, 4, "\xfe\xed\xfa\xcf", "a 64-bit big-endian Mach-O file (macOS)"},
    {0, 4, "\xce\xfa\xed\xfe", "a 32-bit Mach-O file (macOS)"},
    {0, 4, "\xcf\xfa\xed\xfe", "a 64-bit Mach-O file (macOS)"},
    {0, 4, "\xca\xfe\xba\xbe", "a fat Mach-O file (macOS)"},
    {0, 4, "\xca\xfe\xba\xbf", "a fat Mach-O file (macOS)"},
    {0, 4, "\0asm", "a WebAssembly module"},
    {0, 4, "BC\xc0\xde", "LLVM bitcode; compile and link it first"},
    {0, 4, "\xde\xc0\x17\x0b", "LLVM bitcode; compile and link it first"},
    {0, 2, "PK", "a ZIP archive; take the library out of it first"},
    {0, 2, "\x1f\x8b", "gzip data; unpack it first"},
    {0, 6,
     "\xfd"
     "7zXZ\0",
     "xz data; unpack it first"},
    {0, 4, "\x28\xb5\x2f\xfd", "zstd data; unpack it first"},
    {0, 3, "BZh", "bzip2 data; unpack it first"},
    {0, 2, "#!", "a script"},
    {0, 16, "/* GNU ld script", "a linker script; load the library that it names"},
    {0, 2, "MZ", "a PE file (Windows)"},
};

static const struct machine {
  uint16_t number;
  const char *name;
} machines[] = {
    {EM_386, "x86"},
    {EM_MIPS, "MIPS"},
    {EM_PPC64, "ppc64"},
    {EM_S390, "s390"},
    {EM_ARM, "arm"},
    {EM_CUDA, "CUDA"},
    {EM_X86_64, "x86-64"},
    {EM_AARCH64, "aarch64"},
    {EM_AMDGPU, "AMD GPU"},
    {EM_RISCV, "riscv"},
    {EM_LOONGARCH, "loongarch"},
};

static const char *machine_name(uint16_t number) {
  for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
    if (machines[i].number == number) return machines[i].name;
  return "an unknown machine";
}

static const char *class_name(uint8_t number) {
  return number == ELFCLASS64 ? "64-bit" : number == ELFCLASS32 ? "32-bit" : "unknown class";
}

static const char *data_name(uint8_t number) {
  return number == ELFDATA2LSB   ? "little-endian"
         : number == ELFDATA2MSB ? "big-endian"
                                 : "unknown byte order";
}

static int refuse_magic(struct elf_reader *reader) {
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
    const struct format *format = &formats[i];
    if (elf_within(format->offset, format->length, reader->nbytes) &&
        memcmp(reader->file + format->offset, format->magic, format->length) == 0)
      return elf_refuse(reader, ELF_FORMAT, "file header: not an ELF shared object, found %s",
                        format->text);
  }
  if (reader->nbytes == 0)
    return elf_refuse(reader, ELF_NOT_ELF,
                      "file header: not an ELF shared object, found an empty file");
  uint8_t magic[4] = {0};
  uint64_t length = reader->nbytes < sizeof magic ? reader->nbytes : sizeof magic;
  memcpy(magic, reader->file, length);
  return elf_refuse(reader, ELF_NOT_ELF,
                    "file header: not an ELF shared object, expected bytes 7f 45 4c 46, "
                    "found %02x %02x %02x %02x",
                    magic[0], magic[1], magic[2], magic[3]);
}

static int check_magic(struct elf_reader *reader) {
  uint64_t length = reader->nbytes < 4 ? reader->nbytes : 4;
  if (length == 0 || memcmp(reader->file, "\177ELF", length) != 0) return refuse_magic(reader);
  if (reader->nbytes < sizeof reader->header)
    return elf_refuse(reader, ELF_TRUNCATED,
                      "ELF header: not an ELF shared object, expected at least %zu bytes, found "
                      "%" PRIu64,
                      sizeof reader->header, reader->nbytes);
  memcpy(&reader->header, reader->file, sizeof reader->header);
  return 0;
}

/* e_machine has the same offset in all classes and byte orders. */
static int check_machine(struct elf_reader *reader, uint16_t expected) {
  const uint8_t *ident = reader->header.e_ident;
  uint16_t found = reader->header.e_machine;
  if (ident[EI_DATA] == ELFDATA2MSB) found = (uint16_t)(found << 8 | found >> 8);
  if (found == expected && ident[EI_CLASS] == ELFCLASS64 && ident[EI_DATA] == ELFDATA2LSB) return 0;
  return elf_refuse(reader, ELF_MACHINE,
                    "ELF header: made for another machine, expected %s (64-bit little-endian), "
                    "found %s (e_machine %u, %s %s)",
                    machine_name(expected), machine_name(found), found, class_name(ident[EI_CLASS]),
                    data_name(ident[EI_DATA]));
}

static int check_type(struct elf_reader *reader) {
  const char *what = "an unknown e_type; the file may be damaged";
  switch (reader->header.e_type) {
    case ET_DYN: return 0;
    case ET_REL: what = "a relocatable object (.o); link it first with packer link"; break;
    case ET_EXEC: what = "an executable; link with -shared -fPIC instead"; break;
    case ET_CORE: what = "a core dump"; break;
    default: break;
  }
  return elf_refuse(reader, ELF_FORMAT,
                    "ELF header: not an ELF shared object, expected e_type 3 (ET_DYN), found %u: "
                    "%s",
                    reader->header.e_type, what);
}

/* glibc maps objects of these two systems only (elf/dl-load.c, open_verify). */
static int check_system(struct elf_reader *reader) {
  const uint8_t *ident = reader->header.e_ident;
  if (ident[EI_OSABI] != ELFOSABI_NONE && ident[EI_OSABI] != ELFOSABI_GNU)
    return elf_refuse(reader, ELF_MACHINE,
                      "ELF header: made for another system, expected EI_OSABI 0 or 3 (GNU/Linux), "
                      "found %u",
                      ident[EI_OSABI]);
  if (ident[EI_VERSION] != EV_CURRENT || reader->header.e_version != EV_CURRENT)
    return elf_refuse(reader, ELF_MALFORMED,
                      "ELF header: version, expected 1 and 1, found %u and %" PRIu32,
                      ident[EI_VERSION], reader->header.e_version);
  return 0;
}

int elf_identify(struct elf_reader *reader, uint16_t machine) {
  reader->image->machine = machine;
  if (check_magic(reader) != 0 || check_machine(reader, machine) != 0) return -1;
  return check_system(reader) != 0 ? -1 : check_type(reader);
}

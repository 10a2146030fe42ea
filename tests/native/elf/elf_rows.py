"""Pokes that the static check must refuse: one per row, and the words of the guard."""

from __future__ import annotations

from collections.abc import Callable

from ...support.elf_poke import SIZES, Elf, Record

Poke = Callable[[Elf], object]

R, RX, RW = 4, 5, 6
TERABYTE = 1 << 40
# psABI of x86-64
RELATIVE, GLOB_DAT, JUMP_SLOT, COPY, IRELATIVE = 8, 6, 7, 5, 37
DTPMOD64, DTPOFF64, TPOFF64, SIZE64 = 16, 17, 18, 33
WEAK_FUNCTION = 0x22  # st_info


def poke(record: Callable[[Elf], Record], field: str, value: int) -> Poke:
    """Write one field of a record that is found when the library is there."""
    return lambda elf: elf.poke(record(elf), field, value)


def add(record: Callable[[Elf], Record], field: str, value: int) -> Poke:
    """Add to one field."""
    return lambda elf: elf.poke(record(elf), field, elf.peek(record(elf), field) + value)


def header(field: str, value: int) -> Poke:
    """Write one field of the ELF header."""
    return poke(lambda elf: elf.header, field, value)


def ident(index: int, value: int) -> Poke:
    """Write one byte of e_ident."""
    return poke(lambda _: Record("u8", index), "word", value)


def load(flags: int, field: str, value: int) -> Poke:
    """Write one field of the PT_LOAD with these flags."""
    return poke(lambda elf: elf.load(flags), field, value)


def program(name: str, field: str, value: int) -> Poke:
    """Write one field of the first program header of a type."""
    return poke(lambda elf: elf.program(name), field, value)


def tag(name: str, value: int) -> Poke:
    """Write the value of a dynamic tag."""
    return poke(lambda elf: elf.tag(name), "d_val", value)


def retag(name: str, number: int) -> Poke:
    """Turn one dynamic tag into another."""
    return poke(lambda elf: elf.tag(name), "d_tag", number)


def symbol(name: str, field: str, value: int) -> Poke:
    """Write one field of a dynamic symbol."""
    return poke(lambda elf: elf.symbol(name), field, value)


def rela(r_type: int, field: str, value: int) -> Poke:
    """Write one field of the first relocation of a type."""
    return poke(lambda elf: elf.rela(r_type), field, value)


def section(name: str, field: str, value: int) -> Poke:
    """Write one field of the first section header of a type."""
    return poke(lambda elf: elf.section(name), field, value)


def gnu_hash(field: str, value: int) -> Poke:
    """Write one field of the GNU hash table's header."""
    return poke(lambda elf: elf.table("gnu_hash", "GNU_HASH"), field, value)


def hash_word(index: int, value: int) -> Poke:
    """Write one word of the SysV hash table: 2 numbers, the buckets, the chains."""
    return poke(lambda elf: elf.table("u32", "HASH", index), "word", value)


def gnu_bucket(elf: Elf, nth: int) -> Record:
    """Find the nth bucket of the GNU hash table."""
    table = elf.table("gnu_hash", "GNU_HASH")
    offset = table.offset + SIZES["gnu_hash"] + 8 * elf.peek(table, "bloom_size")
    return Record("u32", offset + 4 * nth)


def no_chain_end(elf: Elf) -> None:
    """Point a bucket so far that its chain leaves the segment."""
    elf.poke(gnu_bucket(elf, 0), "word", 0x7FFFFFFF)


def chain_cycle(elf: Elf) -> None:
    """Let the symbol at the head of bucket 0 follow itself for ever."""
    buckets = elf.peek(elf.table("u32", "HASH", 0), "word")
    for nth in range(buckets):
        head = elf.peek(elf.table("u32", "HASH", 2 + nth), "word")
        if head:
            elf.poke(elf.table("u32", "HASH", 2 + buckets + head), "word", head)
            return


def many_loads(elf: Elf) -> None:
    """Append a table of 65 empty PT_LOADs and make it the program header table."""
    table = len(elf.data)
    for i in range(65):
        record = Record("program", table + i * SIZES["program"])
        elf.data += bytes(SIZES["program"])
        elf.poke(record, "p_type", 1).poke(record, "p_align", 4096)
        elf.poke(record, "p_vaddr", i * 4096)
    elf.poke(elf.header, "e_phoff", table).poke(elf.header, "e_phnum", 65)


def no_loads(elf: Elf) -> None:
    """Take away every PT_LOAD."""
    for record in elf.programs("LOAD"):
        elf.poke(record, "p_type", 0)


def move_dynamic(elf: Elf) -> None:
    """Let PT_DYNAMIC name other file bytes than its address shows."""
    add(lambda elf: elf.program("DYNAMIC"), "p_offset", 16)(elf)


def lose_last_null(elf: Elf) -> None:
    """Cut PT_DYNAMIC after its first entry."""
    elf.poke(elf.program("DYNAMIC"), "p_filesz", 16).poke(elf.program("DYNAMIC"), "p_memsz", 16)


def end_strings_without_nul(elf: Elf) -> None:
    """Shorten the string table by its last byte."""
    elf.poke(elf.tag("STRSZ"), "d_val", elf.peek(elf.tag("STRSZ"), "d_val") - 1)


def relro(elf: Elf) -> Record:
    """Find the program header of the part that is read-only after relocation."""
    return elf.program("RELRO")


def relro_over_data(elf: Elf) -> None:
    """Let the pages that become read-only reach over .data."""
    add(relro, "p_memsz", 0x1000)(elf)


def into(tag_name: str, offset: int) -> Poke:
    """Move the target of a symbol's relocation to an address that a tag, or PT_DYNAMIC, has."""

    def write(elf: Elf) -> None:
        if tag_name == "DYNAMIC":
            start = elf.peek(elf.program("DYNAMIC"), "p_vaddr")
        else:
            start = elf.peek(elf.tag(tag_name), "d_val")
        elf.poke(elf.rela(GLOB_DAT), "r_offset", start + offset)

    return write


def relocate_twice(elf: Elf) -> None:
    """Let another relocation write to the entry of DT_INIT_ARRAY, too."""
    first, other = elf.table("rela", "RELA"), elf.table("rela", "RELA", 2)
    for field in ("r_offset", "r_addend"):
        elf.poke(other, field, elf.peek(first, field))


def weak_function_in_array(elf: Elf) -> None:
    """Let the entry of DT_INIT_ARRAY be a function that need not be there."""
    elf.poke(elf.tag("RELACOUNT"), "d_val", 0).poke(elf.symbol("sin"), "st_info", WEAK_FUNCTION)
    elf.poke(elf.table("rela", "RELA"), "r_type", 1)
    elf.poke(elf.table("rela", "RELA"), "r_symbol", elf.symbol_index("sin"))


def lose_tls(elf: Elf) -> None:
    """Take PT_TLS away, and the symbol that is checked against it."""
    elf.poke(elf.program("TLS"), "p_type", 0)


def tls_beyond(elf: Elf) -> None:
    """Let a thread-local variable that no relocation names be stored outside of PT_TLS."""
    for r_type in (DTPMOD64, DTPOFF64):
        elf.poke(elf.rela(r_type), "r_type", 0)
    elf.poke(elf.symbol("per_thread"), "st_value", 9)


def size_of_weak(elf: Elf) -> None:
    """Ask for the size of a function that need not be there."""
    elf.poke(elf.symbol("sin"), "st_info", WEAK_FUNCTION)
    elf.poke(elf.rela(JUMP_SLOT), "r_type", SIZE64)
    elf.poke(elf.rela(SIZE64), "r_symbol", elf.symbol_index("sin"))


def rename(name: str) -> Poke:
    """Change the first letter of a symbol's name in the string table."""

    def write(elf: Elf) -> None:
        start = elf.table("u8", "STRTAB").offset + elf.peek(elf.symbol(name), "st_name")
        elf.data[start] ^= 1

    return write


def gnu_word(elf: Elf, name: str) -> Record:
    """Find the word of a symbol in the chains of the GNU hash table."""
    table = elf.table("gnu_hash", "GNU_HASH")
    nth = elf.peek(table, "num_buckets") - elf.peek(table, "symbol_offset")
    return gnu_bucket(elf, nth + elf.symbol_index(name))


def change_hash(elf: Elf) -> None:
    """Change one bit of the hash that is stored for a symbol."""
    elf.poke(gnu_word(elf, "add"), "word", elf.peek(gnu_word(elf, "add"), "word") ^ 0x100)


def empty_filter(elf: Elf) -> None:
    """Let the filter of the GNU hash table pass nothing."""
    table = elf.table("gnu_hash", "GNU_HASH")
    for i in range(elf.peek(table, "bloom_size")):
        elf.poke(Record("u64", table.offset + SIZES["gnu_hash"] + 8 * i), "word", 0)


def lose_bucket(elf: Elf) -> None:
    """Empty the first bucket that has symbols."""
    nth = next(i for i in range(100) if elf.peek(gnu_bucket(elf, i), "word"))
    elf.poke(gnu_bucket(elf, nth), "word", 0)


def init_array_entry(elf: Elf) -> Record:
    """Find the relocation of the first entry of DT_INIT_ARRAY."""
    return elf.rela(RELATIVE)


def needed_version(elf: Elf) -> Record:
    """Find the first record of DT_VERNEED."""
    return elf.table("verneed", "VERNEED")


def version_index(elf: Elf) -> Record:
    """Find the version index of `add`."""
    return elf.table("u16", "VERSYM", elf.symbol_index("add"))


def data_address(elf: Elf) -> int:
    """Get the address of `data`, which is writable and not executable."""
    return elf.peek(elf.symbol("data"), "st_value")


def code_in_data(*names: str) -> Poke:
    """Point functions at data."""

    def write(elf: Elf) -> None:
        for name in names:
            elf.poke(elf.symbol(name), "st_value", data_address(elf))

    return write


ROWS: dict[str, tuple[Poke, str, str]] = {
    # The ELF header
    "class 32": (ident(4, 1), "machine", "expected x86-64 .64-bit .* found x86-64 .*32-bit"),
    "data big": (ident(5, 2), "machine", "expected x86-64 .* big-endian"),
    "data 9": (ident(5, 9), "machine", "unknown byte order"),
    "system": (ident(7, 9), "machine", "EI_OSABI 0 or 3 .* found 9"),
    "ident version": (ident(6, 0), "malformed", "ELF header: version, expected 1"),
    "version": (header("e_version", 2), "malformed", "ELF header: version, expected 1"),
    "aarch64": (header("e_machine", 183), "machine", "expected x86-64 .* found aarch64"),
    "machine": (header("e_machine", 9999), "machine", "found an unknown machine .e_machine 9999"),
    "ET_REL": (header("e_type", 1), "format", "relocatable object .* link it first"),
    "ET_EXEC": (header("e_type", 2), "format", "found 2: an executable"),
    "ET_CORE": (header("e_type", 4), "format", "a core dump"),
    "e_type": (header("e_type", 77), "format", "found 77: an unknown e_type"),
    "phentsize": (header("e_phentsize", 32), "malformed", "e_phentsize, expected 56, found 32"),
    "phnum 0": (header("e_phnum", 0), "malformed", "e_phnum, expected 1 to 4096, found 0"),
    "PN_XNUM": (header("e_phnum", 0xFFFF), "malformed", "e_phnum, .* found 65535"),
    "phnum": (header("e_phnum", 4096), "truncated", "program header table .* 4096 entries"),
    "phoff": (header("e_phoff", 1 << 63), "truncated", "program header table at 0x8000"),
    "shoff": (header("e_shoff", (1 << 64) - 64), "truncated", "section header table at 0xffff"),
    "shoff 0": (header("e_shoff", 0), "malformed", "e_shoff, expected 0x40 or more .* found 0x0"),
    "shnum": (header("e_shnum", 0xFEFF), "truncated", "section header table .* 65279 entries"),
    "shnum 0": (header("e_shnum", 0), "malformed", "section 0: sh_size with e_shnum 0"),
    "shentsize 0": (header("e_shentsize", 0), "malformed", "e_shentsize, expected 64, found 0"),
    "shentsize 1": (header("e_shentsize", 1), "malformed", "e_shentsize, expected 64, found 1"),
    "shentsize": (header("e_shentsize", 65535), "malformed", "e_shentsize, .* found 65535"),
    "shstrndx": (header("e_shstrndx", 0xFE00), "malformed", "e_shstrndx, expected below"),
    # Segments
    "offset": (load(RX, "p_offset", 1 << 40), "truncated", "file bytes, expected inside the file"),
    "filesz": (load(RW, "p_filesz", 1 << 63), "truncated", "file bytes, expected inside the file"),
    "memsz": (load(RX, "p_memsz", 1), "malformed", "p_memsz, expected at least p_filesz"),
    "1 TB": (load(RW, "p_memsz", TERABYTE), "malformed", "memory size, .* 64 GiB more"),
    "2^47": (load(RW, "p_vaddr", 1 << 47), "malformed", "address range, expected below 2.47"),
    "align 3": (load(RX, "p_align", 0x3000), "malformed", "p_align, expected a power of two"),
    "align 1": (load(RX, "p_align", 1), "malformed", "p_align, expected a power of two"),
    "modulo": (load(RX, "p_offset", 0x1008), "malformed", "p_offset, .* modulo the page"),
    "overlap": (load(RX, "p_vaddr", 0), "malformed", "p_vaddr, expected after the previous"),
    "same page": (load(R, "p_memsz", 0x1001), "malformed", "p_vaddr, expected after the previous"),
    "no loads": (no_loads, "malformed", "PT_LOAD, expected at least 1, found none"),
    "65 loads": (many_loads, "malformed", "program header 64: PT_LOAD, expected at most 64"),
    "RWX": (load(RX, "p_flags", 7), "policy", "writable and executable"),
    "unreadable": (load(R, "p_flags", 0), "malformed", "program headers .* a readable PT_LOAD"),
    "stack": (program("STACK", "p_flags", 7), "policy", "executable stack; link with -z noexec"),
    "no stack": (program("STACK", "p_type", 0), "policy", "PT_GNU_STACK, expected 1, found none"),
    "relro": (program("RELRO", "p_vaddr", 0), "malformed", "PT_GNU_RELRO, expected at the"),
    "relro data": (relro_over_data, "malformed", r"\.data, expected outside of PT_GNU_RELRO"),
    "relro offset": (add(relro, "p_offset", 8), "malformed", "PT_GNU_RELRO, expected at the start"),
    "note memsz": (program("NOTE", "p_memsz", 1 << 20), "malformed", "PT_NOTE, expected the same"),
    "headers": (program("NOTE", "p_type", 6), "malformed", "PT_PHDR, expected e_phoff 0x40"),
    "note": (program("NOTE", "p_vaddr", 1 << 40), "malformed", "PT_NOTE, expected inside"),
    "unwind": (program("EH_FRAME", "p_vaddr", 1), "malformed", "PT_GNU_EH_FRAME, expected inside"),
    "tls memsz": (program("TLS", "p_memsz", TERABYTE), "malformed", "PT_TLS, expected p_align"),
    "tls 17 MiB": (program("TLS", "p_memsz", 17 << 20), "malformed", "p_memsz at most 0x1000000"),
    "tls align 0": (program("TLS", "p_align", 0), "malformed", "PT_TLS, expected p_align a power"),
    "tls align": (program("TLS", "p_align", 3), "malformed", "PT_TLS, expected p_align a power"),
    "tls twice": (program("NOTE", "p_type", 7), "malformed", "PT_TLS, expected at most 1"),
    "dynamic twice": (program("TLS", "p_type", 2), "malformed", "PT_DYNAMIC"),
    "no dynamic": (program("DYNAMIC", "p_type", 0), "malformed", "PT_DYNAMIC, expected 1, found"),
    "dynamic size": (program("DYNAMIC", "p_filesz", 24), "malformed", "PT_DYNAMIC size, .* of 16"),
    "dynamic offset": (move_dynamic, "malformed", "PT_DYNAMIC, expected .* same file offset"),
    "dynamic beyond": (program("DYNAMIC", "p_offset", 1 << 40), "truncated", "expected inside the"),
    "dynamic read-only": (load(RW, "p_flags", R), "malformed", "writable PT_DYNAMIC"),
    # The dynamic section
    "no DT_NULL": (lose_last_null, "malformed", "DT_NULL, expected as the last of 1 entries"),
    "STRTAB twice": (retag("SYMTAB", 5), "malformed", "DT_STRTAB, expected 1, found another"),
    "no STRTAB": (retag("STRTAB", 0x6000), "malformed", "DT_STRTAB, expected 1, found none"),
    "no STRSZ": (retag("STRSZ", 0x6000), "malformed", "DT_STRSZ, expected 1, found none"),
    "no SYMTAB": (retag("SYMTAB", 0x6000), "malformed", "DT_SYMTAB, expected 1, found none"),
    "no hash": (retag("GNU_HASH", 0x6000), "malformed", "DT_GNU_HASH or DT_HASH, found neither"),
    "no RELASZ": (retag("RELASZ", 0x6000), "malformed", "DT_RELASZ, expected beside DT_RELA"),
    "no JMPREL": (retag("JMPREL", 0x6000), "malformed", "DT_JMPREL, expected beside DT_PLTRELSZ"),
    "no VERSYM": (retag("VERSYM", 0x6000), "malformed", "DT_VERSYM, expected beside DT_VERNEED"),
    "STRTAB": (tag("STRTAB", 1 << 40), "malformed", "DT_STRTAB: table, expected inside"),
    "STRTAB wraps": (tag("STRSZ", (1 << 64) - 8), "malformed", "DT_STRTAB: table, expected inside"),
    "STRSZ 0": (tag("STRSZ", 0), "malformed", "DT_STRTAB: string table of 0x0 bytes"),
    "SYMTAB": (tag("SYMTAB", 1 << 40), "malformed", "DT_SYMTAB: table, expected inside"),
    "SYMTAB 0": (tag("SYMTAB", 0), "malformed", "DT_SYMTAB: table, expected inside"),
    "SYMENT": (tag("SYMENT", 16), "malformed", "DT_SYMENT, expected 0x18, found 0x10"),
    "GNU_HASH": (tag("GNU_HASH", 1 << 63), "malformed", "DT_GNU_HASH: table, expected inside"),
    "RELA": (tag("RELA", 1 << 40), "malformed", "DT_RELA: table, expected inside"),
    "RELASZ": (tag("RELASZ", 25), "malformed", "DT_RELASZ, expected a multiple of 0x18"),
    "RELASZ 0": (tag("RELASZ", 0), "malformed", "DT_RELASZ, .* above 0, found 0x0"),
    "PLTRELSZ 0": (tag("PLTRELSZ", 0), "malformed", "DT_PLTRELSZ, .* above 0, found 0x0"),
    "REL": (retag("RELACOUNT", 17), "malformed", "DT_REL at entry .*, expected DT_RELA instead"),
    "RELAENT": (tag("RELAENT", 16), "malformed", "DT_RELAENT, expected 0x18, found 0x10"),
    "PLTREL": (tag("PLTREL", 17), "malformed", "DT_PLTREL, expected 0x7, found 0x11"),
    "JMPREL": (tag("JMPREL", 1 << 40), "malformed", "DT_JMPREL: table, expected inside"),
    "INIT": (tag("INIT", 0), "malformed", "DT_INIT: address, expected in an executable segment"),
    "FINI": (tag("FINI", 1 << 40), "malformed", "DT_FINI: address, expected in an executable"),
    "INIT_ARRAY": (tag("INIT_ARRAY", 1 << 40), "malformed", "DT_INIT_ARRAY: table, expected ins"),
    "INIT_ARRAYSZ": (tag("INIT_ARRAYSZ", 9), "malformed", "DT_INIT_ARRAYSZ: size, expected a mul"),
    "FINI_ARRAYSZ": (tag("FINI_ARRAYSZ", 1 << 60), "malformed", "DT_FINI_ARRAY: table, expected"),
    "NEEDED": (tag("NEEDED", 1 << 32), "malformed", "DT_NEEDED at entry 0, expected a name off"),
    "TEXTREL": (retag("INIT", 22), "policy", "DT_TEXTREL, .* -fPIC"),
    "DF_TEXTREL": (tag("FLAGS", 4), "policy", "DT_TEXTREL, .* -fPIC"),
    "PIE": (
        lambda elf: (retag("INIT", 0x6FFFFFFB)(elf), tag("FLAGS_1", 0x08000000)(elf)),
        "format", "position-independent executable",
    ),
    "AUDIT": (retag("INIT", 0x6FFFFEFC), "policy", "DT_AUDIT at entry"),
    "DEPAUDIT": (retag("INIT", 0x6FFFFEFB), "policy", "DT_DEPAUDIT at entry"),
    "FILTER": (retag("INIT", 0x7FFFFFFF), "policy", "DT_FILTER at entry"),
    "AUXILIARY": (retag("INIT", 0x7FFFFFFD), "policy", "DT_AUXILIARY at entry"),
    # The GNU hash table
    "buckets 0": (gnu_hash("num_buckets", 0), "malformed", "DT_GNU_HASH: header, expected buckets"),
    "buckets": (gnu_hash("num_buckets", 1 << 31), "malformed", "DT_GNU_HASH: table, expected"),
    "bloom": (gnu_hash("bloom_size", 3), "malformed", "DT_GNU_HASH: header, .* power of two"),
    "shift": (gnu_hash("bloom_shift", 32), "malformed", "DT_GNU_HASH: header, .* shift below 32"),
    "bucket low": (gnu_hash("symbol_offset", 1 << 30), "malformed", "DT_GNU_HASH: bucket"),
    "renamed": (rename("add"), "malformed", "DT_GNU_HASH: symbol .*, expected the hash of its"),
    "st_name other": (
        add(lambda elf: elf.symbol("add"), "st_name", 1), "malformed", "the hash of its name",
    ),
    "hash": (change_hash, "malformed", "DT_GNU_HASH: symbol .*, expected the hash of its name"),
    "filter": (empty_filter, "malformed", "DT_GNU_HASH: symbol .*, expected the hash of its name"),
    "bucket 0": (lose_bucket, "malformed", "DT_GNU_HASH: symbols on chains, expected"),
    "chain": (no_chain_end, "malformed", "DT_GNU_HASH: chain of symbol 2147483647"),
    # Relocations
    "target": (rela(GLOB_DAT, "r_offset", 1 << 40), "malformed", "DT_RELA: target of relocation"),
    "target wraps": (rela(GLOB_DAT, "r_offset", (1 << 64) - 4), "malformed", "target of reloc"),
    "target code": (rela(GLOB_DAT, "r_offset", 0x1000), "malformed", "target of relocation"),
    "symbol 0": (
        poke(lambda elf: elf.table("symbol", "SYMTAB", 0), "st_info", 0x12),
        *("malformed", "DT_SYMTAB: symbol 0, expected zeros only, found st_name 0x0, st_info 0x12"),
    ),
    "symbol": (rela(GLOB_DAT, "r_symbol", 1 << 31), "malformed", "symbol index of relocation"),
    "COPY": (rela(GLOB_DAT, "r_type", COPY), "malformed", "type of relocation .* found 5"),
    "type": (rela(GLOB_DAT, "r_type", 9), "malformed", "type of relocation .*shared obj.* found 9"),
    "into dynamic": (into("DYNAMIC", 0x48), "malformed", "expected outside of PT_DYNAMIC"),
    "into array": (into("INIT_ARRAY", 0), "malformed", "RELATIVE, 64 or IRELATIVE for an entry of"),
    "half entry": (into("INIT_ARRAY", 4), "malformed", "a whole entry of DT_INIT_ARRAY"),
    "beside array": (into("INIT_ARRAY", -4), "malformed", "a whole entry of DT_INIT_ARRAY"),
    "entry twice": (relocate_twice, "malformed", "one relocation for each entry of DT_INIT_ARRAY"),
    "weak entry": (weak_function_in_array, "malformed", "a defined function, found symbol"),
    "no TLS": (lose_tls, "malformed", "a PT_TLS beside a TLS relocation"),
    "TLS outside": (
        poke(lambda elf: elf.rela(DTPMOD64), "r_addend", 1 << 20), "malformed", "inside PT_TLS",
    ),
    "TLS of code": (rela(GLOB_DAT, "r_type", TPOFF64), "malformed", "expected a TLS symbol"),
    "size of weak": (size_of_weak, "malformed", "expected a defined symbol, found symbol"),
    "IRELATIVE": (rela(IRELATIVE, "r_addend", 0x10), "malformed", "function of relocation"),
    "RELACOUNT": (tag("RELACOUNT", 1 << 40), "malformed", "RELATIVE within DT_RELACOUNT"),
    "constructor": (
        poke(init_array_entry, "r_addend", 0x10), "malformed", "function of relocation 0, .* exec",
    ),
    "constructor half": (add(init_array_entry, "r_offset", 1), "malformed", "a whole entry of DT_"),
    "constructor lost": (
        poke(init_array_entry, "r_offset", 0x4010), "malformed", "DT_INIT_ARRAY: relocated entries",
    ),
    # Strings and symbols
    "no NUL": (end_strings_without_nul, "malformed", "expected a NUL as its last byte"),
    "st_name": (symbol("add", "st_name", 1 << 30), "malformed", "st_name of symbol"),
    "st_shndx": (symbol("data", "st_shndx", 0xFE00), "malformed", "st_shndx of symbol"),
    "st_shndx common": (symbol("data", "st_shndx", 0xFFF2), "malformed", "st_shndx of symbol"),
    "st_value": (symbol("data", "st_value", 1 << 40), "malformed", "value of symbol .* PT_LOAD"),
    "st_size": (symbol("data", "st_size", 1 << 62), "malformed", "value of symbol .* PT_LOAD"),
    "st_size wraps": (symbol("data", "st_size", (1 << 64) - 1), "malformed", "value of symbol"),
    "two segments": (symbol("blob", "st_size", 0x2000), "malformed", "value of symbol .* PT_LOAD"),
    "function": (code_in_data("add"), "malformed", "value of symbol .* executable segment"),
    "ifunc": (code_in_data("chosen"), "malformed", "value of symbol .* executable segment"),
    "tls symbol": (tls_beyond, "malformed", "value of symbol .* PT_TLS"),
    "tls value": (symbol("per_thread", "st_value", 9), "malformed", "a variable inside PT_TLS"),
    "undefined local": (symbol("sin", "st_info", 2), "malformed", "undefined symbol .* binding"),
    "undefined value": (symbol("sin", "st_value", 8), "malformed", "undefined symbol .* value 0"),
    # versions
    "VERNEED": (tag("VERNEED", 1 << 40), "malformed", "DT_VERNEED: version entry, expected"),
    "vn_next": (poke(needed_version, "vn_next", 1 << 31), "malformed", "DT_VERNEED: version ent"),
    "vn_aux": (poke(needed_version, "vn_aux", 1 << 31), "malformed", "DT_VERNEED: version ent"),
    "vn_file": (poke(needed_version, "vn_file", 1 << 31), "malformed", "DT_VERNEED: version name"),
    "vn_file other": (add(needed_version, "vn_file", 1), "malformed", "a name of DT_NEEDED"),
    "VERSYM alone": (retag("VERNEED", 0x6000), "malformed", "DT_VERSYM: version of .* at most 0"),
    "VERSYM": (tag("VERSYM", 1 << 40), "malformed", "DT_VERSYM: table, expected inside"),
    "version index": (poke(version_index, "word", 99), "malformed", "DT_VERSYM: version of symbol"),
    # The view of an inspector
    "dynsym offset": (section("DYNSYM", "sh_offset", 0x40), "malformed", "section .*: address"),
    "dynsym size": (section("DYNSYM", "sh_size", 24), "malformed", "differs from DT_SYMTAB"),
    "dynsym entries": (section("DYNSYM", "sh_entsize", 8), "malformed", "sh_entsize and sh_link"),
    "dynsym link": (section("DYNSYM", "sh_link", 1 << 20), "malformed", "sh_entsize and sh_link"),
    "dynstr": (section("DYNSYM", "sh_link", 1), "malformed", "differs from DT_STRTAB"),
    "dynamic section": (section("DYNAMIC", "sh_size", 16), "malformed", "differs from PT_DYNAMIC"),
    "text": (section("PROGBITS", "sh_offset", 0), "malformed", "section .*: address, expected ins"),
    "bss": (section("NOBITS", "sh_size", 1 << 40), "malformed", "section .*: address, expected"),
    "contents": (section("PROGBITS", "sh_size", 1 << 40), "truncated", "section .*: contents"),
}  # fmt: skip


def lose_sysv_bucket(elf: Elf) -> None:
    """Empty the bucket of a defined symbol."""
    for nth in range(elf.peek(elf.table("u32", "HASH", 0), "word")):
        elf.poke(elf.table("u32", "HASH", 2 + nth), "word", 0)


SYSV_ROWS: dict[str, tuple[Poke, str]] = {
    "HASH": (tag("HASH", 1 << 40), "DT_HASH: table, expected inside"),
    "buckets 0": (hash_word(0, 0), "DT_HASH: number of buckets, expected at least 1"),
    "buckets": (hash_word(0, 1 << 31), "DT_HASH: table, expected inside"),
    "chains": (hash_word(1, 1 << 31), "DT_HASH: table, expected inside"),
    "bucket": (hash_word(2, 1 << 20), "DT_HASH: bucket 0, expected symbol indexes below"),
    "cycle": (chain_cycle, "DT_HASH: bucket .* found a cycle"),
    "renamed": (rename("add"), "DT_HASH: symbol .*, expected the bucket of its name"),
    "bucket 0": (lose_sysv_bucket, "DT_HASH: defined symbols on chains, expected"),
}


def first_relr(elf: Elf) -> Record:
    """Find the first word of DT_RELR, an address."""
    return elf.table("u64", "RELR")


RELR_ROWS: dict[str, tuple[Poke, str]] = {
    "RELR": (tag("RELR", 1 << 40), "DT_RELR: table, expected inside"),
    "RELRSZ": (tag("RELRSZ", 7), "DT_RELRSZ, expected a multiple of 0x8"),
    "RELRENT": (tag("RELRENT", 16), "DT_RELRENT, expected 0x8, found 0x10"),
    "no RELRSZ": (retag("RELRSZ", 0x6000), "DT_RELRSZ, expected beside DT_RELR"),
    "address": (poke(first_relr, "word", 1 << 40), "DT_RELR: target of relocation 0"),
    "bitmap first": (poke(first_relr, "word", 3), "DT_RELR: target of relocation 0"),
    "constructor lost": (
        lambda elf: elf.poke(first_relr(elf), "word", data_address(elf)),
        "DT_INIT_ARRAY: relocated entries",
    ),
}

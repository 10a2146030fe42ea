"""Objects for another target are refused before the linker sees them, with both named."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import packer
from packer.elf.object_check import check_objects
from packer.target import find_target

from ...support import needs
from ...support.compile import compile_c

FUNCTION = "long f(long a) { return a + 1; }\n"
RISCV = "riscv64-linux-gnu"
X86_64 = "x86_64 \\(64-bit little-endian\\)"
RISCV64 = "riscv \\(64-bit little-endian, double-float\\)"


@pytest.fixture
def x86(tmp_path) -> Path:
    """An object for x86-64."""
    return compile_c(FUNCTION, tmp_path / "x86.o", "-c")


def refused(path: Path, match: str, target: str = RISCV) -> None:
    """Check one file."""
    with pytest.raises(packer.ExportError, match=match):
        check_objects([path], find_target(target))


def poked(path: Path, **fields: tuple[int, bytes]) -> Path:
    """A copy of an object with other bytes at some offsets."""
    data = bytearray(path.read_bytes())
    for offset, new in fields.values():
        data[offset : offset + len(new)] = new
    made = path.with_name(f"{'-'.join(fields)}.o")
    made.write_bytes(data)
    return made


def test_machine_of_an_object_is_compared(x86) -> None:
    """The error has the machine found, the one expected, and the target."""
    refused(x86, f"x86.o: {X86_64}, expected {RISCV64} for the target {RISCV!r}")
    check_objects([x86], find_target("x86_64-linux-musl"))


def test_class_and_byte_order_are_compared(x86) -> None:
    """X32 has x86-64's machine number; aarch64_be has aarch64's."""
    other = poked(x86, ELFCLASS32=(4, b"\x01"))
    refused(
        other, "x86_64 \\(32-bit little-endian\\), expected x86_64 \\(64-bit", "x86_64-linux-gnu"
    )
    other = poked(x86, ELFDATA2MSB=(5, b"\x02"), e_machine=(18, b"\x00\xb7"))
    refused(other, "aarch64 \\(64-bit big-endian\\), expected aarch64 \\(64-", "aarch64-linux-gnu")


@pytest.mark.parametrize(
    ("flags", "found"), [(1, "soft-float"), (3, "single-float"), (13, "double-float, 16 registers")]
)
def test_floating_point_abi_is_compared(flags, found, x86) -> None:
    """E_flags of RISC-V are compared; compressed instructions do not affect the ABI."""
    fields = {"e_machine": (18, b"\xf3\0"), "e_flags": (48, bytes([flags, 0, 0, 0]))}
    refused(poked(x86, **fields), f"riscv \\(64-bit little-endian, {found}\\), expected {RISCV64}")
    for good in (4, 5):
        fields["e_flags"] = (48, bytes([good, 0, 0, 0]))
        check_objects([poked(x86, **fields)], find_target(RISCV))


ARCHIVES = {
    "plain": ["rcs"],
    "without an index": ["rcS"],
    "thin": ["rcsT"],
}


@pytest.mark.parametrize("options", ARCHIVES.values(), ids=ARCHIVES.keys())
def test_members_of_archives_are_compared(options, x86, tmp_path) -> None:
    """Each, whatever the archive's kind; the message names archive and member."""
    own = poked(x86, e_machine=(18, b"\xf3\0"), e_flags=(48, b"\x05\0\0\0"))
    long = own.rename(tmp_path / "a name that is longer than sixteen.o")
    archive = tmp_path / "lib.a"
    subprocess.run(["ar", *options, archive, long, long], check=True)
    check_objects([archive], find_target(RISCV))
    subprocess.run(["ar", *options, archive, x86], check=True)
    refused(archive, f"lib.a\\(x86.o\\): {X86_64}, expected {RISCV64}")


def test_members_of_bsd_archives_are_compared(x86, tmp_path) -> None:
    """Their long names are stored before the members."""
    data = x86.read_bytes()
    name = b"a long name of BSD's.o\0\0"
    size = len(name) + len(data)
    header = f"#1/{len(name)}".ljust(16) + "0".ljust(12) + "0     0     644     "
    archive = tmp_path / "bsd.a"
    archive.write_bytes(
        b"!<arch>\n" + f"{header}{size:<10}`\n".encode() + name + data + b"\n" * (size % 2)
    )
    refused(archive, f"bsd.a\\(a long name of BSD's.o\\): {X86_64}")


def test_thin_archive_without_its_member_is_refused(x86, tmp_path) -> None:
    """A thin archive only names files."""
    subprocess.run(["ar", "rcsT", tmp_path / "lib.a", x86], check=True)
    x86.unlink()
    refused(tmp_path / "lib.a", "lib.a: cannot be read: No such file", "x86_64-linux-gnu")


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"\xcf\xfa\xed\xfe", "a Mach-O object \\(macOS\\)"),
        (b"\x64\x86\x07\0", "a COFF object \\(Windows\\) for x86_64"),
    ],
)
def test_objects_of_other_systems_are_refused(head, kind, tmp_path) -> None:
    """Files are recognised by their first bytes."""
    path = tmp_path / "other.o"
    path.write_bytes(head + bytes(200))
    refused(path, f"other.o: {kind}, expected an ELF object for riscv64 for the target {RISCV!r}")


def test_file_without_machine_is_ignored(tmp_path) -> None:
    """Sources and linker scripts have no machine; a distribution's libc.so is a script."""
    (tmp_path / "libc.so").write_text("/* GNU ld script */ GROUP ( libc.so.6 )\n")
    (tmp_path / "add.c").write_text(FUNCTION)
    (tmp_path / "empty.o").touch()
    names = ("libc.so", "add.c", "empty.o")
    check_objects([tmp_path / name for name in names], find_target(RISCV))


def test_bitcode_with_the_name_of_an_object_is_called_so(tmp_path) -> None:
    """Clang writes it with -flto, under the name that the user chose for the object."""
    needs.program("clang")
    (tmp_path / "a.c").write_text(FUNCTION)
    for option in ("-flto", "-emit-llvm"):
        command = ["clang", option, "-c", "a.c", "-o", "a.o"]
        subprocess.run(command, cwd=tmp_path, check=True)
        remedy = "name it .bc, or compile it without -flto and -emit-llvm"
        text = f"a.o: LLVM bitcode, expected an ELF object or an archive; {remedy}"
        with pytest.raises(packer.ExportError, match=text):
            packer.StaticLibraryModule(tmp_path / "a.o")


def test_bitcode_of_another_triple_is_refused(tmp_path) -> None:
    """Bitcode for link-time optimisation is checked; without a triple it fits any target."""
    from llvmlite import binding

    for triple in ("x86_64-pc-linux-gnu", ""):
        module = binding.parse_assembly(f'target triple = "{triple}"\n' if triple else "")
        path = tmp_path / "lto.o"
        path.write_bytes(module.as_bitcode())
        if triple:
            refused(path, f"lto.o: compiled for {triple!r}, expected {RISCV!r}")
        else:
            check_objects([path], find_target(RISCV))


# Every way into a library


@pytest.fixture
def cross_gcc() -> None:
    """A cross compiler."""
    needs.program("riscv64-linux-gnu-gcc")


def export(root: packer.CSourceModule, tmp_path: Path, **options) -> Path:
    """Export for riscv64."""
    return packer.export_library(
        root, tmp_path / "lib.so", **options, build=packer.Build(target=RISCV)
    )


def host(**options) -> packer.CSourceModule:
    """Host code with one function."""
    return packer.CSourceModule(
        "long g(void) { return 1; }", functions={"g": "long(void)"}, **options
    )


def test_addon_for_another_machine_is_refused(x86, cross_gcc, tmp_path) -> None:
    """Objects, archives and shared libraries are checked alike."""
    shared = compile_c(FUNCTION, tmp_path / "x86.so")
    archive = tmp_path / "x86.a"
    subprocess.run(["ar", "rcs", archive, x86], check=True)
    for addon in (x86, archive, shared):
        with pytest.raises(packer.ExportError, match=f"x86.*: {X86_64}, expected {RISCV64}"):
            export(host(), tmp_path, addons=[addon])


def test_static_library_for_another_machine_is_refused(x86, tmp_path) -> None:
    """The user's own file is named, not the copy."""
    root = packer.StaticLibraryModule(x86, {"f": "long(long a)"})
    with pytest.raises(packer.ExportError, match=f"^{x86}: {X86_64}, expected {RISCV64}"):
        export(root, tmp_path)


def test_static_library_may_be_a_thin_archive(x86, tmp_path) -> None:
    """The archive's members are found relative to its folder."""
    (tmp_path / "thin").mkdir()
    subprocess.run(["ar", "rcsT", "thin/lib.a", x86.name], check=True, cwd=tmp_path)
    root = packer.StaticLibraryModule(tmp_path / "thin" / "lib.a", {"f": "long(long a)"})
    assert packer.export_library(root, tmp_path / "lib.so").exists()


@pytest.mark.parametrize("as_bitcode", [False, True], ids=["text", "bitcode"])
def test_ir_of_another_triple_is_refused(as_bitcode, tmp_path) -> None:
    """IR is checked by its triple; IR without one is for any target."""
    from llvmlite import binding

    text = "define i64 @f(i64 %a) {\n  ret i64 %a\n}\n"
    for triple in ("x86_64-unknown-linux-gnu", "riscv64-apple-darwin"):
        named = f'target triple = "{triple}"\n{text}'
        ir = binding.parse_assembly(named).as_bitcode() if as_bitcode else named
        root = packer.LLVMModule(ir, functions={"f": "int64_t(int64_t a)"})
        with pytest.raises(
            packer.ExportError, match=f"compiled for {triple!r}, expected {RISCV!r}"
        ):
            export(root, tmp_path)


def test_compiler_option_for_another_float_abi_is_detected(cross_gcc, tmp_path) -> None:
    """The compiled object is checked too, since options can change its ABI."""
    root = host(options=["-mabi=lp64", "-march=rv64imac"])
    found = "lib0.o: riscv \\(64-bit little-endian, soft-float\\)"
    with pytest.raises(packer.ExportError, match=f"{found}, expected {RISCV64}"):
        export(root, tmp_path)


def test_llvm_module_is_compiled_for_the_target_that_it_is_exported_to(cross_gcc, tmp_path) -> None:
    """IR without a triple; position-independent, with RISC-V's double-float ABI."""
    ir = "@x = global double 1.0\ndefine double @f(double %a) {\n  %b = load double, ptr @x\n"
    root = packer.LLVMModule(
        ir + "  %c = fadd double %a, %b\n  ret double %c\n}\n",
        functions={"f": "double(double a)"},
    )
    path = export(root, tmp_path)
    listed = subprocess.run(["readelf", "-hdW", path], capture_output=True, text=True, check=True)
    assert "double-float ABI" in listed.stdout
    assert "TEXTREL" not in listed.stdout

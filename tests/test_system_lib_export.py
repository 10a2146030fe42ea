"""Static linking: the output of an export of a model, and the refusals."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import packer

from .support.system_models import PRINTED, beside_python, linked, model, tree


@pytest.mark.parametrize("embed", ["c", "llvm"])
@pytest.mark.parametrize("suffix", ["o", "a", "tar", "so"])
def test_same_model_is_the_same_bytes(embed, suffix, tmp_path) -> None:
    """In another folder, at another time."""
    made = []
    for name in ("one", "another"):
        (tmp_path / name).mkdir()
        made.append(model(tmp_path / name, 1, suffix, build=packer.Build(embed=embed)).read_bytes())
    assert made[0] == made[1]


def test_embedded_text_is_that_of_tvm(tmp_path) -> None:
    """The C embedder writes the text of pack_imports_to_c, which golden files fix."""
    model(tmp_path, 1, workspace_dir=tmp_path, build=packer.Build(embed="c"))
    (text,) = tmp_path.glob("packer-*/devc.cc")
    expected = packer.pack_imports_to_c(tree(1), True, "net1_")
    assert text.read_text().startswith(expected)


def test_packer_of_the_users_own_registers_the_blob(tmp_path) -> None:
    """fpack_imports gets system_lib and the prefix, as TVM passes them."""
    given = []

    def pack(module, system_lib, prefix, folder):
        given.append((system_lib, prefix))
        path = Path(folder) / "own.cc"
        path.write_text(packer.pack_imports_to_c(module, system_lib, prefix))
        return path

    library = packer.link_library([model(tmp_path, 1, fpack_imports=pack)], tmp_path / "net1.so")
    assert given == [(True, "net1_")]
    assert beside_python(library, "[m['add'](40, 2), m.imported_modules[0].fmt]") == [42, "ptx"]


def test_linker_that_compiles_nothing_by_itself_makes_a_model(tmp_path) -> None:
    """Any fcompile will do: sources find our headers, and get their modules' options."""

    def link(output, files, options=()):
        subprocess.run(["cc", "-shared", "-o", output, *files, *options], check=True)

    declared = {"add": "long(long a, long b)"}
    code = "long add(long a, long b) { return BY * a + b; }"
    root = packer.CSourceModule(code, functions=declared, options=["-DBY=1"])
    library = model(tmp_path, 1, "so", root=root, fcompile=link)
    assert beside_python(library, "m['add'](40, 2)") == 42


def test_large_payload_registers_too(tmp_path) -> None:
    """Beyond 1 MiB the assembler adds the bytes."""
    root = tree(1, payload=bytes(range(256)) * 5000)
    library = packer.link_library([model(tmp_path, 1, root=root)], tmp_path / "net1.so")
    assert beside_python(library, "len(m.imported_modules[0].data)") == 256 * 5000


@pytest.mark.parametrize(
    ("options", "first"), [({}, "embed='segment' for a library, or "), ({"system_lib": True}, "")]
)
def test_array_that_no_compiler_takes_names_the_alternative(options, first, tmp_path) -> None:
    """Bytes that are placed after the linked library register nothing; LLVM's always can."""
    root = tree(1, payload=bytes((16 << 20) + 1))
    text = re.escape(f"the largest array for compilers; use {first}embed='llvm'")
    with pytest.raises(packer.ExportError, match=f"^embed 'c': 1677.*{text}$"):
        packer.export_library(root, tmp_path / "net1.o", **options, build=packer.Build(embed="c"))


@pytest.mark.parametrize("suffix", ["so", "o"])
def test_prefix_alone_is_refused(suffix, tmp_path) -> None:
    """It would have no effect on a loaded library."""
    path = tmp_path / f"net.{suffix}"
    for refused in (
        lambda: packer.export_library(tree(1), path, c_symbol_prefix="net1_"),
        lambda: packer.pack_imports_to_c(tree(1), False, "net1_"),
        lambda: packer.pack_imports_to_llvm(tree(1), False, None, "net1_"),
    ):
        with pytest.raises(packer.ExportError, match="prefix 'net1_' without system_lib"):
            refused()


@pytest.mark.parametrize("prefix", ["1net", "net-", "net 1", "né", "a\0b", '"'])
def test_prefix_that_is_not_a_name_is_refused(prefix, tmp_path) -> None:
    """A prefix precedes names in C."""
    with pytest.raises(packer.ExportError, match="expected the beginning of a C name"):
        packer.export_library(tree(1), tmp_path / "m.o", system_lib=True, c_symbol_prefix=prefix)


def test_code_for_link_time_optimisation_is_renamed_too(tmp_path) -> None:
    """The merge generates it; gcc alone does that for objects of two kinds."""
    models = []
    for number in (1, 2):
        code = f"long k(void) {{ return {number}; }}"
        code += " long add(long a, long b) { return k() * a + b; }"
        declared = {"add": "long(long a, long b)"}
        root = packer.CSourceModule(code, functions=declared, options=["-flto"])
        models.append(model(tmp_path, number, root=root))
    assert linked(tmp_path, *models) == PRINTED


def test_placed_bytes_register_nothing(tmp_path) -> None:
    """A library that registers itself takes its blob through the linker."""
    with pytest.raises(packer.ExportError, match="embed 'segment': expected a library as output"):
        packer.export_library(
            tree(1), tmp_path / "m.so", system_lib=True, build=packer.Build(embed="segment")
        )

"""Output(metadata=...): the record in every kind of output, and in what reads it."""

from __future__ import annotations

import copy
import ctypes
import json
import pickle
import subprocess
from pathlib import Path

import pytest

import packer
import runtime

from .support.system_models import beside_python

GIVEN = {"version": "1.0+\u017c", "license": "MIT", "trained": {"epochs": 3, "on": ["a", "b"]}}
SYMBOL = "__packer_library"


def host() -> packer.CSourceModule:
    """One function."""
    code = "long add(long a, long b) { return a + b; }"
    return packer.CSourceModule(code, functions={"add": "long(long a, long b)"})


def tree() -> packer.CSourceModule:
    """One function, and a module in the blob."""
    root = host()
    root.import_module(runtime.DeviceModule("cuda", b"payload", "cubin", []))
    return root


def export(folder: Path, root: runtime.Module, name: str = "model.so", **options) -> Path:
    """Export with the metadata."""
    return packer.export_library(
        root, folder / name, **{"output": packer.Output(metadata=GIVEN), **options}
    )


def symbols_of(path: Path) -> str:
    """The names that nm lists."""
    return subprocess.check_output(["nm", path], text=True)


@pytest.mark.parametrize("embed", ["segment", "llvm", "c"])
@pytest.mark.parametrize("make", [host, tree])
@pytest.mark.parametrize("dialect", ["tvm", "tvm-ffi"])
def test_every_embedder_stores_it(make, embed, dialect, tmp_path) -> None:
    """With and without a blob; the function and the tree are as without metadata."""
    model = runtime.load(export(tmp_path, make(), format=dialect, build=packer.Build(embed=embed)))
    assert model.metadata == GIVEN
    assert model["add"](40, 2) == 42
    assert len(model.imported_modules) == (make is tree)
    assert all(module.metadata == {} for module in model.imported_modules)


def test_library_without_code_has_it(tmp_path) -> None:
    """Packer writes such a file without a linker; its root is not host code."""
    root = runtime.ConstLoaderModule({"w": b"1234"}, {})
    model = runtime.load(export(tmp_path, root))
    assert model.type_key == "const_loader"
    assert model.metadata == GIVEN


def test_root_that_is_a_file_of_weights_has_both(tmp_path) -> None:
    """The metadata of a safetensors file stays; of equal names the library's are found."""
    header = b'{"__metadata__":{"format":"pt","version":"0"}}'
    weights = runtime.SafetensorsModule(len(header).to_bytes(8, "little") + header)
    assert weights.metadata == {"format": "pt", "version": "0"}
    assert runtime.load(export(tmp_path, weights)).metadata == {"format": "pt", **GIVEN}


def test_host_code_below_the_root_has_it(tmp_path) -> None:
    """The root and the host code describe the same file."""
    root = runtime.ConstLoaderModule({"w": b"1234"}, {})
    root.import_module(host())
    model = runtime.load(export(tmp_path, root))
    assert model.metadata == model.imported_modules[0].metadata == GIVEN


def test_default_export_has_no_record(tmp_path) -> None:
    """No metadata, none at all and an empty table give the same bytes."""
    made = [
        packer.export_library(tree(), tmp_path / f"{i}.so", output=output).read_bytes()
        for i, output in enumerate((None, packer.Output(), packer.Output(metadata={})))
    ]
    assert made[0] == made[1] == made[2]
    assert SYMBOL.encode() not in made[0]


def test_c_programs_read_it_as_text(tmp_path) -> None:
    """A NUL ends the JSON; json.loads reads what dlsym finds."""
    path = export(tmp_path, host())
    text = (ctypes.c_char * 4096).in_dll(ctypes.CDLL(str(path)), SYMBOL).value
    assert json.loads(text) == {"schema": 1, "metadata": GIVEN}


def test_changed_record_is_refused_by_the_load(tmp_path) -> None:
    """The checksums cover it, as other data of the export."""
    path = export(tmp_path, host())
    data = path.read_bytes()
    assert data.count(b'"MIT"') == 1
    path.write_bytes(data.replace(b'"MIT"', b'"GPL"'))
    with pytest.raises(runtime.LibraryLoadError, match=f"symbol {SYMBOL}: CRC-32, expected"):
        runtime.load(path)


@pytest.mark.parametrize("suffix", ["o", "a", "tar"])
def test_deferred_link_keeps_it(suffix, tmp_path) -> None:
    """In objects, archives and tars."""
    path = export(tmp_path, tree(), f"model.{suffix}")
    linked = packer.link_library([path], tmp_path / "linked.so")
    assert runtime.load(linked).metadata == GIVEN


def test_system_libraries_have_their_own(tmp_path) -> None:
    """Each statically linked model has the metadata of its export."""
    paths = []
    for number in (1, 2):
        options = {"system_lib": True, "c_symbol_prefix": f"net{number}_"}
        metadata = {**GIVEN, "number": number} if number == 1 else {"number": 2}
        paths.append(
            export(
                tmp_path, tree(), f"{number}.o", **options, output=packer.Output(metadata=metadata)
            )
        )
    both = packer.link_library(paths, tmp_path / "both.so")
    found = "[dict(m.metadata), dict(runtime.system_lib('net2_').metadata)]"
    assert beside_python(both, found) == [{**GIVEN, "number": 1}, {"number": 2}]
    assert f"net2_{SYMBOL}" in symbols_of(both)


def test_hidden_symbols_do_not_include_it(tmp_path) -> None:
    """Visibility "declared" exports what a load needs."""
    assert (
        runtime.load(
            export(tmp_path, tree(), output=packer.Output(visibility="declared", metadata=GIVEN))
        ).metadata
        == GIVEN
    )


def test_bytes_and_pickles_keep_it_and_a_new_export_does_not(tmp_path) -> None:
    """A copy of the tree is the same file; an export has the metadata that it is given."""
    path = export(tmp_path, tree())
    model = runtime.load(path)
    for same in (runtime.load_from_bytes(path.read_bytes()), copy.copy(model)):
        assert same.metadata == GIVEN
    assert pickle.loads(pickle.dumps(model)).metadata == GIVEN
    inner = packer.export_library(
        model, tmp_path / "outer.so", output=packer.Output(metadata={"version": "2"})
    )
    outer = runtime.load(inner)
    assert outer.metadata == {"version": "2"}
    again = packer.export_library(model, tmp_path / "again.so")
    assert "version" not in packer.inspect_library(again).metadata


def test_value_that_cannot_be_stored_fails_before_the_compiler(tmp_path) -> None:
    """The error names the value; nothing is written."""
    steps: list[str] = []
    with pytest.raises(packer.ExportError, match="^metadata: a.b: expected text, a number, "):
        export(
            tmp_path,
            host(),
            progress=steps.append,
            output=packer.Output(metadata={"a": {"b": None}}),
        )
    assert steps == []
    assert list(tmp_path.iterdir()) == []

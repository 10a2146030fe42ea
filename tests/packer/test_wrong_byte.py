"""One wrong byte in the symbols of an export beside the payloads: refused, or nothing is lost."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import packer
import runtime
from packer.inspect.extract import extract_library
from runtime._core import ElfFile
from runtime.abi import CHECKSUMS

from ..support.elf_poke import Elf
from ..support.paths import DATA
from ..support.process import run_python

LIBRARIES = DATA / "libraries_with_checksums"
IS_X86_64 = platform.machine() == "x86_64"
OURS = ("__packer_", "__tvm_ffi_", "__tvm_main__", "__tvm_dev_mblob")


@pytest.fixture(scope="module", params=["host", "functions", "tree", "ffi"])
def golden(request: pytest.FixtureRequest) -> Path:
    """A library with host code and a blob, with one of them, and of the other dialect."""
    return LIBRARIES / f"{request.param}.so"


# ---- One wrong byte

# Loads argv[1] with each byte of argv[3:] changed in two ways, and prints the outcome: how many
# were refused, how many loaded as before, and the offsets at which something was lost.
_FLIP = """
import json, os, pathlib, runtime, sys
def seen(module):
    nodes, order = [module], []
    while nodes:
        node = nodes.pop()
        data = bytes(node.data) if node.type_key in ("cuda", "opencl", "hip") else None
        order.append([node.type_key, data, sorted(node.function_names())])
        nodes += reversed(node.imported_modules)
    return order, [function(module, name) for name in ("add", "twice", "main")]
def function(module, name):
    try:
        found = module.get_function(name)
    except runtime.FunctionNotFoundError:
        return None
    return [found.signature, found.__doc__, found.metadata]
def called(module):
    return module(40, 2) if "add" in module.function_names() else None
original = bytearray(pathlib.Path(sys.argv[1]).read_bytes())
def outcome(data):
    path = f"{sys.argv[2]}/mutant.so"
    with open(path, "wb") as file:
        file.write(data)
    try:
        module = runtime.load(path)
        return [*seen(module), called(module)]
    except runtime.PackerError as error:
        return type(error).__name__
    finally:
        os.unlink(path)
wanted = outcome(original)
refused, kept, lost = 0, 0, []
for offset in json.loads(sys.argv[3]):
    for bits in (1, 255):
        original[offset] ^= bits
        found = outcome(original)
        original[offset] ^= bits
        refused += isinstance(found, str)
        kept += found == wanted
        if found != wanted and not isinstance(found, str):
            lost.append(offset)
print(json.dumps([refused, kept, lost]))
"""


def places(path: Path) -> dict[str, list[int]]:
    """The bytes of our symbols' names, of their entries' names, of their data, tree and hash."""
    elf = Elf(path.read_bytes())
    found: dict[str, list[int]] = {"name": [], "st_name": [], "data": [], "structure": []}
    tables = [s for s in packer.inspect_library(path).sections if s.name in (".hash", ".gnu.hash")]
    found["hash"] = [
        at for table in tables for at in range(table.offset, table.offset + table.nbytes)
    ]
    strings = elf.table("u8", "STRTAB").offset
    for name in symbols(path):
        record = elf.symbol(name)
        found["st_name"] += range(record.offset, record.offset + 4)
        start = strings + elf.peek(record, "st_name")
        found["name"] += range(start, start + len(name))
        place, nbytes = (
            elf.at("u8", elf.peek(record, "st_value")).offset,
            elf.peek(record, "st_size"),
        )
        if name.startswith("__packer_") or name == "__tvm_main__":
            found["data"] += range(place, place + nbytes)
        elif name in ("__tvm_dev_mblob", "__tvm_ffi__library_bin"):
            found["structure"] += structure(path, place, nbytes)
    return {kind: sorted(set(offsets)) for kind, offsets in found.items() if offsets}


def symbols(path: Path) -> list[str]:
    """Return the symbols of an export: wrappers, metadata, entry, blob, manifest, checksums."""
    dynamic = packer.inspect_library(path).symbols.dynamic
    return [s.name for s in dynamic if s.defined and s.name.startswith(OURS)]


def structure(path: Path, place: int, nbytes: int) -> Iterator[int]:
    """The header, the count, the keys and the import tree; not the payloads."""
    report = packer.inspect_library(path)
    assert report.blob is not None
    payloads: set[int] = set()
    for entry in report.blob.entries:
        if entry.key != "_import_tree":
            start = place + 8 + entry.offset + 8 + len(entry.key)
            payloads.update(range(start, place + 8 + entry.offset + entry.nbytes))
    return (offset for offset in range(place, place + nbytes) if offset not in payloads)


@pytest.mark.skipif(not IS_X86_64, reason="only on hardware with x86-64")
def test_no_byte_is_lost_in_silence(golden, tmp_path) -> None:
    """Every byte of names, hash table, metadata, manifest, checksums and tree, in two ways."""
    for kind, offsets in places(golden).items():
        refused, kept, lost = run_python(_FLIP, str(golden), str(tmp_path), json.dumps(offsets))
        assert lost == [], kind
        assert refused + kept == 2 * len(offsets)
        assert refused > kept, kind


# ---- The name of each kind of damage


def tree() -> packer.CSourceModule:
    """Host code that imports two modules, one of which imports the other."""
    code = "long add(long a, long b) { return a + b; }"
    declaration = packer.FunctionDeclaration("long(long a, long b)", gil="keep")
    root = packer.CSourceModule(code, functions={"add": declaration})
    first, second = (runtime.DeviceModule(key, b"code", "cl", []) for key in ("opencl", "cuda"))
    first.import_module(second)
    root.import_module(first)
    return root


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of this version."""
    path = tmp_path_factory.mktemp("made") / "lib.so"
    return packer.export_library(tree(), path, entry="add")


def replace_once(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    """Damage that changes some bytes of a file."""

    def change(data: bytes) -> bytes:
        assert data.count(old) == 1
        assert len(old) == len(new)
        return data.replace(old, new)

    return change


def rename(symbol: str, new: str) -> Callable[[bytes], bytes]:
    """Damage that gives a dynamic symbol the name of another one."""

    def change(data: bytes) -> bytes:
        elf = Elf(data)
        name = elf.peek(elf.symbol(new), "st_name")
        return bytes(elf.poke(elf.symbol(symbol), "st_name", name).data)

    return change


def reorder_rows(data: bytes) -> bytes:
    """Damage that makes another tree: the root imports both modules."""
    old, new = ((0, 1, 2, 2), (0, 2, 2, 2))
    return replace_once(words(*old, 2, 1, 2), words(*new, 2, 1, 2))(data)


def words(*values: int) -> bytes:
    """The u64 of a blob."""
    return b"".join(value.to_bytes(8, "little") for value in values)


DAMAGE = {
    "tree": (reorder_rows, "keys, sizes or import tree with CRC-32"),
    "metadata": (
        replace_once(b"params a:", b"params c:"),
        "symbol __packer_fn_add: CRC-32, expected",
    ),
    "manifest": (
        replace_once(b'"type_key":"cuda"', b'"type_key":"cudb"'),
        "symbol __packer_manifest: CRC-32, expected",
    ),
    "blob lost": (
        rename("__tvm_dev_mblob", "__packer_fn_add"),
        "symbol __tvm_dev_mblob: expected as",
    ),
    "metadata lost": (
        rename("__packer_fn_add", "__tvm_ffi_add"),
        "symbol __packer_fn_add: expected as",
    ),
    "entry lost": (rename("__tvm_main__", "__packer_fn_add"), "symbol __tvm_main__: expected as"),
    "code lost": (rename("__tvm_ffi_add", "add"), "symbol __tvm_ffi_add: expected as"),
    "newer": (
        replace_once(b"packer-checksums 1", b"packer-checksums 2"),
        "first line 'packer-checksums 2', expected 'packer-checksums 1'; load it with the",
    ),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_named_by_load_inspect_and_check(kind, made, tmp_path) -> None:
    """All commands print the same message; the exit status is 1."""
    change, text = DAMAGE[kind]
    path = tmp_path / "damaged.so"
    path.write_bytes(change(made.read_bytes()))
    with pytest.raises(runtime.PackerError, match=f"{text}|DT_GNU_HASH"):
        runtime.load(path)
    inspected = command("inspect", "--json", path)
    assert any(text in problem or "DT_GNU_HASH" in problem for problem in inspected["problems"])
    failed = [f for f in command("check", "--json", path)["findings"] if f["status"] == "fail"]
    assert any(text in f["detail"] or "DT_GNU_HASH" in f["detail"] for f in failed)


def command(*arguments: object) -> Any:
    """Run packer, which reports a fault; return its JSON."""
    words = [sys.executable, "-m", "packer", *map(str, arguments)]
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (1, "")
    return json.loads(run.stdout)


def test_extract_states_why_there_is_no_tree(made, tmp_path) -> None:
    """The error does not say that the library carries none."""
    path = tmp_path / "damaged.so"
    path.write_bytes(DAMAGE["blob lost"][0](made.read_bytes()))
    with pytest.raises(runtime.PackerError, match=r"DT_GNU_HASH|__tvm_dev_mblob: expected as"):
        extract_library(path, tmp_path / "parts")


# ---- Changes that are not damage


def test_payloads_are_not_covered(made, tmp_path) -> None:
    """A load does not read weights of any size: only a digest of the file detects it."""
    path = tmp_path / "other.so"
    module = runtime.DeviceModule("cuda", b"some code", "ptx", [])
    packer.export_library(module, path)
    path.write_bytes(replace_once(b"some code", b"same code")(path.read_bytes()))
    assert bytes(runtime.load(path).data) == b"same code"


def test_models_linked_into_one_library_have_a_list_each(tmp_path) -> None:
    """Each lists its own symbols, whose names have its prefix; a load of the whole has none."""
    paths = [
        packer.export_library(
            tree(), tmp_path / f"{prefix}.o", entry="add", system_lib=True, c_symbol_prefix=prefix
        )
        for prefix in ("net1_", "net10_")
    ]
    both = packer.link_library(paths, tmp_path / "both.so")
    file = ElfFile(str(both))
    assert file.checksums(CHECKSUMS) is None
    assert file.checksums(f"net1_{CHECKSUMS}") == file.checksums(f"net10_{CHECKSUMS}") is not None
    assert packer.inspect_library(both).problems == ()
    damaged = tmp_path / "damaged.so"
    damaged.write_bytes(both.read_bytes().replace(b"params a:", b"params c:", 1))
    (problem,) = packer.inspect_library(damaged).problems
    assert "symbol __packer_fn_net1" in problem
    code = "import runtime, sys; runtime.load(sys.argv[1]); runtime.system_lib(sys.argv[2])"
    prefix = problem.partition("__packer_fn_")[2].partition("add")[0]
    run = subprocess.run([sys.executable, "-c", code, damaged, prefix], capture_output=True)
    assert b"LibraryLoadError: system library " in run.stderr
    assert f"symbol __packer_fn_{prefix}add: CRC-32, expected".encode() in run.stderr


def test_stale_glue_is_detected(tmp_path) -> None:
    """A compiler cache returns the object of an older export: its metadata is not the list's."""

    def fcompile(output, files, options=None):
        packer.create_shared(output, files, options=options)
        data = Path(output).read_bytes()
        Path(output).write_bytes(replace_once(b"params a:", b"params c:")(data))

    with pytest.raises(packer.ToolchainError, match="symbol __packer_fn_add: CRC-32, expected"):
        packer.export_library(tree(), tmp_path / "lib.so", fcompile=fcompile)

"""packer inspect: its lists, its JSON and its schema, against nm, readelf and the file's bytes."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import packer
import runtime
from packer.cli.inspect import parse
from packer.inspect import inspect_library
from packer.inspect.drawing import draw
from packer.inspect.listing import list_entries, list_sizes, list_symbols, select_symbols
from packer.inspect.meaning import meaning_of

from ...support.paths import DOCS
from .json_schema import faults

SCHEMA = json.loads((DOCS / "inspect.schema.json").read_text())
NUM_SAMPLED, MAX_NBYTES = 30, 4 << 20


def tool(*command: str | Path) -> list[str]:
    """The lines that a tool prints."""
    run = subprocess.run(command, capture_output=True, text=True, check=True, errors="replace")
    return run.stdout.splitlines()


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    """A packed library with kernels, constants, a graph and an unknown type."""
    declaration = packer.FunctionDeclaration("long(long a, long b)", doc="Add.")
    root = packer.CSourceModule(
        "#include <math.h>\nlong add(long a, long b) { return a + (long)exp((double)b); }",
        functions={"add": declaration},
    )
    kernel = runtime.FunctionInfo("k", ["handle", "int32"], ["blockIdx.x"])
    weights = {"w": memoryview(bytes(24)).cast("f", [2, 3])}
    for module in (
        runtime.DeviceModule("cuda", ".target sm_80", "ptx", [kernel]),
        runtime.DeviceModule("metal", {"m": "kernel void m() {}"}, "metal", []),
        runtime.ConstLoaderModule(weights, {"add": ["w"]}),
        runtime.GraphExecutorFactory('{"nodes": []}', weights),
        runtime.JSONRuntimeModule("dnnl_json", "sub", "{}", ["c"]),
        runtime.OpaqueModule("strange", memoryview(b"\x00\x01\xff")),
    ):
        root.import_module(module)
    return packer.export_library(root, tmp_path_factory.mktemp("lists") / "model.so", entry="add")


# ---- symbols -------------------------------------------------------------------------------------


def system_libraries() -> list[Path]:
    """A sample of the shared objects of this machine, the same each time."""
    modules = Path(sysconfig.get_path("platstdlib"), "lib-dynload")
    folders = [*Path("/usr/lib").glob("*-linux-gnu"), Path("/usr/lib64"), modules]
    found = {path.resolve() for folder in folders for path in folder.glob("*.so*")}
    plain = sorted(path for path in found if is_library(path))
    return random.Random(8).sample(plain, min(NUM_SAMPLED, len(plain)))


def is_library(path: Path) -> bool:
    """Return True if it is a shared object of ELF-64, and not so large that nm takes long."""
    if not path.is_file() or not 0 < path.stat().st_size <= MAX_NBYTES:
        return False
    with path.open("rb") as file:
        head = file.read(18)
    return head[:5] == b"\x7fELF\x02" and head[16:18] == b"\x03\x00"


def readelf_rows(path: Path) -> dict[str, list[tuple[str, ...]]]:
    """(value, size, type, bind, visibility, section, name) of each table, as readelf has them."""
    tables: dict[str, list[tuple[str, ...]]] = {}
    rows: list[tuple[str, ...]] = []
    for line in tool("readelf", "-sW", path):
        if line.startswith("Symbol table"):
            rows = tables.setdefault(line.split("'")[1], [])
        # Without the mark of GNU in the header of the file, readelf does not name its bind 10.
        fields = line.replace("<OS specific>: 10", "UNIQUE").split(maxsplit=7)
        if len(fields) >= 7 and fields[0][:-1].isdigit() and fields[0] != "0:":
            name = re.sub(r" (\(\d+\)|\[.*\])$", "", fields[7]) if len(fields) > 7 else ""
            rows.append((f"{int(fields[1], 16)}", f"{int(fields[2], 0)}", *fields[3:7], name))
    return tables


def our_rows(symbols) -> list[tuple[str, ...]]:
    """The same of our libraries."""
    return [
        (
            f"{s.address}",
            f"{s.size}",
            s.type,
            s.bind,
            s.visibility,
            s.section,
            s.name + (f"{'@@' if s.default_version else '@'}{s.version}" if s.version else ""),
        )
        for s in symbols
    ]


@pytest.mark.parametrize("path", system_libraries(), ids=lambda path: path.name)
def test_symbols_agree_with_readelf_and_nm(path) -> None:
    """Every field of both tables, in order, of libraries that others made."""
    report = inspect_library(path)
    tables = readelf_rows(path)
    assert our_rows(report.symbols.dynamic) == tables.get(".dynsym", [])
    assert our_rows(report.symbols.static) == tables.get(".symtab", [])
    lines = [line.split() for line in tool("nm", "-D", "--without-symbol-versions", path)]
    named = {(line[-1], line[-2] not in "Uwv") for line in lines if len(line) > 1}
    assert named == {(s.name, s.defined) for s in report.symbols.dynamic}
    assert not list(faults(report.to_dict(), SCHEMA, SCHEMA))


def test_symbols_can_be_selected_and_sorted(library) -> None:
    """By a text, a pattern, definition; by name, size or address."""
    symbols = inspect_library(library).symbols.dynamic
    names = [s.name for s in select_symbols(symbols, text="ffi", order="name", defined=True)]
    assert names == ["__tvm_ffi_add", "__tvm_ffi_main"]
    pattern = re.compile("^(add|exp)$")
    assert {s.name: s.defined for s in select_symbols(symbols, pattern=pattern)} == {
        "add": True,
        "exp": False,
    }
    sizes = [s.size for s in select_symbols(symbols, order="size")]
    assert sizes == sorted(sizes, reverse=True)
    addresses = [s.address for s in select_symbols(symbols, order="address", defined=True)]
    assert addresses == sorted(addresses)
    assert all(not s.defined for s in select_symbols(symbols, defined=False))


def test_our_symbols_are_explained(library) -> None:
    """Blob, manifest, entry, wrappers, metadata, context; plain ones are not."""
    symbols = list(inspect_library(library).symbols.dynamic)
    text = draw(list_symbols("dynamic symbols", symbols, len(symbols)))
    assert text.startswith(f"dynamic symbols: {len(symbols)}\n")
    for name, meaning in (
        ("__tvm_dev_mblob", "the blob"),
        ("__packer_manifest", "the manifest"),
        ("__tvm_main__", "the name of the entry"),
        ("__tvm_ffi_add", "wrapper of add"),
        ("__packer_fn_add", "facts of add"),
        ("__TVMFFIErrorSetRaisedFromCStr", "context: raises an error"),
    ):
        assert re.search(rf" {name} +# {meaning}", text)
    for symbol, meaning in (
        ("__tvm_module_ctx", "context: the library's module"),
        ("TVMFuncCall", "of the runtime: calls a packed function"),
        ("__TVMFuncCall", "context: calls a packed function"),
        ("net1___TVMFuncCall", "context: calls a packed function; of system library 'net1_'"),
        ("net1___tvm_dev_mblob", "the blob: the imported modules; of system library 'net1_'"),
        ("__tvm_ffi__metadata_f", "metadata of f: code that returns its types as JSON"),
    ):
        assert meaning_of(symbol) == meaning
    assert meaning_of("add") == meaning_of("__tvm_ffi_{0}"[:10]) == ""


def test_a_million_symbols_are_counted_and_not_decoded(tmp_path, monkeypatch) -> None:
    """A summary looks its symbols up; only a listing decodes each symbol."""
    path = tmp_path / "many.so"
    lines = [f".globl f{i}\nf{i}:" for i in range(20_000)]
    (tmp_path / "many.s").write_text(
        "\n".join([*lines, "ret", '.section .note.GNU-stack,"",@progbits\n'])
    )
    subprocess.run(["cc", "-shared", "-nostdlib", tmp_path / "many.s", "-o", path], check=True)
    decoded = []
    original = packer.elf.symbol_table.SymbolTable._name
    monkeypatch.setattr(
        packer.elf.symbol_table.SymbolTable,
        "_name",
        lambda self, *at: decoded.append(at) or original(self, *at),
    )
    report = inspect_library(path)
    packer.inspect.render(report)
    assert report.symbols.dynamic.count_defined() == 20_000
    assert len(decoded) < 100


# ---- blob, sizes, JSON ---------------------------------------------------------------------------


def test_payload_heads_are_decoded(library) -> None:
    """Each type's fields in the order of the payload; bytes of unknown types as they are."""
    entries = inspect_library(library).blob.entries
    fields = {e.key: {f.name: f.text for f in e.fields} for e in entries}
    assert fields["cuda"] == {
        "fmt": "ptx",
        "functions": "k(handle, int32) [blockIdx.x]",
        "data": '13 bytes: ".target sm_80"',
    }
    assert fields["metal"] == {"sources": "m", "functions": "none", "fmt": "metal"}
    assert fields["const_loader"] == {"constants": "w float32[2, 3]", "symbols": "add"}
    assert fields["GraphExecutorFactory"]["graph_json"] == '{"nodes": []}'
    assert fields["dnnl_json"] == {"symbol": "sub", "graph_json": "{}", "const_names": "c"}
    assert fields["strange"] == {"payload": "3 bytes: 00 01 ff"}
    assert fields["_lib"] == {}
    assert fields["_import_tree"]["import_tree_child_indices"] == "[1, 2, 3, 4, 5, 6]"


def test_blob_listing_has_the_offset_of_each_entry_in_the_file(library) -> None:
    """The key of an entry is at the offset that is shown."""
    data = library.read_bytes()
    text = draw(list_entries(inspect_library(library).blob))
    rows = re.findall(r"^  0x[0-9a-f]+ +(0x[0-9a-f]+) +[\d,]+  (\S+)$", text, re.MULTILINE)
    assert len(rows) == 8
    for place, key in rows:
        assert data[int(place, 16) + 8 :].startswith(key.encode())


def test_sizes_agree_with_readelf_and_leave_nothing_out(library) -> None:
    """Segments and sections equal readelf's; sections and the rest make up the file."""
    report = inspect_library(library)
    lines = [re.sub(r"^ +\[ *\d+\] ", "", one).split() for one in tool("readelf", "-SW", library)]
    rows = {f[0]: int(f[4], 16) for f in lines if len(f) > 8 and f[0].startswith(".")}
    assert {s.name: s.nbytes for s in report.sections if s.name} == rows
    segments = [one.split() for one in tool("readelf", "-lW", library)]
    kinds = [f[0] for f in segments if len(f) > 6 and f[1].startswith("0x")]
    assert [s.type_name for s in report.segments] == kinds
    text = draw(list_sizes(report))
    listed = text.partition("\nsections\n")[2].partition("\nblob entries\n")[0]
    sizes = [int(one.split()[0].replace(",", "")) for one in listed.splitlines()[1:]]
    assert sum(sizes) == report.nbytes
    assert "in no section: headers, padding" in listed


def test_json_follows_the_published_schema(library, compile_library) -> None:
    """With and without a tree; every property is in the schema."""
    for path in (library, compile_library("int f(void) { return 1; }")):
        content = json.loads(json.dumps(inspect_library(path).to_dict()))
        assert not list(faults(content, SCHEMA, SCHEMA))
    content["machine"] = 5
    del content["symbols"]["dynamic"][0]["bind"]
    content["news"] = 1
    assert len(list(faults(content, SCHEMA, SCHEMA))) == 3


def test_glibc_floor_is_the_newest_version_needed(library) -> None:
    """The version is the newest of each library that readelf shows."""
    linkage = inspect_library(library).linkage
    versions = re.findall(r"Name: GLIBC_([\d.]+)", "\n".join(tool("readelf", "-VW", library)))
    newest = max(versions, key=lambda text: [int(part) for part in text.split(".")])
    assert linkage.glibc == newest
    assert {need.library for need in linkage.version_needs} <= set(linkage.needed)


# ---- the command ---------------------------------------------------------------------------------


def inspect(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    command = [sys.executable, "-m", "packer", "inspect", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_lists_are_printed_on_demand(library) -> None:
    """Each option its list, together too, below the headline."""
    run = inspect(library, "--symbols", "--dynamic", "--blob", "--size")
    assert (run.returncode, run.stderr) == (0, "")
    lines = run.stdout.splitlines()
    assert lines[0].startswith(f"{library}: ")
    for start in ("dynamic symbols: ", "blob __tvm_dev_mblob ", "segments, of ", "blob entries"):
        assert any(line.startswith(start) for line in lines)
    assert not any(line.startswith("static symbols") for line in lines)
    assert "\x1b" not in run.stdout


def test_json_symbols_can_be_selected(library) -> None:
    """The same options narrow the lists of the JSON."""
    run = inspect(library, "--json", "--dynamic", "--filter", "add", "--sort", "name")
    symbols = json.loads(run.stdout)["symbols"]
    names = [symbol["name"] for symbol in symbols["dynamic"]]
    assert names == ["__packer_fn_add", "__tvm_ffi_add", "add"]
    assert symbols["static"] == []


@pytest.mark.parametrize(
    "options", ["--filter x", "--sort size", "--symbols --regex (", "--symbols --sort x"]
)
def test_wrong_selection_is_wrong_usage(options, capsys) -> None:
    """Exit status 2; no file is read."""
    with pytest.raises(SystemExit, match="2"):
        parse(["none.so", *options.split()])
    assert "usage: packer inspect" in capsys.readouterr().err


def test_json_agrees_with_the_report(library) -> None:
    """The JSON is written as it is made, and is complete."""
    text = inspect(library, "--json").stdout
    assert json.loads(text) == json.loads(json.dumps(inspect_library(library).to_dict()))
    assert not list(faults(json.loads(text), SCHEMA, SCHEMA))


MEASURED = """
import resource, sys
from packer.cli import main
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
main(["inspect", *sys.argv[1:]])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""


@pytest.mark.parametrize("options", [("--json",), ("--blob",), ()])
def test_memory_per_module_is_bounded(tmp_path, options) -> None:
    """A copy of the whole report took 7 KiB of each of 65,000 modules; the bound is generous."""
    peaks = []
    for count in (1, 20_000):
        modules = [runtime.DeviceModule("opencl", "", "cl", []) for _ in range(count)]
        modules[0].set_imports(modules[1:])
        path = packer.export_library(modules[0], tmp_path / f"{count}.so")
        command = [sys.executable, "-c", MEASURED, path, *options]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        assert options != ("--json",) or len(json.loads(run.stdout)["modules"]) == count
        peaks.append(int(run.stderr))
    assert (peaks[1] - peaks[0]) / 20_000 < 3.5

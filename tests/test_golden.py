"""Golden files that real TVM wrote: read, compared field by field, written back byte for byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import packer
import runtime
from runtime.modules.device import DeviceModule
from runtime.serial.serializer import serialize_module_to_bytes

from .support.golden import RawModule, golden_payload, make_tree, params_json, payload_json

Golden = tuple[dict[str, Any], Path]


def _reads(golden: Golden) -> runtime.blob.Blob:
    return runtime.blob.parse(golden[1].with_suffix(".bin").read_bytes())


def test_accepted_blob_is_written_back_byte_for_byte(accepted_blob: Golden) -> None:
    """parse, then dump through the module objects, reproduces the file."""
    data = accepted_blob[1].with_suffix(".bin").read_bytes()
    blob = runtime.blob.parse(data)
    assert b"".join(runtime.blob.dump(blob)) == data


def test_entries_decode_to_the_fields_of_the_json(accepted_blob: Golden) -> None:
    """Offsets, keys and decoded payloads equal the JSON's entries."""
    entries = _reads(accepted_blob).entries
    expected = accepted_blob[0].get("entries", [])
    assert [(e.offset, e.key) for e in entries] == [(e["offset"], e["key"]) for e in expected]
    for entry, golden in zip(entries, expected, strict=True):
        assert entry.nbytes == golden["payload_offset"] + golden["payload_len"] - entry.offset
        if golden["payload"] is not None:
            assert entry.module is not None
            _assert_same_fields(payload_json(entry.module), golden_payload(golden["payload"]))


def _assert_same_fields(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """Compare the fields that both name: a description may leave some out, or add remarks."""
    names = found.keys() & expected.keys()
    assert names or not expected
    assert {n: found[n] for n in names} == {n: expected[n] for n in names}


def test_import_tree_is_that_of_the_json(accepted_blob: Golden) -> None:
    """Real TVM wrote the same CSR arrays; gen 0 has none."""
    golden, blob = accepted_blob[0], _reads(accepted_blob)
    if any(entry.key == "_import_tree" for entry in blob.entries):
        assert list(blob.import_tree_row_ptr or ()) == golden["row_ptr"]
        assert list(blob.import_tree_child_indices or ()) == golden["child_indices"]
    else:
        assert blob.import_tree_row_ptr is None


def test_blob_in_a_library_loads_as_real_tvm_reloads_it(reloaded_blob: Golden, pack_blob) -> None:
    """The tree of a library that holds the blob is the tree that legacy TVM built of it."""
    golden, path = reloaded_blob
    root = runtime.load(pack_blob(path.with_suffix(".bin").read_bytes()))
    _assert_same_tree(root, golden["legacy_load"]["modules"])


def _assert_same_tree(root: runtime.Module, expected: list[dict[str, Any]]) -> None:
    pending = [(root, 0)]
    while pending:
        module, index = pending.pop()
        assert module.type_key == expected[index]["type_key"]
        children = expected[index]["imports"]
        assert len(module.imported_modules) == len(children)
        pending += zip(module.imported_modules, children, strict=True)


def test_refused_blob_is_refused(refused_blob: Golden) -> None:
    """A blob that real TVM wrote by mistake raises one of our errors."""
    with pytest.raises(runtime.PackerError):
        _reads(refused_blob)


def test_params_file_round_trips(params_file: Golden) -> None:
    """A params dict file gives its arrays, and is written back byte for byte."""
    golden, path = params_file
    data = path.with_suffix(".bin").read_bytes()
    params = runtime.load_param_dict(data)
    assert params_json(params) == golden["arrays"]
    assert runtime.save_param_dict(params) == data


def test_dev_cc_text_is_that_of_tvm(cc_text: Path) -> None:
    """The C text for a golden blob is the text that TVM wrote for it."""
    from packer.dialect import Naming
    from packer.embed.c import array_text
    from packer.files.chunks import with_header

    name, *variants = cc_text.name.removesuffix(".cc.txt").split(".")
    system_lib, prefix = "system_lib" in variants, "myprefix_" if "prefix" in variants else ""
    chunks = with_header([cc_text.with_name(f"{name}.bin").read_bytes()])
    register = Naming("tvm", system_lib).register
    text = "".join(array_text(f"{prefix}__tvm_dev_mblob", chunks, register=register))
    assert text == cc_text.read_text()


def test_tree_is_exported_or_refused_for_a_true_cycle_only(golden_tree: Golden) -> None:
    """The tree that a golden file describes is restored from our bytes, in import order."""
    golden, _path = golden_tree
    export_dso = bool(golden["export_dso"])
    if _is_refused_by_us(golden):
        with pytest.raises(runtime.ExportError):
            serialize_module_to_bytes(make_tree(golden), export_dso)
        return
    data = serialize_module_to_bytes(make_tree(golden), export_dso)
    assert b"".join(runtime.blob.dump(runtime.blob.parse(data))) == data


def _is_refused_by_us(golden: dict[str, Any]) -> bool:
    modules, export_dso = golden["modules"], golden["export_dso"]
    if any(m["kind"] == "source" for m in modules):
        return True
    if not export_dso and any(m["kind"] == "c" and not m["binary_serializable"] for m in modules):
        return True
    dso = [bool(export_dso and m.get("dso_exportable")) for m in modules]
    return _has_true_cycle(dso, golden["imports"])


def _has_true_cycle(dso: list[bool], imports: list[list[int]]) -> bool:
    """An independent oracle: remove each module without remaining imports; only cycles remain."""
    group = [-1 if merged else i for i, merged in enumerate(dso)]
    edges: dict[int, set[int]] = {}
    pending, seen = [0], set()
    while pending:
        if (i := pending.pop()) not in seen:
            seen.add(i)
            pending += imports[i]
            targets = {group[c] for c in imports[i] if not (group[c] == group[i] == -1)}
            edges.setdefault(group[i], set()).update(targets)
    while leaves := {node for node, targets in edges.items() if not targets & edges.keys()}:
        edges = {node: targets for node, targets in edges.items() if node not in leaves}
    return bool(edges)


def test_random_tree_survives_a_library(random_tree, empty_object, tmp_path) -> None:
    """A graph is exported, loaded, and has its import order; a true cycle is refused."""
    dso, imports = random_tree["dso"], random_tree["imports"]
    modules = [
        packer.StaticLibraryModule(empty_object) if merged else DeviceModule("cuda", str(i), "", {})
        for i, merged in enumerate(dso)
    ]
    for module, children in zip(modules, imports, strict=True):
        for child in children:
            module.import_module(modules[child])
    cyclic = _has_true_cycle(dso, imports)
    assert cyclic == random_tree.get("true_cycle", False)
    if cyclic:
        with pytest.raises(runtime.ExportError, match="a cycle in the import tree: "):
            packer.export_library(modules[0], tmp_path / "tree.so")
        return
    root = runtime.load(
        packer.export_library(modules[0], tmp_path / "tree.so", build=packer.Build(embed="c"))
    )
    assert _shape(root) == _expected_shape(modules[0], dso, modules)


def _shape(root: runtime.Module) -> dict[str, list[str]]:
    def name(m: runtime.Module) -> str:
        return bytes(m.data).decode() if isinstance(m, DeviceModule) else m.type_key

    pending, shape = [root], {}
    while pending:
        module = pending.pop()
        shape[name(module)] = [name(child) for child in module.imported_modules]
        pending += module.imported_modules
    return shape


def _expected_shape(root, dso, modules) -> dict[str, list[str]]:
    """Merge the host code by hand: preorder of first visit, first occurrence kept."""
    names = {id(m): "library" if dso[i] else str(i) for i, m in enumerate(modules)}
    shape: dict[str, list[str]] = {}
    seen: set[int] = set()

    def visit(module: runtime.Module) -> None:
        if id(module) in seen:
            return
        seen.add(id(module))
        row = shape.setdefault(names[id(module)], [])
        for child in module.imported_modules:
            name = names[id(child)]
            if name not in row and not name == names[id(module)] == "library":
                row.append(name)
        for child in module.imported_modules:
            visit(child)

    visit(root)
    return shape


def test_masks_are_those_of_the_design() -> None:
    """A carried module type has the property mask that real TVM gives it, or the design."""
    assert runtime.CarriedSourceModule("").property_mask == 5
    assert runtime.CarriedStaticLibraryModule(b"").property_mask == 5
    assert packer.CSourceModule("").property_mask == 4
    assert packer.LLVMModule("").property_mask == 6
    assert runtime.ConstLoaderModule({}, {}).property_mask == 1
    assert DeviceModule("cuda", "", "", {}).property_mask == 1
    assert RawModule("x.y", 1).is_binary_serializable


def test_every_blob_has_a_description(golden_dir: Path) -> None:
    """No file is left out of the tests above by mistake."""
    assert {p.stem for p in golden_dir.glob("*.bin")} <= {p.stem for p in golden_dir.glob("*.json")}

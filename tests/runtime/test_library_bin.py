"""Dialect tvm-ffi: written and read back, by us and by a real tvm_ffi."""

from __future__ import annotations

import json
import struct

import pytest

import packer
import runtime
from runtime.blob import Blob, dump, parse
from runtime.modules.device import Shader
from runtime.modules.opaque import OpaqueModule
from runtime.serial.serializer import serialize

from ..support.golden import payload_json
from ..support.process import run_python

TAGS = ("blockIdx.x", "threadIdx.x")
KERNEL = runtime.FunctionInfo("k", ("handle", "int32"), TAGS, (0, 1))


def u64(*values: int) -> bytes:
    """Little-endian u64s."""
    return struct.pack(f"<{len(values)}Q", *values)


def text(data: bytes) -> bytes:
    """A length, then the bytes."""
    return u64(len(data)) + data


def wire(blob: Blob) -> bytes:
    """The bytes of a blob."""
    return b"".join(bytes(chunk) for chunk in dump(blob))


def of(*modules: runtime.Module) -> bytes:
    """A blob with a carried root that imports these modules."""
    root = OpaqueModule("test.root", memoryview(b"root"))
    root.set_imports(list(modules))
    return wire(serialize(root, export_dso=True, dialect="tvm-ffi"))


def test_every_golden_module_survives_the_other_dialect(accepted_blob) -> None:
    """Each payload, by its fields, and the tree are restored; written again to the same bytes."""
    golden = parse(accepted_blob[1].with_suffix(".bin").read_bytes())
    count = len(golden.nodes)
    rows = (golden.import_tree_row_ptr, golden.import_tree_child_indices)
    if golden.import_tree_row_ptr is None:  # gen 0: here the first one imports the others
        rows = (0, *[max(count - 1, 0)] * count), tuple(range(1, count))
    data = wire(Blob(golden.nodes, *rows, dialect="tvm-ffi"))
    if not golden.nodes:
        assert data == u64(1, 0, 0)
        return
    blob = parse(data, "tvm-ffi")
    assert [entry.key for entry in blob.entries] == [entry.key for entry in golden.nodes]
    for found, expected in zip(blob.modules, golden.modules, strict=True):
        assert (found is None) == (expected is None)
        assert found is None or payload_json(found) == payload_json(expected)
    assert (blob.import_tree_row_ptr, blob.import_tree_child_indices) == rows
    assert wire(blob) == data


def test_device_code_has_tags_of_arguments() -> None:
    """FunctionInfo is followed by a vector<i32>, which the other dialect does not have."""
    module = runtime.DeviceModule("opencl", b"code", "cl", [KERNEL])
    info = text(b"k") + u64(2) + bytes([3, 64, 1, 0, 0, 32, 1, 0])
    info += u64(2) + text(TAGS[0].encode()) + text(TAGS[1].encode()) + u64(2) + b"\0\0\0\0\1\0\0\0"
    source = text(b"// Function: k\n#line 1\ncode")
    payload = text(b"cl") + u64(1) + text(b"k") + info + source
    data = of(module)
    assert data.endswith(text(b"opencl") + text(payload))
    found = parse(data, "tvm-ffi").modules[1]
    assert found.functions == {"k": KERNEL}


@pytest.mark.parametrize(
    ("key", "code", "fmt", "wire_codes"),
    [
        ("metal", {"k": "source"}, "metal", text(b"source")),
        ("metal", {"k": b"\xff\0binary"}, "metallib", text(b"\xff\0binary")),
        ("vulkan", {"k": Shader(7, u64(1, 2))}, "spirv",
         text(b"\7\0\0\0" + u64(4) + u64(1, 2))),
    ],
)  # fmt: skip
def test_code_by_kernel_is_a_map_to_bytes(key, code, fmt, wire_codes) -> None:
    """fmt, functions, map<string, bytes>: no version, no u32 outside of the bytes."""
    code = {name: memoryview(c) if isinstance(c, bytes) else c for name, c in code.items()}
    data = of(runtime.DeviceModule(key, code, fmt, []))
    assert data.endswith(
        text(key.encode()) + text(text(fmt.encode()) + u64(0, 1) + text(b"k") + wire_codes)
    )
    module = parse(data, "tvm-ffi").modules[1]
    assert (module.fmt, list(module.data)) == (fmt, ["k"])
    assert of(module) == data


def test_kind_without_a_loader_is_carried() -> None:
    """Payloads state their length, so no manifest is needed; the module names its loader."""
    thing = OpaqueModule("vendor.thing", memoryview(b"12345"))
    (found,) = parse(of(thing), "tvm-ffi").modules[1:]
    assert (found.type_key, bytes(found.payload)) == ("vendor.thing", b"12345")
    with pytest.raises(runtime.LoaderNotFoundError, match=r"'vendor\.thing' has no loader here"):
        found["f"]


def test_payload_must_end_where_its_length_says() -> None:
    """A payload is refused if it has one byte more, or one less."""
    cuda = text(b"ptx") + u64(0) + text(b"code")
    tree = u64(2, 0, 0, 0)
    assert parse(tree + text(b"cuda") + text(cuda), "tvm-ffi").modules[0].fmt == "ptx"
    with pytest.raises(runtime.BlobFormatError, match="1 bytes after the payload of 'cuda'"):
        parse(tree + text(b"cuda") + text(cuda + b"x"), "tvm-ffi")
    with pytest.raises(runtime.BlobFormatError, match="expected at most 3 left"):
        parse(tree + text(b"cuda") + text(cuda[:-1]), "tvm-ffi")


def test_blob_of_too_many_modules_is_refused_before_any_is_read() -> None:
    """The row pointers alone show the count."""
    with pytest.raises(runtime.BlobFormatError, match="65538 elements, expected at most 65537"):
        parse(u64(65538, *[0] * 65539), "tvm-ffi")


def test_unknown_dialect_is_refused() -> None:
    """The reader refuses it, and so does an export."""
    with pytest.raises(ValueError, match="dialect 'x' is not known; known: tvm, tvm-ffi"):
        parse(b"", "x")
    with pytest.raises(ValueError, match="dialect 'x' is not known"):
        packer.export_library(runtime.DeviceModule("cuda", b"", "ptx", []), "x.so", format="x")


def host(*imports: runtime.Module) -> packer.CSourceModule:
    """Host code with imports."""
    root = packer.CSourceModule(
        "long add(long a, long b) { return a + b; }", functions={"add": "long(long a, long b)"}
    )
    root.set_imports(list(imports))
    return root


@pytest.mark.parametrize("embed", ["segment", "llvm", "c"])
def test_library_is_restored_as_its_tree(embed, tmp_path) -> None:
    """The blob is at the other symbol, whichever embedder put it there."""
    inner = runtime.DeviceModule("cuda", b"ptx text", "ptx", [KERNEL])
    outer = runtime.DeviceModule("opencl", b"cl text", "cl", [])
    outer.set_imports([inner])
    path = packer.export_library(
        host(outer), tmp_path / "model.so", format="tvm-ffi", build=packer.Build(embed=embed)
    )
    root = runtime.load(path)
    assert root["add"](40, 2) == 42
    (opencl,) = root.imported_modules
    (cuda,) = opencl.imported_modules
    assert (bytes(opencl.data), bytes(cuda.data)) == (b"cl text", b"ptx text")
    assert cuda.functions == {"k": KERNEL}
    report = packer.inspect_library(path)
    assert (report.dialect, report.blob.symbol) == ("tvm-ffi", "__tvm_ffi__library_bin")


def test_weights_are_as_aligned_as_in_the_other_dialect(tmp_path) -> None:
    """An aligned payload counts its offset on from the symbol."""
    (tmp_path / "w.safetensors").write_bytes(
        text(b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}  ') + struct.pack("<2f", 1, 2)
    )
    weights = runtime.SafetensorsModule(tmp_path / "w.safetensors")
    path = packer.export_library(host(weights), tmp_path / "model.so", format="tvm-ffi")
    array = runtime.load(path).weights["w"].numpy()
    assert array.tolist() == [1, 2]
    assert array.ctypes.data % 64 == 0


THEIRS = """
import json, sys, tvm_ffi
seen = []
@tvm_ffi.register_global_func("ffi.Module.load_from_bytes.test.note")
def load(data):
    seen.append(bytes(data).decode())
    return tvm_ffi.load_module(sys.argv[2])
module = tvm_ffi.load_module(sys.argv[1])
print(json.dumps([seen, len(module.imports), module["add"](40, 2), module.imports[0]["add"](1, 2)]))
"""


def test_real_tvm_ffi_reads_the_tree(tmp_path) -> None:
    """It gives each payload to its loader, and links the imports."""
    notes = [OpaqueModule("test.note", memoryview(b)) for b in (b"first", b"second")]
    path = packer.export_library(host(*notes), tmp_path / "model.so", format="tvm-ffi")
    other = packer.export_library(host(), tmp_path / "other.so")
    assert run_python(THEIRS, str(path), str(other)) == [["first", "second"], 2, 42, 3]


TELLING = """
#include "dso_packer.h"
static int text(const char *data, dso_any *result) {
  result->type_index = DSO_RAW_STR;
  result->v_c_str = data;
  return 0;
}
#define FUNCTION(name) \\
  DSO_EXPORT int __tvm_ffi_##name(void *s, const dso_any *a, int32_t n, dso_any *result)
FUNCTION(f) { result->type_index = DSO_NONE; return 0; }
FUNCTION(_doc_f) { return text("Does f.", result); }
FUNCTION(_metadata_f) { return text("{\\"type_schema\\": \\"...\\"}", result); }
FUNCTION(g) { return 0; }
FUNCTION(_doc_g) { return dso_raise("ValueError", "no words"); }
"""


def test_docs_and_metadata_of_other_libraries_are_queried(tmp_path) -> None:
    """Libraries of other tools have functions for it; their errors arrive."""
    path = packer.export_library(packer.CSourceModule(TELLING), tmp_path / "lib.so")
    library = runtime.load(path)
    assert library["f"].__doc__ == "Does f."
    assert library["f"].metadata == '{"type_schema": "..."}'
    assert library["g"].metadata is None
    with pytest.raises(ValueError, match="no words"):
        _ = library["g"].__doc__


def test_real_tvm_ffi_reads_our_metadata(tmp_path) -> None:
    """Types of the declaration; the metadata has the doc, without a call."""
    add = packer.FunctionDeclaration("long(long a, long b)", doc="The sum.")
    root = packer.CSourceModule(
        "long add(long a, long b) { return a + b; }", functions={"add": add}
    )
    path = packer.export_library(root, tmp_path / "model.so", format="tvm-ffi")
    function = runtime.load(path)["add"]
    theirs = run_python(
        "import json, sys, tvm_ffi\n"
        "module = tvm_ffi.load_module(sys.argv[1])\n"
        "print(json.dumps([module.get_function_metadata('add'), module.get_function_doc('add')]))",
        str(path),
    )
    assert theirs == [json.loads(function.metadata), "The sum."]
    assert function.__doc__ == "The sum."

"""The blob: a good one, one thing poked, exactly the named guard; and the trees of old writers."""

from __future__ import annotations

import json
import struct
import sys
import tracemalloc

import pytest

import runtime
from runtime.blob import MAX_MODULES, dump, link_tree, parse, parse_symbol
from runtime.registry import find_loader


def u64(*values: int) -> bytes:
    """Little-endian words."""
    return struct.pack(f"<{len(values)}Q", *values)


def text(value: str | bytes) -> bytes:
    """A length-prefixed string."""
    data = value.encode() if isinstance(value, str) else value
    return u64(len(data)) + data


def cuda(data: str = "") -> bytes:
    """A cuda entry: key, fmt, no functions, data."""
    return text("cuda") + text("ptx") + u64(0) + text(data)


LIB = text("_lib")


def tree(row_ptr: list[int], indices: list[int]) -> bytes:
    """An _import_tree entry."""
    return text("_import_tree") + u64(len(row_ptr), *row_ptr) + u64(len(indices), *indices)


def blob(*entries: bytes) -> bytes:
    """A blob without its header."""
    return u64(len(entries)) + b"".join(entries)


GOOD = blob(LIB, cuda("k"), tree([0, 1, 1], [1]))


def test_good_blob_is_written_back() -> None:
    """The blob that all rows below poke is valid."""
    assert b"".join(dump(parse(GOOD))) == GOOD


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (blob(LIB, text("_import_tree") + u64(2, 0)), "a count of 2 elements, expected at"),
        (blob(u64(0) + b"x"), "at 0x8: a key of 0 bytes, expected 1 to 255"),
        (blob(text("x" * 256)), "at 0x8: a key of 256 bytes, expected 1 to 255"),
        (blob(text("a\0b")), r"at 0x8: key b'a\\x00b', expected letters"),
        (blob(text("a\nb")), r"key b'a\\nb', expected letters"),
        (blob(text(b"\xff")), r"key b'\\xff', expected letters"),
        (blob(text("%n")), "key b'%n', expected letters"),
        (blob(text("../x")), r"key b'\.\./x', expected letters"),
        (blob(LIB + b"payload!", tree([0, 0], [])), "a key of"),
        (blob(text("cuda") + u64(1)), "at 0x14: a length of 1 bytes, expected at most 0"),
        (blob(text("cuda") + u64(2**64 - 1)), "a length of 18446744073709551615 bytes"),
        (blob(tree([0], [])), "an import tree over no modules"),
        (blob(LIB, cuda(), tree([1, 1, 1], [1])), "row pointers from 1 to 1, expected from"),
        (blob(LIB, cuda(), tree([0, 1, 0], [])), "row pointers that fall"),
        (
            blob(LIB, cuda(), tree([0, 1, 1], [2])),
            "child index 2 out of range, expected less",
        ),
        (blob(LIB, cuda(), tree([0, 1, 1], [2**31])), "child index 2147483648 out of range"),
        (blob(LIB, cuda(), tree([0, 1, 1], [2**63])), "child index 9223372036854775808 out"),
        (blob(LIB), "'_lib' without an '_import_tree', expected both"),
        (blob(LIB, tree([0, 0], []), tree([0, 0], [])), "a second '_import_tree'"),
    ],
)
def test_poked_blob_reaches_its_guard(data, message) -> None:
    """One field is wrong: BlobFormatError, with the offset and the value found."""
    with pytest.raises(runtime.BlobFormatError, match=message) as info:
        parse(data)
    assert info.value.offset is not None
    assert isinstance(info.value, ValueError)


def test_blob_cut_at_every_byte_is_refused() -> None:
    """A cut blob is never a valid blob."""
    for size in range(len(GOOD)):
        with pytest.raises(runtime.BlobFormatError):
            parse(GOOD[:size])


@pytest.mark.parametrize(
    ("data", "dialect", "message"),
    [
        (blob(LIB, text("_import_tree") + u64(65_538)), "tvm", "a count of 65538 elements"),
        (
            blob(LIB, text("_import_tree") + u64(2, 0, 2**20 + 1, 2**20 + 1)),
            "tvm",
            "a count of 1048577 elements, expected at most 1048576",
        ),
        (
            u64(2, 0, 2**20 + 1, 2**20 + 1),
            "tvm-ffi",
            "a count of 1048577 elements, expected at most 1048576",
        ),
        (
            blob(text("cuda") + text("ptx") + u64(1) + text("f") + text("f") + u64(8193)),
            "tvm",
            "a count of 8193 elements, expected at most 8192",
        ),
        (
            blob(text("cuda") + text("ptx") + u64(1) + text("f") + text("f") + u64(0, 257)),
            "tvm",
            "a count of 257 elements, expected at most 256",
        ),
        (blob(text("cuda") + u64(2**32)), "tvm", "a length of 4294967296 bytes"),
    ],
    ids=[
        *("row pointers", "child indices", "child indices, tvm-ffi", "arguments", "launch tags"),
        "payload of 4 GiB",
    ],
)
def test_vector_beyond_all_trees_and_kernels_takes_no_memory(data, dialect, message) -> None:
    """The bytes for it are there: each number would take five times as much memory."""
    data += bytes(16 << 20)
    tracemalloc.start()
    with pytest.raises(runtime.BlobFormatError, match=message):
        parse(data, dialect)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_tree_that_no_reader_takes_is_not_written() -> None:
    """65,537 modules."""
    root = runtime.DeviceModule("cuda", b"", "ptx", [])
    for _ in range(MAX_MODULES):
        root.import_module(runtime.DeviceModule("cuda", b"", "ptx", []))
    match = "a tree of 65537 modules and 65536 imports, expected at most 65536 and 1048576"
    with pytest.raises(runtime.ExportError, match=match):
        runtime.serialize_module_to_bytes(root)


def test_message_shows_the_first_of_many_names() -> None:
    """A message is not as long as the file."""
    data = blob(text("const_loader") + u64(10_000) + bytes(80_000))
    with pytest.raises(runtime.BlobFormatError, match="array names .*'', ''.*expected") as caught:
        parse(data)
    assert len(str(caught.value)) < 200


def test_chain_of_20000_modules_is_linked() -> None:
    """A deep tree needs no recursion."""
    n = 20_000
    entries = [text("metadata_module")] * n
    data = blob(*entries, tree([*range(n), n - 1], list(range(1, n))))
    module = link_tree(parse(data))
    depth = 1
    while module.imported_modules:
        (module,) = module.imported_modules
        depth += 1
    assert depth == n


def test_child_a_thousand_times_is_one_import() -> None:
    """Gen 1 wrote duplicates; they are one import, and are written back as they were."""
    data = blob(cuda("a"), cuda("b"), tree([0, 1000, 1000], [1] * 1000))
    parsed = parse(data)
    assert b"".join(dump(parsed)) == data
    assert len(link_tree(parsed).imported_modules) == 1


def test_child_may_precede_its_parent() -> None:
    """Only a real cycle is one; gen 1 put children anywhere."""
    data = blob(cuda("root"), cuda("leaf"), cuda("middle"), tree([0, 1, 1, 2], [2, 1]))
    root = link_tree(parse(data))
    (middle,) = root.imported_modules
    assert [bytes(m.data) for m in middle.imported_modules] == [b"leaf"]


def test_gen0_blob_hangs_all_modules_under_the_library() -> None:
    """Without a tree, the library is the root and imports every module."""
    library = runtime.Module()
    assert link_tree(parse(blob(cuda("a"), cuda("b"))), library) is library
    assert [bytes(m.data) for m in library.imported_modules] == [b"a", b"b"]


def test_gen0_blob_without_a_library_is_refused() -> None:
    """Bytes from memory have no library for the root."""
    with pytest.raises(runtime.BlobFormatError, match="only a library can be its root"):
        runtime.deserialize_module_from_bytes(blob(cuda()))


def test_bytes_with_a_library_placeholder_are_refused() -> None:
    """A `_lib` entry stands for a library, which bytes from memory do not have."""
    with pytest.raises(runtime.BlobFormatError, match="at 0x8: '_lib' stands for a library"):
        runtime.deserialize_module_from_bytes(GOOD)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "a symbol of 0 bytes, expected at least 8"),
        (bytes(7), "a symbol of 7 bytes, expected at least 8"),
        (u64(len(GOOD) + 1) + GOOD, f"nbytes is {len(GOOD) + 1}, expected {len(GOOD)}"),
        (u64(len(GOOD) - 1) + GOOD, f"nbytes is {len(GOOD) - 1}, expected {len(GOOD)}"),
        (u64(2**62) + GOOD, f"nbytes is {2**62}, expected {len(GOOD)}"),
        (u64(2**64 - 1) + GOOD, f"nbytes is {2**64 - 1}, expected {len(GOOD)}"),
        (len(GOOD).to_bytes(8, "big") + GOOD, "nbytes is big-endian, expected little-endian"),
    ],
)
def test_header_that_disagrees_with_the_symbol_is_refused(data, message) -> None:
    """Header that disagrees with the symbol is refused."""
    with pytest.raises(runtime.BlobFormatError, match=f"lib.so: __tvm_dev_mblob at 0x0: {message}"):
        parse_symbol(memoryview(data), path="lib.so")


def test_real_and_source_layouts_are_distinguished_by_their_end() -> None:
    """metal, vulkan and webgpu have two layouts each; both may occur in one blob."""
    infos = [runtime.FunctionInfo("k", ["handle"], ["threadIdx.x"])]
    modules = [
        runtime.DeviceModule("metal", "kernel", "metal", infos),
        runtime.DeviceModule("metal", {"k": "kernel void k(){}"}, "metal", infos),
        runtime.DeviceModule("vulkan", b"\1\2\3\4", "spirv", infos),
        runtime.DeviceModule("vulkan", {"k": runtime.Shader(1, b"\3\2\x23\7")}, "spirv", infos),
        runtime.DeviceModule("webgpu", "fn k(){}", "wgsl", infos),
        runtime.DeviceModule("webgpu", {"k": "fn k(){}"}, "", infos),
    ]
    root = runtime.MetadataModule()
    for module in modules:
        root.import_module(module)
    data = runtime.serialize_module_to_bytes(root)
    back = runtime.deserialize_module_from_bytes(data)
    assert [m.layout for m in back.imported_modules] == [m.layout for m in modules]
    assert runtime.serialize_module_to_bytes(back) == data


def test_payload_of_another_kind_is_refused() -> None:
    """The bytes of a const_loader under the key of a device."""
    constants = runtime.serialize_module_to_bytes(runtime.ConstLoaderModule({}, {"f": []}))
    with pytest.raises(runtime.BlobFormatError):
        parse(constants.replace(text("const_loader"), text("hexagon")))


def test_python_reads_no_payload_that_the_core_refuses(monkeypatch) -> None:
    """Neither in a blob, nor alone: the core's loader is asked first."""
    monkeypatch.setattr("runtime.registry.decode", lambda *_: pytest.fail("was read"))
    payloads = {"relax.VMExecutable": u64(7), "cuda": text("ptx")[:-1], "const_loader": u64(1, 9)}
    for key, payload in payloads.items():
        with pytest.raises(runtime.BlobFormatError, match="at 0x"):
            parse(blob(text(key) + payload))
        with pytest.raises(runtime.BlobFormatError, match="payload at 0x"):
            find_loader(key)(runtime.Reader(payload, where="payload"))


def test_device_code_may_be_any_buffer(tmp_path) -> None:
    """A mapped file is taken as it is, without a copy."""
    import mmap

    (tmp_path / "k.cubin").write_bytes(b"cubin" * 1000)
    with (tmp_path / "k.cubin").open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    module = runtime.DeviceModule("cuda", mapped, "cubin", [])
    assert module.data.obj is mapped
    data = runtime.serialize_module_to_bytes(module)
    assert bytes(runtime.deserialize_module_from_bytes(data).data) == b"cubin" * 1000


def carried(count: int) -> tuple[bytes, bytes]:
    """A blob of modules in a row whose types have no loader, and its manifest."""
    entries, listed, offset = [], [], 8
    for i in range(count):
        key = f"strange{i}"
        entries.append(text(key) + b"x")
        listed.append({"type_key": key, "offset": offset, "nbytes": len(entries[-1])})
        offset += len(entries[-1])
    row_ptr = [*range(count), count - 1]
    manifest = {"schema": 1, "producer": "p", "target": "t", "entries": listed}
    return blob(*entries, tree(row_ptr, list(range(1, count)))), json.dumps(manifest).encode()


def test_many_unknown_types_ask_once(monkeypatch) -> None:
    """Packages are asked for loaders once for a blob."""
    asked: list[str] = []

    class Packages:
        @staticmethod
        def find_spec(*_: object) -> None:
            return None

        @staticmethod
        def find_distributions(_: object) -> list[object]:
            asked.append("packages")
            return []

    monkeypatch.setattr("sys.meta_path", [*sys.meta_path, Packages])
    data, manifest = carried(50)
    assert len(parse(data, manifest_text=manifest).entries) == 51
    assert asked == ["packages"]
    parse(data, manifest_text=manifest)
    assert asked == ["packages"] * 2


@pytest.mark.parametrize(
    ("manifest", "match"),
    [
        (b'{"schema": ' + b"[" * 100_000, "JSON of 100001 levels, expected at most 64"),
        (b"[" + b"[]," * 400_000 + b"0]", "JSON of 800002 values, expected at most 400000"),
        (b'"' + b" " * (100 << 20) + b'"', "JSON of .* bytes, expected at most 100000000"),
        (b"1" * 5000, "JSON of 5000 digits in a number"),
        (b"\xff", "'utf-8' codec can't decode"),
    ],
    ids=["deep", "wide", "long", "digits", "bytes"],
)
def test_manifest_is_bounded_before_it_is_parsed(manifest: bytes, match: str) -> None:
    """The limit of a manifest is enough for every module that a blob may have."""
    data, _ = carried(1)
    with pytest.raises(runtime.BlobFormatError, match=f"__packer_manifest at 0x0: .*{match}"):
        parse(data, manifest_text=manifest)

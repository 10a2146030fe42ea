"""packer extract: payloads as files, and back to the same bytes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy
import pytest

import packer
import runtime
from packer.inspect import open_library
from packer.inspect.extract import extract_library
from packer.inspect.extract.names import Names
from packer.inspect.extract.toml import quoted
from packer.project import read_project
from runtime.error import ExportError, PackerError

from ...support.graphs import sum_graph

INFO = runtime.FunctionInfo("k", ["handle", "int32"], ["blockIdx.x", "tir.use_dyn_shared_memory"])


def bfloat16() -> runtime.Tensor:
    """An array that NumPy has no type for."""
    return runtime.Tensor(b"\0\1\2\3", (2,), (4, 16, 1))


def safetensors() -> bytes:
    """A file of one tensor."""
    header = b'{"w":{"dtype":"I16","shape":[2],"data_offsets":[0,4]}}'
    return len(header).to_bytes(8, "little") + header + b"\1\0\2\0"


def modules() -> dict[str, runtime.Module]:
    """One module of each kind, by the name that it is extracted under."""
    spirv = runtime.Shader(3, b"\x03\x02\x23\x07" * 4)
    arrays = {"x": numpy.arange(6, dtype="int16").reshape(2, 3), "b": numpy.array(True)}
    return {
        "cuda": runtime.DeviceModule("cuda", "// ptx \u00e9\n", "ptx", [INFO]),
        "cuda_2": runtime.DeviceModule("cuda", b"\x7fELF\0", "cubin", []),
        "opencl": runtime.DeviceModule("opencl", "", "", {"alias": INFO}),
        "metal": runtime.DeviceModule("metal", {"k": "kernel", "../k": "x"}, "metal", [INFO]),
        "vulkan": runtime.DeviceModule("vulkan", {"k": spirv}, "spirv", [INFO]),
        "webgpu": runtime.DeviceModule("webgpu", {"k": "@compute"}, "", [INFO]),
        "const_loader": runtime.ConstLoaderModule(arrays, {"f": ["x", "b"], "g": []}),
        "const_loader_2": runtime.ConstLoaderModule({"h": bfloat16()}, {'"\n': ["h"]}),
        "graphexecutorfactory": runtime.GraphExecutorFactory('{"a":"\u00e9"}', {"p": bfloat16()}),
        "aotexecutorfactory": runtime.AotExecutorFactory({"p": arrays["x"]}, "it's \\"),
        "dnnl_json": runtime.JSONRuntimeModule("dnnl_json", "sub", '{"nodes":[]}', ["c"]),
        "metadata_module": runtime.MetadataModule(),
        "safetensors": runtime.SafetensorsModule(safetensors()),
        "shared_library": runtime.CarriedSharedLibraryModule(b"\x7fELF\0"),
        "strange_type": runtime.OpaqueModule("strange.type", memoryview(b"\0\1\xff")),
    }


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    """All of them in one library without host code, with a diamond."""
    first, *others = modules().values()
    for module in others:
        first.import_module(module)
    others[0].import_module(others[-1])
    return packer.export_library(first, tmp_path_factory.mktemp("extract") / "model.so")


def blob_of(path: Path) -> bytes:
    """Return the bytes of the blob."""
    blob = open_library(path).report.blob
    return path.read_bytes()[blob.offset : blob.offset + blob.nbytes]


def test_tree_without_host_code_is_restored_to_the_same_blob(library, tmp_path) -> None:
    """Through files and packer.toml alone, in another folder."""
    paths = extract_library(library, tmp_path / "out")
    assert paths[-1] == tmp_path / "out/packer.toml"
    project = read_project(paths[-1])
    again = packer.export_library(project.root, tmp_path / "again.so")
    assert blob_of(again) == blob_of(library)
    assert again.read_bytes() == library.read_bytes()


def test_payloads_are_the_files_they_were(library, tmp_path) -> None:
    """Sources, binaries, JSON, arrays, weights; an unknown payload becomes its bytes."""
    paths = extract_library(library, tmp_path)
    files = {p.name: p.read_bytes() for p in paths}
    assert files["cuda.ptx"] == "// ptx \u00e9\n".encode()
    assert files["cuda_2.cubin"] == b"\x7fELF\0"
    assert files["metal.k.metal"] == b"kernel"
    assert files["metal._k.metal"] == b"x"
    assert files["vulkan.k.spv"] == b"\x03\x02\x23\x07" * 4
    assert files["webgpu.k.wgsl"] == b"@compute"
    assert files["graphexecutorfactory.json"] == '{"a":"\u00e9"}'.encode()
    assert files["dnnl_json.json"] == b'{"nodes":[]}'
    assert files["safetensors.safetensors"] == safetensors()
    assert files["strange_type.bin"] == b"\0\1\xff"
    params = runtime.load_param_dict(files["graphexecutorfactory.params"])
    assert bytes(params["p"].raw) == b"\0\1\2\3"
    array = numpy.load(tmp_path / "const_loader.x.npy")
    assert (array.dtype, array.tolist()) == (numpy.dtype("int16"), [[0, 1, 2], [3, 4, 5]])
    assert numpy.load(tmp_path / "const_loader.b.npy").shape == ()


def test_project_describes_the_kinds_that_it_supports(library, tmp_path) -> None:
    """Modules that have a kind in packer.toml use it; Python functions make the rest."""
    extract_library(library, tmp_path)
    tables = tomllib.loads((tmp_path / "packer.toml").read_text())["module"]
    kinds = {name: table["kind"] for name, table in tables.items()}
    assert list(kinds) == sorted(kinds, key=list(kinds).index)
    assert {name for name, kind in kinds.items() if kind != "python"} == {
        *("cuda", "cuda_2", "const_loader", "safetensors"),
    }
    assert set(kinds) == set(modules())


def test_a_runnable_graph_is_described(tmp_path) -> None:
    """Graph and parameters become separate files, and the same blob again."""
    params = {"w": numpy.zeros((2, 3), "float32")}
    factory = runtime.GraphExecutorFactory(json.dumps(sum_graph()), params, "sum")
    library = packer.export_library(factory, tmp_path / "model.so")
    extract_library(library, tmp_path / "out")
    text = (tmp_path / "out/packer.toml").read_text()
    (table,) = tomllib.loads(text)["module"].values()
    assert (table["kind"], table["name"]) == ("graph", "sum")
    again = read_project(tmp_path / "out/packer.toml")
    packer.export_library(again.root, tmp_path / "again.so")
    assert (tmp_path / "again.so").read_bytes() == library.read_bytes()


def test_host_code_is_replaced_by_a_stub(tmp_path) -> None:
    """The tree packs again to the same blob; the functions are left as comments."""
    root = packer.CSourceModule(
        "const char *f(long a) { return a ? 0 : 0; }",
        functions={"f": packer.FunctionDeclaration("const char *(long a)", doc='A "doc".')},
    )
    root.import_module(modules()["cuda"])
    library = packer.export_library(root, tmp_path / "model.so", entry="f")
    paths = extract_library(library, tmp_path / "out")
    assert [p.name for p in paths] == ["cuda.ptx", "host.c", "packer.toml"]
    text = paths[-1].read_text()
    assert "Host code cannot be extracted as source" in text
    assert '# f = { declaration = "const char *(long a)", doc = "A \\"doc\\"." }' in text
    again = packer.export_library(read_project(paths[-1]).root, tmp_path / "again.so")
    assert blob_of(again) == blob_of(library)
    # With the host code restored, and the comments applied, it is complete again.
    (tmp_path / "out/host.c").write_text("const char *f(long a) { return a ? 0 : 0; }")
    paths[-1].write_text(text.replace("# [mod", "[mod").replace("# f =", "f ="))
    whole = packer.export_library(read_project(paths[-1]).root, tmp_path / "whole.so")
    assert runtime.load(whole)["f"].__doc__ == 'A "doc".'


def test_carried_host_code_is_restored_as_its_payload(tmp_path) -> None:
    """An export would compile it, and make another blob."""
    path = tmp_path / "carried.so"
    first = runtime.MetadataModule()
    source = runtime.CarriedSourceModule("int f;", "c", ["f"])
    first.import_module(_carried(source))
    first.import_module(_carried(runtime.CarriedStaticLibraryModule(b"!<arch>\n", ["g"])))
    packer.export_library(first, path)
    paths = extract_library(path, tmp_path / "out")
    assert {"c.c", "c.bin", "static_library.a", "static_library.bin"} < {p.name for p in paths}
    again = packer.export_library(read_project(paths[-1]).root, tmp_path / "again.so")
    assert blob_of(again) == blob_of(path)


def _carried(module: runtime.Module) -> runtime.OpaqueModule:
    writer = runtime.Writer()
    module.save_to_binary(writer)
    payload = b"".join(bytes(chunk) for chunk in writer.finish())
    return runtime.OpaqueModule(module.type_key, memoryview(payload))


def test_alias_of_a_type_key_is_kept(tmp_path) -> None:
    """A module knows only its key; the blob's alias is restored as a payload."""
    module = runtime.DeviceModule("hip", b"code", "hsaco", [])
    payload = _carried(module).payload
    root = runtime.OpaqueModule("hsaco", payload)
    path = packer.export_library(root, tmp_path / "alias.so")
    paths = extract_library(path, tmp_path / "out")
    again = packer.export_library(read_project(paths[-1]).root, tmp_path / "again.so")
    assert blob_of(again) == blob_of(path)


HOSTILE = [
    "../../evil", "/etc/passwd", "..", ".", "", "-rf", ".hidden", "a/b", "a\\b", "C:x", "a\0b",
    "\x1b[31m", "x" * 300, "\u202e", "é", "packer.toml", "CON", "a\nb", '"', "'''", "${x}",
]  # fmt: skip


def test_hostile_names_stay_in_the_folder(tmp_path) -> None:
    """Hostile names of kernels, constants and formats are restored."""
    infos = {name: runtime.FunctionInfo(name) for name in HOSTILE}
    arrays = {name: numpy.zeros(1) for name in HOSTILE if name}
    root = runtime.DeviceModule("metal", dict.fromkeys(HOSTILE, "x"), "../evil", infos)
    root.import_module(runtime.DeviceModule("cuda", "x", "../../evil", infos))
    root.import_module(runtime.ConstLoaderModule(arrays, {name: [] for name in HOSTILE}))
    root.import_module(runtime.JSONRuntimeModule("a.b-c_json", '"""', "'\n", HOSTILE))
    library = packer.export_library(root, tmp_path / "model.so")
    folder = tmp_path / "deep/er"
    folder.mkdir(parents=True)
    paths = extract_library(library, folder)
    assert {path.parent for path in paths} == {folder}
    assert sorted(path.name for path in paths) == sorted(os.listdir(folder))
    assert sorted(os.listdir(tmp_path)) == ["deep", "model.so"]
    assert all(name.isascii() and name[0] not in ".-" for name in os.listdir(folder))
    again = packer.export_library(read_project(paths[-1]).root, tmp_path / "again.so")
    assert blob_of(again) == blob_of(library)


def test_names_are_used_once_in_any_case() -> None:
    """Some file systems do not distinguish upper from lower case."""
    names = Names(["packer.toml"])
    given = [names.of_file(text, suffix=".c") for text in ("a", "A", "a/", "?")]
    assert given == ["a.c", "A_2.c", "a_.c", "_.c"]
    assert [names.of_module(text) for text in ("a.b", "A-b")] == ["a_b", "a_b_2"]


def test_quoted_text_is_toml() -> None:
    """A text with any characters is quoted."""
    for text in (*HOSTILE, "\x7f", "\u2028", "\U0001f600", "\\U0041"):
        assert tomllib.loads(f"x = {quoted(text)}")["x"] == text


def test_nothing_is_overwritten_without_force(library, tmp_path) -> None:
    """Without force no file is written; with it a link is replaced, not followed."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/cuda.ptx").symlink_to(victim)
    with pytest.raises(ExportError, match="exists; use --force"):
        extract_library(library, tmp_path / "out")
    assert os.listdir(tmp_path / "out") == ["cuda.ptx"]
    extract_library(library, tmp_path / "out", force=True)
    assert victim.read_text() == "precious"
    assert not (tmp_path / "out/cuda.ptx").is_symlink()


def test_library_without_modules_is_refused(compile_library, tmp_path) -> None:
    """A plain library, a damaged blob of either dialect; no folder is made."""
    data = 'const unsigned char __attribute__((visibility("default")))'
    for source, match in (
        ("int f;", "contains no blob"),
        (f"{data} __tvm_dev_mblob[9] = {{1}};", "a blob of 1 bytes"),
        (f"{data} __tvm_ffi__library_bin[9] = {{1}};", "an integer of 8 bytes"),
    ):
        with pytest.raises(PackerError, match=match):
            extract_library(compile_library(source), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_folder_that_cannot_be_made_is_an_error(library, tmp_path) -> None:
    """The output is a file, or has no parent."""
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "none/out"):
        with pytest.raises(ExportError, match="cannot create the folder"):
            extract_library(library, folder)


def test_command_lists_the_written_files(library, tmp_path) -> None:
    """A line for each file; then `packer export` packs it again."""
    command = [sys.executable, "-m", "packer"]
    options = {"capture_output": True, "text": True, "cwd": tmp_path, "check": True}
    run = subprocess.run([*command, "extract", library, "-o", "out"], **options)
    assert "out/cuda.ptx: 10 bytes" in run.stdout.splitlines()
    options["cwd"] = tmp_path / "out"
    subprocess.run([*command, "export", "again.so"], **options)
    assert (tmp_path / "out/again.so").read_bytes() == library.read_bytes()

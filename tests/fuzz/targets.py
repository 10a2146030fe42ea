"""The targets: each format with valid inputs that our writers make, and its reader."""

from __future__ import annotations

import base64
import ctypes
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

import packer
import runtime
from packer.inspect.payload import fields_of
from runtime.blob import dump, link_tree, parse
from runtime.device.kernel_meta import read_meta
from runtime.device.standalone_files import load_file
from runtime.interchange import rebuild_module
from runtime.serial.manifest import parse_manifest

from ..support.cuda import DATA, build_fake_driver
from ..support.graphs import sum_graph
from .edited_inputs import Seed, binary, json_texts
from .encryption_targets import encryption_targets
from .judge import Target
from .library_targets import library_targets
from .packer_targets import npy_target, project_target, tar_target
from .reading import Library, in_file, of_seeds, read_tree, words
from .seeds import META, arrays, blobs, number_fields, safetensors, spirv, trees
from .trust_targets import trust_targets

INFO = runtime.FunctionInfo("scale", ["handle", "float32", "int32"], ["blockIdx.x", "threadIdx.x"])


def make_targets(folder: Path) -> list[Target]:
    """All targets; targets that read files have them in a folder."""
    return [
        *(blob_target(dialect) for dialect in ("tvm", "tvm-ffi")),
        graph_target(),
        safetensors_target(folder),
        params_target(),
        *cuda_targets(folder),
        file_target(folder, "spirv", "k.spv", words(spirv()), read_kernels),
        tar_target(folder),
        pickle_target(),
        *interchange_targets(),
        project_target(folder),
        npy_target(folder),
        meta_target(folder),
        manifest_target(),
        *trust_targets(folder),
        *library_targets(folder),
        *encryption_targets(),
    ]


def file_target(
    folder: Path, name: str, file: str, seed: Seed, read: Callable[[Path], Any]
) -> Target:
    """A target that reads a file."""
    return of_seeds(name, [seed], in_file(folder / file, read))


# ---- Trees


def blob_target(dialect: str) -> Target:
    """Blobs, which are written back, too."""

    def read(data: bytes) -> None:
        blob = parse(data, dialect)
        for entry in blob.entries:
            fields_of(blob, entry, memoryview(data)[entry.payload_offset :])
        read_tree(link_tree(blob, Library()))
        dump(blob)

    seeds = [Seed(data, number_fields(data)) for data in blobs(dialect)]
    return of_seeds(f"blob-{dialect}", seeds, read)


def pickle_target() -> Target:
    """The target of the bytes in a pickle."""

    def read(data: bytes) -> None:
        read_tree(rebuild_module(data))

    made = [runtime.serialize_module_to_bytes(tree, export_dso=False) for tree in trees()]
    seeds = [Seed(data, number_fields(data)) for data in made]
    return of_seeds("pickle", seeds, read)


def interchange_targets() -> list[Target]:
    """Base64 and JSON: the text, and right text of edited bytes."""

    def read_base64(data: bytes) -> None:
        read_tree(runtime.import_module_from_base64(data))

    def read_json(data: bytes) -> None:
        read_tree(runtime.load_json(data))

    def to_json(data: bytes) -> Any:
        text = base64.b64encode(len(data).to_bytes(8, "little") + data).decode()
        return {**graph, "nodes": [graph["nodes"][0], {**graph["nodes"][1], "repr_b64": text}]}

    inner = pickle_target().inputs
    graph = json.loads(runtime.save_json(runtime.MetadataModule()))
    texts = [runtime.export_module_to_base64(tree).encode() for tree in trees()]
    jsons = [runtime.save_json(tree) for tree in trees()]
    as_base64 = st.one_of(inner.map(base64.b64encode), binary([Seed(text) for text in texts]))
    as_json = st.one_of(
        inner.map(to_json).map(lambda value: json.dumps(value).encode()),
        json_texts([json.loads(text) for text in jsons]),
    )
    return [
        Target("base64", as_base64, texts, read_base64),
        Target("json", as_json, [text.encode() for text in jsons], read_json),
    ]


def manifest_target() -> Target:
    """The manifest of a library."""
    entries = [{"type_key": "strange", "offset": 8, "nbytes": 30}]
    fields = {"schema": 1, "producer": "p", "target": "x86_64-linux-gnu", "entries": entries}
    valid = [json.dumps(fields).encode()]
    return Target("manifest", json_texts([fields]), valid, parse_manifest)


# ---- Weights


def params_target() -> Target:
    """A dict of parameters."""

    def read(data: bytes) -> None:
        for tensor in runtime.load_param_dict(data).values():
            bytes(tensor.raw)

    data = runtime.save_param_dict(arrays())
    return of_seeds("params", [Seed(data, number_fields(data))], read)


def safetensors_target(folder: Path) -> Target:
    """Files of weights: edited bytes, and edited headers of the right length."""

    def read(path: Path) -> None:
        read_tree(load_file(str(path)))

    def with_header(header: bytes) -> bytes:
        return len(header).to_bytes(8, "little") + header + body

    data = safetensors()
    start = 8 + int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8:start]), data[start:]
    edited = json_texts([header]).map(with_header)
    inputs = st.one_of(edited, binary([Seed(data, ((0, 8),))]))
    return Target("safetensors", inputs, [data], in_file(folder / "w.safetensors", read))


# ---- Code


def graph_target() -> Target:
    """Graph JSON, with an executor that has memory for it."""

    def read(data: bytes) -> None:
        text = data.decode("utf-8", "surrogateescape")
        executor = runtime.graph_executor.create(text, Library())
        executor.function_names()

    graph = sum_graph()
    shared = {**graph, "attrs": {**graph["attrs"], "storage_id": ["list_int", [0, 1, 2, 2]]}}
    valid = [json.dumps(fields).encode() for fields in (graph, shared)]
    return Target("graph", json_texts([graph, shared]), valid, read)


def cuda_targets(folder: Path) -> list[Target]:
    """Cubins and fatbins as a launch splits them, with a FAKE driver that accepts all."""
    os.environ |= {
        "FAKE_CUDA_DEVICES": "80",
        "FAKE_CUDA_LOG": os.devnull,
        "FAKE_CUDA_PARAMS": "8 4 4",
    }
    driver = ctypes.CDLL(str(build_fake_driver(folder) / "libcuda.so.1"))
    assert driver.cuInit(0) == 0

    def launch(data: bytes) -> None:
        runtime.DeviceModule("cuda", data, "fatbin", [INFO])["scale"](None, 1.0, 1, 1, 1)

    cubins = [words((DATA / f"scale.{name}.cubin").read_bytes(), 8, 1024) for name in CUBINS]
    fatbin = (DATA / "scale.fatbin").read_bytes()
    small = packer.create_fatbin([cubins[0].data, (DATA / "scale.ptx").read_bytes()])
    fatbins = [words(fatbin, 4, 256), words(small, 4, 256)]
    return [of_seeds("cubin", cubins, launch), of_seeds("fatbin", fatbins, launch)]


CUBINS = ("sm_80", "sm_80.cuda12")


def read_kernels(path: Path) -> None:
    """Load a standalone file of device code."""
    read_tree(load_file(str(path)))


def meta_target(folder: Path) -> Target:
    """The metadata file next to device code."""
    path = folder / "meta.tvm_meta.json"
    read = in_file(path, lambda _: read_meta(folder / "meta.ptx", runtime.FunctionInfo))
    return Target("tvm_meta", json_texts([META]), [json.dumps(META).encode()], read)

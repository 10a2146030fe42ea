"""Valid inputs, as our own writers make them, and where the numbers in them are."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np

import runtime
from runtime.blob import dump, parse
from runtime.modules.vm import load as load_vm
from runtime.registry import find_loader
from runtime.serial.serializer import serialize
from runtime.serial.stream import Reader

from ..support.graphs import sum_graph
from ..support.paths import GOLDEN
from ..support.vm_assembler import TAGS_0_19, TAGS_0_22, doubling

META = {
    "tvm_version": "0.1.0",
    "func_info": {
        "k": {"name": "k", "arg_types": ["handle", "int32"], "launch_param_tags": ["blockIdx.x"]},
        "old": {"name": "o", "arg_types": [], "thread_axis_tags": ["threadIdx.x"]},
    },
}
PROJECTS = (
    "[library]\noutput = 'm.so'\nroot = 'host'\nformat = 'tvm'\nembed = 'c'\ntarget = 'x86_64'\n"
    "entry = 'one'\noptions = ['-lm']\naddons = []\nsystem_lib = false\nc_symbol_prefix = ''\n"
    "[module.host]\nkind = 'c'\nsources = ['a.c']\noptions = ['-O1']\nimports = ['k', 'w']\n"
    "functions.one = 'int(void)'\n"
    "[module.k]\nkind = 'cuda'\nfmt = 'ptx'\nsources = ['k.ptx']\n"
    "[module.k.functions]\nk = { arg_types = ['int32'], launch_param_tags = ['blockIdx.x'] }\n"
    "[module.w]\nkind = 'safetensors'\nsources = ['w.safetensors']\n",
    "[module.g]\nkind = 'graph'\ngraph = 'g.json'\nparams = 'w.params'\nname = 'default'\n"
    "imports = ['c']\n[module.c]\nkind = 'const_loader'\nconstants = { w = 'w.npy' }\n"
    "[module.c.by_symbol]\nf = ['w']\n",
)
TOKENS = (
    *("0", "-1", "1e400", "true", "''", "[]", "{}", "[[]]", "'x'", "['a.c']", "['a.c', 1]", "nan"),
    *(
        "'c'",
        "'cuda'",
        "'graph'",
        "'g.json'",
        "'w.params'",
        "'w.npy'",
        "'.'",
        "'/dev/null'",
        "'../a.c'",
    ),
    *("'\\u0000'", '"\\u0000"', "'host'", "'w'", "['k']", "{ x = 1 }", "[module.z]", "9" * 5000),
    *("[" * 2000, "'int(*)(int)'", "'void('", '{ arg_types = ["int33"] }', "2020-01-01", "\ud800"),
)


def number_fields(data: bytes) -> tuple[tuple[int, int], ...]:
    """Where lengths, counts and indices may be: u64s that the input could contain so many of."""
    places = range(len(data) - 7)
    return tuple((at, 8) for at in places if 0 < _u64(data, at) <= len(data))


def _u64(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def arrays() -> dict[str, Any]:
    """Parameters of several types."""
    flags = np.array([True, False])
    return {"w": np.ones((2, 3), np.float32), "b": np.arange(4, dtype=np.int8), "flags": flags}


def trees() -> list[runtime.Module]:
    """One module of each type that has a binary form, and trees of them."""
    weights = {name: runtime.tensor(array) for name, array in arrays().items()}
    info = runtime.FunctionInfo("k", ["handle", "int32x4"], ["blockIdx.x", "threadIdx.x"])
    singles: list[runtime.Module] = [
        runtime.DeviceModule("cuda", ".target sm_80", "ptx", [info]),
        runtime.DeviceModule("metal", {"m": "kernel void m() {}"}, "metal", [info]),
        runtime.DeviceModule("vulkan", {"v": runtime.Shader(1, b"\3\2\x23\7")}, "spirv", [info]),
        runtime.DeviceModule("webgpu", {"w": "fn w() {}"}, "", [info]),
        runtime.ConstLoaderModule(weights, {"f": ["w", "b"]}),
        runtime.GraphExecutorFactory(json.dumps(sum_graph()), weights),
        runtime.JSONRuntimeModule("dnnl_json", "sub", "{}", ["c"]),
        runtime.CarriedSourceModule("int f(void);", "c", ["f"], ["v"]),
        runtime.CarriedStaticLibraryModule(b"!<arch>\n", ["g"]),
        runtime.MetadataModule(),
        load_vm(Reader(doubling().payload())),
        load_vm(Reader(doubling().version_one(TAGS_0_22).payload())),
        find_loader("relax.Executable")(
            Reader(doubling().version_one(TAGS_0_19, is_framed=True).payload())
        ),
    ]
    root, middle = runtime.MetadataModule(), runtime.JSONRuntimeModule("a_json", "s", "{}", [])
    for module in (middle, singles[0], singles[4]):
        root.import_module(module)
    for module in (singles[4], singles[7]):
        middle.import_module(module)
    return [*singles, root]


def blobs(dialect: str) -> list[bytes]:
    """Blobs of these trees, and blobs that TVM wrote."""
    made = [
        b"".join(map(bytes, dump(serialize(tree, export_dso=False, dialect=dialect))))
        for tree in trees()
    ]
    if dialect == "tvm":
        golden = [path.read_bytes() for path in sorted(GOLDEN.glob("*.bin"))]
        made += [data for data in golden if len(data) < 4096 and _is_blob(data)]
    return made


def _is_blob(data: bytes) -> bool:
    try:
        parse(data)
    except runtime.PackerError:
        return False
    return True


def safetensors() -> bytes:
    """A file of two tensors with metadata."""
    header = {
        "__metadata__": {"format": "pt"},
        "w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
        "b": {"dtype": "BF16", "shape": [4], "data_offsets": [24, 32]},
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + bytes(range(32))


def spirv() -> bytes:
    """Two entry points, ``scale`` and ``other``, of one function (pointer, int32, float)."""

    def words(opcode: int, *operands: int) -> list[int]:
        return [(len(operands) + 1) << 16 | opcode, *operands]

    names = [struct.unpack("<2I", name.ljust(8, b"\0")) for name in (b"scale", b"other")]
    body = [
        *(words(15, 6, 7, *names[0]) + words(15, 6, 7, *names[1]) + words(19, 1)),
        *(words(21, 2, 32, 0) + words(22, 3, 32) + words(23, 6, 3, 4) + words(32, 4, 5, 3)),
        *(words(33, 5, 1, 4, 2, 3, 6) + words(54, 1, 7, 0, 5) + words(56)),
    ]
    return struct.pack(f"<{5 + len(body)}I", 0x07230203, 0x10000, 0, 8, 0, *body)

"""The modules that packer.toml makes by Python: the graph, and the weights that it names."""

from __future__ import annotations

import json

import network
from lower import OPENCL, lower

import runtime


def graph() -> runtime.Module:
    """Make the root: the graph of kernels, without parameters."""
    graph_json, _ = lower(network.parameters())
    return runtime.GraphExecutorFactory(graph_json, {})


def opencl_graph() -> runtime.Module:
    """Make the same root, with everything on an OpenCL device."""
    graph_json, _ = lower(network.parameters(), OPENCL)
    return runtime.GraphExecutorFactory(graph_json, {})


def weights() -> runtime.Module:
    """Make the module with the packed weights."""
    _, arrays = lower(network.parameters())
    return runtime.SafetensorsModule(safetensors(arrays))


def safetensors(arrays: network.Arrays) -> bytes:
    """Write a safetensors file in this order: all arrays but the last fill whole cache lines."""
    header, offset = {}, 0
    for name, array in arrays.items():
        end = offset + array.nbytes
        shape = list(array.shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    return b"".join([len(text).to_bytes(8, "little"), text, *map(bytes, arrays.values())])

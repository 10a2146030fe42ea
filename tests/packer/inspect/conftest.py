"""Libraries that several test files inspect."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import packer
import runtime
from packer.inspect.page import write_report

from .html_page import HOSTILE_DOC, HOSTILE_NAME, kernels


@pytest.fixture(scope="module")
def hostile_library(tmp_path_factory) -> Path:
    """Host code over a graph with 10,000 tensors; both import a kernel with a hostile name."""
    root = packer.CSourceModule(
        "long add(long a, long b) { return a + b; }\nlong sub(long a, long b) { return a - b; }\n",
        functions={
            "add": packer.FunctionDeclaration("long(long a, long b)", doc=HOSTILE_DOC),
            "sub": "long(long a, long b)",
        },
    )
    arrays = {f"layer.{i}": np.zeros(1 + i % 50, "f4" if i % 3 else "i1") for i in range(10_000)}
    params = {name: runtime.tensor(array) for name, array in arrays.items()}
    graph = runtime.GraphExecutorFactory("{}", params, "default")
    cuda = kernels("cuda", HOSTILE_NAME)
    root.import_module(graph)
    root.import_module(cuda)
    graph.import_module(cuda)
    return packer.export_library(root, tmp_path_factory.mktemp("report") / "model.so", entry="add")


@pytest.fixture(scope="module")
def page_path(hostile_library) -> Path:
    """The library's page."""
    path = hostile_library.with_suffix(".html")
    write_report(hostile_library, path)
    return path


@pytest.fixture(scope="module")
def packed_library(tmp_path_factory) -> Path:
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

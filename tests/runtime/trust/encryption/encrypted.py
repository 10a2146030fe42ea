"""Trees with secrets, exported with encrypted modules."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packer
import runtime
from packer.trust.encrypt.keys import create_encryption_key
from runtime.error import EncryptionError
from runtime.module import preorder
from runtime.trust.encryption.use import Use

from ....support import graphs, models

WEIGHTS = np.random.default_rng(22).normal(size=(2, 3)).astype("f4")
SOURCE = "__kernel void secret_kernel(__global float *x) { x[0] = 42; }"
# Nothing of these may be readable in a file.
SECRETS = (
    *(b"dense.weight", b"tied.scale", b"/dense/MatMul", b"dense_relu_secret", b"data_offsets"),
    *(b"secret_kernel", b"secret_param", b"arg_nodes", b"secret_constant", b"float32"),
    *(WEIGHTS.tobytes(), models.SCALE.tobytes(), models.BIAS.tobytes()[:16], b"dso.weight"),
)


def key_file(folder: Path, name: str = "acme") -> Path:
    """Make a key."""
    return create_encryption_key(folder / name)


def tree() -> runtime.Module:
    """A module of every kind: graph, the root; host code; bytecode, weights, kernels, constants."""
    host = packer.CSourceModule(
        models.OPERATORS + graphs.OPERATORS,
        functions={**models.FUNCTIONS, **graphs.FUNCTIONS},
    )
    nodes = [graphs.null("x"), graphs.null("secret_param"), graphs.op("total", "add", [0, 1])]
    factory = runtime.GraphExecutorFactory(
        json.dumps(graphs.graph(nodes, [2])), {"secret_param": WEIGHTS}, "net"
    )
    program = models.program().executable()
    program.import_module(models.weights())
    program.import_module(host)
    kernels = runtime.DeviceModule("opencl", SOURCE, "cl", [runtime.FunctionInfo("secret_kernel")])
    constants = runtime.ConstLoaderModule({"secret_constant": WEIGHTS}, {})
    for module in (kernels, constants):
        host.import_module(module)
    for module in (host, program):
        factory.import_module(module)
    return factory


def module_of(root: runtime.Module, type_key: str) -> Any:
    """The module of a type."""
    return next(module for module in preorder(root) if module.type_key == type_key)


def blob_of(root: runtime.Module, key: Any) -> bytes:
    """The blob of a tree without host code, all of it encrypted."""
    with packer.encrypting(root, key):
        return runtime.serialize_module_to_bytes(root)


def tree_of(blob: bytes, key: Any) -> runtime.Module:
    """The tree of `blob_of`, decrypted."""
    with Use(key):
        return runtime.deserialize_module_from_bytes(blob)


def reason_of(run: Callable[[], object], *secrets: bytes) -> str:
    """The reason of a refusal, which takes at most 100 ms and shows no secret."""
    started = time.process_time()
    with pytest.raises(EncryptionError) as caught:
        run()
    assert time.process_time() - started < 0.1
    shown = f"{caught.value} {caught.value!r} {vars(caught.value)}"
    assert not [secret for secret in secrets if secret.hex() in shown or str(secret) in shown]
    assert ": " in str(caught.value)
    return caught.value.reason

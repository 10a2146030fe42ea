"""Tokens of a language model beside a plain read of the weights, and beside ONNX Runtime.

python benchmarks/tokens.py: in the environment of the importer of models, with one thread. A Llama
of 300 MB with random weights; ONNX Runtime gets its caches as inputs, and returns them. All take
turns. Prints for each number of bits the best times, the time of a search through as many bytes as
a token reads, of the token's time, and how many times as long as ONNX Runtime ours takes.
"""

from __future__ import annotations

import io
import os
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "TVM_NUM_THREADS": "1"}
sys.path.append(str(Path(__file__).parents[1]))

import numpy as np
import onnxruntime  # type: ignore[import-untyped]

import packer
import runtime
from importers.onnx.tests.support.decoders import export

PROMPT, ROUNDS = 256, 40
SIZES = {
    "hidden_size": 768,
    "intermediate_size": 2048,
    "num_hidden_layers": 8,
    "num_attention_heads": 12,
    "num_key_value_heads": 4,
    "vocab_size": 16000,
    "max_position_embeddings": 2048,
}


def main() -> None:
    """Print a line for each number of bits."""
    warnings.simplefilter("ignore")
    with TemporaryDirectory(prefix="tokens-") as folder:
        path = Path(folder) / "model.onnx"
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            export(make_model(), path)
        print("bits    read MB  ms a token  of the read  of ORT  ms a prompt  of ORT")
        for bits in (None, 8, 4):
            print(compare(path, bits), flush=True)


def make_model() -> Any:
    """Make a Llama with random weights."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(**SIZES, attn_implementation="eager")).eval()


def compare(path: Path, bits: int | None) -> str:
    """Measure one library."""
    with redirect_stderr(io.StringIO()):
        module = packer.from_onnx(path, weight_bits=bits)
        output = path.with_name(f"bits{bits}.so")
        packer.export_library(module, output, build=packer.Build(cpu="native"))
    model = runtime.load(output)
    session, peer = model.session(maximum=PROMPT + ROUNDS + 1), Peer(path)
    prompt, token = np.arange(PROMPT).reshape(1, -1), np.array([[5]])
    data = b"\1" * read_nbytes(model)

    def prefill() -> Any:
        session.reset()
        return session["main"](prompt)

    ours, theirs = fastest([prefill, lambda: peer.start(prompt)], 3)
    calls = [lambda: session["main"](token), lambda: peer.step(token), lambda: data.find(b"\2")]
    step, other, read = fastest(calls, ROUNDS)
    return (
        f"{bits or 'float':>5} {len(data) / 1e6:8.0f} {step * 1e3:11.2f} {read / step:12.2f} "
        f"{step / other:7.2f} {ours * 1e3:12.0f} {ours / theirs:7.2f}"
    )


def read_nbytes(model: runtime.Module) -> int:
    """Count the bytes of weights that a token reads: all but the table of rows."""
    modules = model.imported_modules
    every = [one.nbytes for module in modules for one in module.own_weights.values()]
    table = 4 * SIZES["vocab_size"] * SIZES["hidden_size"]
    return sum(every) - table


def fastest(calls: list[Callable[[], object]], rounds: int) -> list[float]:
    """Measure the best time of each call; they take turns."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, measured in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            measured.append(time.perf_counter() - start)
    return [min(measured) for measured in times]


class Peer:
    """ONNX Runtime with the caches of the last call."""

    def __init__(self, path: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(str(path), options)
        self._names = [one.name for one in self._session.get_inputs()][1:]
        size = SIZES["hidden_size"] // SIZES["num_attention_heads"]
        shape = (1, SIZES["num_key_value_heads"], 0, size)
        self._empty = [np.zeros(shape, np.float32) for _ in self._names]
        self._caches = self._empty

    def start(self, prompt: Any) -> None:
        """Forget the caches, and take a prompt."""
        self._caches = self._empty
        self.step(prompt)

    def step(self, ids: Any) -> None:
        """Take tokens after all earlier ones."""
        given = {"input_ids": ids, **dict(zip(self._names, self._caches, strict=True))}
        self._caches = self._session.run(None, given)[1:]


if __name__ == "__main__":
    main()

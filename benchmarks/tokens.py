"""Tokens of a language model beside a plain read of the weights, and beside ONNX Runtime.

python benchmarks/tokens.py [THREADS ...]: in the environment of the importer of models; with 1 and
2 threads by default, in a process for each number. Llamas with random weights, each of about 300 MB
as it is stored: more than caches have. ONNX Runtime has weights of the same bits (MatMulNBits of
accuracy level 0, with int8 activations level 4), gets its caches as inputs, and returns them. All
take turns. The plain read adds the words of the mapped library that a token reads, by as many
threads. Prints the best times (one thread: its processor time), the time of the read, of the
token's time, and how many times as long as ONNX Runtime ours takes; 8/8 is 8 bits with activations
of 8 bits.
"""

from __future__ import annotations

import io
import logging
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).parents[1]))

import numpy as np

import packer
import runtime

PROMPT, ROUNDS = 256, 24
VOCABULARY, HEADS, KV_HEADS = 16000, 12, 4


class Case(NamedTuple):
    """A model, and how it is stored."""

    bits: int | None
    activation_bits: int | None
    layers: int
    hidden: int
    inner: int

    @property
    def name(self) -> str:
        """As in the table."""
        activation = f"/{self.activation_bits}" if self.activation_bits else ""
        return f"{self.bits or 'float'}{activation}"

    @property
    def model(self) -> str:
        """The stem of the ONNX file."""
        return f"llama-{self.layers}-{self.hidden}"


CASES = (
    Case(None, None, 10, 768, 2048),
    Case(8, None, 10, 1536, 4096),
    Case(8, 8, 10, 1536, 4096),
    Case(4, None, 18, 1536, 4096),
    Case(4, 8, 18, 1536, 4096),
)


def main() -> None:
    """Export, then print a table for each number of threads."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["--measure"]:
        measure(Path(arguments[1]), int(os.environ["OMP_NUM_THREADS"]))
        return
    with TemporaryDirectory(prefix="tokens-") as folder:
        for case in CASES:
            export_case(case, Path(folder))
        for threads in map(int, arguments or ["1", "2"]):
            print(f"{threads} threads" if threads > 1 else "1 thread", flush=True)
            names = dict.fromkeys(("OMP_NUM_THREADS", "TVM_NUM_THREADS"), str(threads))
            command = [sys.executable, __file__, "--measure", folder]
            subprocess.run(command, check=True, env={**os.environ, **names})


def make_model(case: Case) -> Any:
    """Make a Llama with random weights."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=case.hidden,
        intermediate_size=case.inner,
        num_hidden_layers=case.layers,
        num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS,
        vocab_size=VOCABULARY,
        max_position_embeddings=2048,
        attn_implementation="eager",
    )
    torch.manual_seed(0)
    return LlamaForCausalLM(config).eval()


def export_case(case: Case, folder: Path, block: int | None = None) -> Path:
    """Write the ONNX model, and the library."""
    from importers.onnx.tests.support.decoders import export

    warnings.simplefilter("ignore")
    path, output = folder / f"{case.model}.onnx", folder / f"{case.name.replace('/', '-')}.so"
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        if not path.exists():
            export(make_model(case), path)
        module = packer.from_onnx(
            path,
            weight_bits=case.bits,
            block=block,
            activation_bits=case.activation_bits,
        )
        packer.export_library(module, output, build=packer.Build(cpu="native"))
    return output


def measure(folder: Path, threads: int) -> None:
    """Print a line for each case."""
    print("bits   read MB  GB/s  ms a token  of the read  of ORT  ms a prompt  of ORT")
    for case in CASES:
        print(compare(case, folder, threads), flush=True)


def compare(case: Case, folder: Path, threads: int) -> str:
    """Measure one library."""
    model = runtime.load(folder / f"{case.name.replace('/', '-')}.so")
    session, peer = model.session(maximum=PROMPT + ROUNDS + 1), Peer(case, folder, threads)
    prompt, token = np.arange(PROMPT).reshape(1, -1), np.array([[5]])
    read = Read(model, threads)

    def prefill() -> Any:
        session.reset()
        return session["main"](prompt)

    clock = time.thread_time if threads == 1 else time.perf_counter
    ours, theirs = fastest([prefill, lambda: peer.start(prompt)], 3, clock)
    calls = [lambda: session["main"](token), lambda: peer.step(token), read]
    step, other, plain = fastest(calls, ROUNDS, clock)
    return (
        f"{case.name:>5} {read.nbytes / 1e6:9.0f} {read.nbytes / plain / 1e9:5.1f} "
        f"{step * 1e3:11.2f} {plain / step:12.2f} "
        f"{step / other:7.2f} {ours * 1e3:12.0f} {ours / theirs:7.2f}"
    )


class Read:
    """A plain read of the weights of a token, where the library has them: all but a table."""

    def __init__(self, model: runtime.Module, threads: int) -> None:
        weights = [one for module in model.imported_modules for one in module.own_weights.values()]
        table = max(
            (one for one in weights if VOCABULARY in one.shape),
            key=lambda one: one.nbytes,
            default=None,
        )
        kept = [one for one in weights if one is not table]
        self.nbytes = sum(one.nbytes for one in kept)
        large = [np.from_dlpack(one).reshape(-1) for one in kept if one.nbytes >= 1 << 16]
        words = [one.view(np.int32) for one in large]
        self._parts = [
            [word[at * len(word) // threads : (at + 1) * len(word) // threads] for word in words]
            for at in range(threads)
        ]
        self._pool = ThreadPoolExecutor(threads)

    def __call__(self) -> None:
        """Read all."""
        if len(self._parts) == 1:
            self._greatest(self._parts[0])
        else:
            list(self._pool.map(self._greatest, self._parts))

    @staticmethod
    def _greatest(words: list[Any]) -> None:
        for word in words:
            word.max()


def fastest(
    calls: list[Callable[[], object]], rounds: int, clock: Callable[[], float]
) -> list[float]:
    """Measure the best time of each call; they take turns."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, measured in zip(calls, times, strict=True):
            start = clock()
            call()
            measured.append(clock() - start)
    return [min(measured) for measured in times]


class Peer:
    """ONNX Runtime with the caches of the last call."""

    def __init__(self, case: Case, folder: Path, threads: int) -> None:
        import onnxruntime  # type: ignore[import-untyped]

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        path = quantized(case, folder)
        self._session = onnxruntime.InferenceSession(str(path), options)
        self._names = [one.name for one in self._session.get_inputs()][1:]
        empty = np.zeros((1, KV_HEADS, 0, case.hidden // HEADS), np.float32)
        self._empty = [empty for _ in self._names]
        self._caches = self._empty

    def start(self, prompt: Any) -> None:
        """Forget the caches, and take a prompt."""
        self._caches = self._empty
        self.step(prompt)

    def step(self, ids: Any) -> None:
        """Take tokens after all earlier ones."""
        given = {"input_ids": ids, **dict(zip(self._names, self._caches, strict=True))}
        self._caches = self._session.run(None, given)[1:]


def quantized(case: Case, folder: Path) -> Path:
    """Return the model with MatMulNBits of ONNX Runtime, in blocks of 32."""
    path = folder / f"{case.model}.onnx"
    if case.bits is None:
        return path
    made = folder / f"{case.model}-{case.bits}-{case.activation_bits}.onnx"
    if not made.exists():
        from onnxruntime.quantization.matmul_nbits_quantizer import (  # type: ignore[import-untyped]
            MatMulNBitsQuantizer,
        )

        logging.getLogger("onnxruntime").setLevel(logging.WARNING)
        quantizer = MatMulNBitsQuantizer(
            str(path), case.bits, 32, True, 4 if case.activation_bits else 0
        )
        quantizer.process()
        quantizer.model.save_model_to_file(str(made), True)
    return made


if __name__ == "__main__":
    main()

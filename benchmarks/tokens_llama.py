"""Tokens of a language model beside llama.cpp, at equal bytes for each weight.

python benchmarks/tokens_llama.py [THREADS]: in the environment of the importer of models, with the
packages xllamacpp and gguf. The models of tokens.py: ours in blocks of 64, llama.cpp's as F32, Q8_0
and Q4_0, which have 34 and 18 bytes for 32 weights as ours have. Weights are random. Both generate
tokens in turns; prints the best milliseconds a token (one thread: its processor time), how many
times as many tokens ours are, and the instructions that llama.cpp was built for.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "TVM_NUM_THREADS"), (sys.argv[1:] or ["1"])[0])
sys.path.append(str(Path(__file__).parent))

import gguf  # type: ignore[import-not-found]
import numpy as np
import tokens
import xllamacpp  # type: ignore[import-not-found]

import runtime

THREADS = os.environ["OMP_NUM_THREADS"]
COUNT, ROUNDS, BLOCK, PROMPT = 48, 6, 32, [1, 2, 3, 4]
NBYTES = {None: 128, 8: 34, 4: 18}  # of a block of 32
TYPES = {
    None: gguf.GGMLQuantizationType.F32,
    8: gguf.GGMLQuantizationType.Q8_0,
    4: gguf.GGMLQuantizationType.Q4_0,
}


def main() -> None:
    """Print a line for each number of bits."""
    print(xllamacpp.get_system_info())
    print("bits    ours  llama.cpp  ratio")
    with TemporaryDirectory(prefix="tokens-") as folder:
        for case in tokens.CASES:
            if case.activation_bits or case.bits is None:
                print(compare(case, Path(folder)), flush=True)


def compare(case: tokens.Case, folder: Path) -> str:
    """Generate with both in turns."""
    path = tokens.export_case(case, folder, block=64 if case.bits else None)
    session = runtime.load(path).session(maximum=COUNT + 8)
    server = serve(write(case, folder / f"{case.bits}.gguf"))
    clock = time.process_time if THREADS == "1" else time.perf_counter
    calls = [lambda: generate(session), lambda: complete(server)]
    ours, theirs = (1e3 * one / COUNT for one in tokens.fastest(calls, ROUNDS, clock))
    return f"{case.name:>5} {ours:7.2f} {theirs:10.2f} {theirs / ours:6.2f}"


def generate(session: runtime.Session) -> None:
    """Take a prompt of four tokens, then choose the best ones."""
    session.reset()
    session["main"](np.array([PROMPT]))
    token = np.array([[5]])
    for _ in range(COUNT):
        logits = session["main"](token)
        token[0, 0] = logits.numpy()[0, -1].argmax()


def serve(path: Path) -> Any:
    """Load a model into llama.cpp."""
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx, params.n_parallel, params.n_gpu_layers = 256, 1, 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(THREADS)
    params.warmup, params.endpoint_metrics = False, False
    return xllamacpp.Server(params)


def complete(server: Any) -> None:
    """The same by llama.cpp."""
    options = {"temperature": 0, "ignore_eos": True, "cache_prompt": False}
    server.handle_completions({"prompt": PROMPT, "n_predict": COUNT, **options})


def write(case: tokens.Case, path: Path) -> Path:
    """Write a model of the same sizes with random weights."""
    writer, random = gguf.GGUFWriter(path, "llama"), np.random.default_rng(0)
    size = case.hidden // tokens.HEADS
    writer.add_context_length(2048)
    writer.add_embedding_length(case.hidden)
    writer.add_block_count(case.layers)
    writer.add_feed_forward_length(case.inner)
    writer.add_head_count(tokens.HEADS)
    writer.add_head_count_kv(tokens.KV_HEADS)
    writer.add_rope_dimension_count(size)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(tokens.VOCABULARY)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([f"<t{i}>" for i in range(tokens.VOCABULARY)])
    writer.add_token_scores([0.0] * tokens.VOCABULARY)
    writer.add_token_types([1] * tokens.VOCABULARY)
    kv = size * tokens.KV_HEADS
    matrices = {"token_embd": (tokens.VOCABULARY, case.hidden)}
    matrices["output"] = (tokens.VOCABULARY, case.hidden)
    for i in range(case.layers):
        shapes = {
            **dict.fromkeys(("attn_q", "attn_output"), (case.hidden, case.hidden)),
            **dict.fromkeys(("attn_k", "attn_v"), (kv, case.hidden)),
            **dict.fromkeys(("ffn_gate", "ffn_up"), (case.inner, case.hidden)),
            "ffn_down": (case.hidden, case.inner),
        }
        matrices |= {f"blk.{i}.{name}": shape for name, shape in shapes.items()}
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{i}.{name}.weight", np.ones(case.hidden, np.float32))
    writer.add_tensor("output_norm.weight", np.ones(case.hidden, np.float32))
    for name, shape in matrices.items():
        writer.add_tensor(
            f"{name}.weight", matrix(random, shape, case.bits), raw_dtype=TYPES[case.bits]
        )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def matrix(random: Any, shape: tuple[int, int], bits: int | None) -> Any:
    """Return random weights; of few bits as bytes, each block with a scale of float16 first."""
    if bits is None:
        return random.standard_normal(shape, np.float32) * np.float32(0.02)
    rows, columns = shape
    nbytes = NBYTES[bits]
    made = random.integers(0, 256, (rows, columns // BLOCK, nbytes), np.uint8)
    made[:, :, :2] = np.frombuffer(np.float16(0.02 / (1 << bits - 1)).tobytes(), np.uint8)
    return made.reshape(rows, -1)


if __name__ == "__main__":
    main()

"""Causal models of transformers with their caches as state, beside `generate`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import packer
import runtime

from ..support.decoders import check_same, expected, export, greedy, make

IDS = [5, 17, 33, 4]


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> tuple[runtime.Module, object]:
    """With grouped heads and an open batch."""
    folder, model = tmp_path_factory.mktemp("llama"), make("llama")
    module = packer.from_onnx(export(model, folder / "llama.onnx", batch=2))
    return runtime.load(packer.export_library(module, folder / "llama.so")), model


@pytest.mark.parametrize("name", ["gpt2", "qwen2"])
def test_256_greedy_tokens_are_those_of_generate(name: str, tmp_path: Path) -> None:
    """A prompt, then token by token; main takes the ids alone."""
    model = make(name)
    module = packer.from_onnx(export(model, tmp_path / "model.onnx"))
    library = runtime.load(packer.export_library(module, tmp_path / "model.so"))
    assert [str(one) for one in library.inputs] == ["input_ids: int64[1, seq]"]
    assert [one.name for one in library.outputs] == ["logits"]
    session = library.session(maximum=300)
    check_same(greedy(session, IDS, 256), expected(model, IDS, 256))
    assert session.length == len(IDS) + 255


def test_forks_share_a_prompt(llama) -> None:
    """Each continues as if it had the prompt alone; also as two calls."""
    library, model = llama
    prompt = library.session()
    prompt["main"](np.array([IDS[:2]], np.int64))
    prompt["main"](np.array([IDS[2:]], np.int64))
    forks = [prompt.fork() for _ in range(3)]
    ends = [[7], [8, 9], [7, 3]]
    for fork, end in zip(forks, ends, strict=True):
        check_same(greedy(fork, end, 20), expected(model, [*IDS, *end], 20))


def test_threads_have_equal_tokens(llama) -> None:
    """Eight sessions over one copy of the weights."""
    library, model = llama
    tokens = expected(model, IDS, 40)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: greedy(library.session(), IDS, 40), range(8)))
    for one in found:
        check_same(one, tokens)


def test_batch_is_that_of_the_first_call(llama) -> None:
    """Two texts at once; another batch is refused until a reset."""
    library, model = llama
    session = library.session()
    both = np.array([IDS, IDS[::-1]], np.int64)
    rows = session["main"](both).numpy()[:, -1]
    for row, ids in zip(rows, both, strict=True):
        np.testing.assert_allclose(row, expected(model, ids.tolist(), 1)[1][0], atol=1e-4)
    with pytest.raises(ValueError, match="extent of axis 1, expected 2 .*; reset the session"):
        session["main"](both[:1])
    session.reset()
    check_same(greedy(session, IDS, 5), expected(model, IDS, 5))


def test_caches_are_read_where_they_are(llama) -> None:
    """No operator writes a value with a row for each token, but for the mask's columns."""
    library, _ = llama
    record = library.model_record
    outputs = {name for node in record.nodes for name in node.outputs if node.op != "dso.Append"}
    rows = {name: record.values[name].shape[:-1] for name in outputs}
    assert not [name for name, shape in rows.items() if "past + seq" in shape]

"""Compare 256 greedy tokens of decoders with `generate` of transformers.

all_decoders.py [NAME ...] prints a line for each architecture; the status is 1 if one differs. From
Python, by a fork, by 8 threads, and by a C program, which prints the tokens that Python found.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3]))

import numpy as np
import torch
from transformers import DynamicCache  # type: ignore[import-not-found]

import packer
import runtime
from importers.onnx.tests.support.decoders import check_same, expected, greedy, make

NAMES = ("gpt2", "llama", "qwen2", "mistral", "gemma", "phi")
IDS, COUNT = [5, 17, 33, 4], 256
PROGRAM = r"""
#include <dso.h>
#include <stdio.h>
int main(int argc, char **argv) {
  int64_t ids[] = {5, 17, 33, 4}, shape[] = {1, 4}, best;
  dso_module *model = dso_load(argv[argc - 1], NULL);
  dso_session *session = model ? dso_session_new(model, 300) : NULL;
  for (int step = 0; session && step < 256; step++, shape[1] = 1, ids[0] = best) {
    DLTensor given = {ids, {1, 0}, 2, {0, 64, 1}, shape, NULL, 0};
    dso_any logits, arguments[] = {dso_tensor(&given)};
    if (dso_session_call(session, "main", &logits, arguments, 1)) break;
    const DLTensor *found = dso_tensor_of(&logits);
    const float *row = (const float *)found->data + (shape[1] - 1) * found->shape[2];
    best = 0;
    for (int64_t i = 1; i < found->shape[2]; i++)
      if (row[i] > row[best]) best = i;
    printf("%d\n", (int)best);
    dso_release(&logits);
  }
  dso_session_release(session);
  dso_module_release(model);
  return 0;
}
"""


def main(names: list[str]) -> int:
    """Compare each architecture; return 1 if one differs."""
    status = 0
    for name in names or NAMES:
        with tempfile.TemporaryDirectory() as folder:
            try:
                compare(name, Path(folder))
                print(f"{name}: equal", flush=True)
            except (AssertionError, packer.PackerError) as error:
                print(f"{name}: {error}", flush=True)
                status = 1
    return status


def compare(name: str, folder: Path) -> None:
    """Raise AssertionError if tokens of one architecture differ."""
    model = make(name)
    inputs = torch.zeros(1, 3, dtype=torch.int64), DynamicCache()
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        module = packer.from_torch(model, inputs)
        path = packer.export_library(module, folder / "model.so", build=packer.Build(cpu="native"))
    library, right = runtime.load(path), expected(model, IDS, COUNT)
    found = greedy(library.session(), IDS, COUNT)
    check_same(found, right)
    prompt = library.session()
    prompt["main"](np.array([IDS[:-1]]))
    forks = [prompt.fork() for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for one in pool.map(lambda fork: greedy(fork, IDS[-1:], COUNT), forks):
            check_same(one, right)
    (folder / "program.c").write_text(PROGRAM)
    flags = [sys.executable, "-m", "packer", "config", "--cflags", "--libs", "--static"]
    words = subprocess.run(flags, check=True, capture_output=True, text=True).stdout.split()
    program = str(folder / "program")
    subprocess.run(["cc", str(folder / "program.c"), *words, "-o", program], check=True)
    ran = subprocess.run([program, str(path)], check=True, capture_output=True, text=True)
    assert [int(line) for line in ran.stdout.split()] == found[0], "the C program's tokens differ"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(main(sys.argv[1:]))

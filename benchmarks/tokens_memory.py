"""Memory of eight processes with one language model, and the first token of a fresh process.

python benchmarks/tokens_memory.py: in the environment of the importer of models. Each process loads
the 8-bit Llama of tokens.py, takes a prompt of 256 tokens and 64 more, and waits for the others.
Prints the proportional set size of all, beside the file; what is private in one, beside the cache
of its session; and the milliseconds from the start of the load to the first token, beside a later
prompt.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.append(str(Path(__file__).parent))

PROCESSES, PROMPT, TOKENS = 8, 256, 64


def main() -> None:
    """Start the processes, and print what they measure."""
    import tokens

    case = tokens.CASES[1]
    with TemporaryDirectory(prefix="tokens-") as folder:
        path = tokens.export_case(case, Path(folder))
        names = dict.fromkeys(("OMP_NUM_THREADS", "TVM_NUM_THREADS"), "1")
        command = [sys.executable, __file__, str(path)]
        made = [
            subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, **names},
            )
            for _ in range(PROCESSES)
        ]
        firsts = [one.stdout.readline().split() for one in made if one.stdout]
        sizes = []
        for one in made:  # all are alive while the first one measures
            assert one.stdin
            assert one.stdout
            one.stdin.write("\n")
            one.stdin.flush()
            sizes.append(one.stdout.readline().split())
        for one in made:
            one.communicate("\n")
        nbytes = path.stat().st_size
    size = case.hidden // tokens.HEADS
    cache = 2 * case.layers * tokens.KV_HEADS * size * 4 * (PROMPT + TOKENS)
    pss = sum(int(row[0]) for row in sizes)
    print(f"Pss of {PROCESSES}: {pss / 1e6:.0f} MB, file {nbytes / 1e6:.0f} MB")
    print(f"private: {max(int(row[1]) for row in sizes) / 1e6:.0f} MB, cache {cache / 1e6:.0f} MB")
    least = min(firsts, key=lambda row: float(row[0]) - float(row[1]))
    print(f"first token: {least[0]} ms, prompt {least[1]} ms")


def measure(path: str) -> None:
    """Print the times; at a line on stdin the memory that the model added."""
    import numpy as np

    import runtime

    ids = np.zeros((1, PROMPT), np.int64)
    before = memory()
    start = time.process_time()
    session = runtime.load(path).session(maximum=PROMPT + TOKENS)
    session["main"](ids).numpy()[0, -1].argmax()
    first = time.process_time() - start
    session.reset()
    start = time.process_time()
    session["main"](ids)
    print(f"{first * 1e3:.0f} {(time.process_time() - start) * 1e3:.0f}", flush=True)
    for _ in range(TOKENS):
        session["main"](ids[:, :1])
    sys.stdin.readline()
    after = memory()
    print(*(b - a for a, b in zip(before, after, strict=True)), flush=True)
    sys.stdin.readline()  # the others measure


def memory() -> tuple[int, int]:
    """Return the proportional set size, and the private memory, in bytes."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]
    rows = {line.split(":")[0]: int(line.split()[1]) << 10 for line in lines}
    return rows["Pss"], rows["Private_Dirty"]


if __name__ == "__main__":
    measure(sys.argv[1]) if len(sys.argv) > 1 else main()

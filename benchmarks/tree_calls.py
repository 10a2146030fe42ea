"""A forest of 500 trees: one row from Python and from C, and batches on two threads.

    .venv-trees/bin/python benchmarks/tree_calls.py

The rows are 1,000 different ones, as in trees.py. Processes with one and with two threads
take turns; the figures are microseconds of real time for a row, the least of all.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

BATCHES = (1000, 10_000, 100_000)
ROUNDS, TURNS = 30, 3
PROGRAM = """\
#include <dso.h>
#include <stdio.h>
#include <time.h>
static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}
int main(int argc, char **argv) {
  static float rows[1000][30];
  FILE *file = fopen(argv[argc - 1], "rb");
  if (file == NULL || fread(rows, sizeof rows, 1, file) != 1) return 1;
  dso_module *model = dso_load(argv[argc - 2], NULL);
  int64_t shape[] = {30};
  double least = 1e9;
  for (int round = 0; round < 50; round++) {
    double start = now();
    for (int i = 0; i < 1000; i++) {
      DLTensor row = {rows[i], {1, 0}, 1, {2, 32, 1}, shape, NULL, 0};
      dso_any score, arguments[] = {dso_tensor(&row)};
      if (dso_module_call(model, "predict", &score, arguments, 1)) return puts(dso_last_error());
      dso_release(&score);
    }
    if (now() - start < least) least = now() - start;
  }
  printf("%f", least / 1000);
}
"""


def batches(library: str) -> None:
    """Print the times of batches, then of one row, in this process."""
    import numpy as np

    import runtime

    predict = runtime.load(library)["predict"]
    for count in BATCHES:
        rows = np.random.default_rng(5).normal(size=(count, 30)).astype(np.float32)
        print(least(predict, [rows], count))
    print(least(predict, list(rows[:1000]), 1000))


def least(predict: Callable[[object], object], arguments: list[object], count: int) -> float:
    """Return the microseconds of a row."""
    found = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for one in arguments:
            predict(one)
        found.append(time.perf_counter() - start)
    return min(found) * 1e6 / count


def from_c(library: Path, folder: Path) -> float:
    """Compile and run a program that calls with one row."""
    import numpy as np

    rows = np.random.default_rng(5).normal(size=(1000, 30)).astype(np.float32)
    rows.tofile(folder / "rows")
    (folder / "program.c").write_text(PROGRAM)
    command = [sys.executable, "-m", "packer", "config", "--cflags", "--libs", "--static"]
    words = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    program, source = str(folder / "program"), str(folder / "program.c")
    subprocess.run(["cc", "-O2", source, *words, "-o", program], check=True)
    ran = subprocess.run([program, library, folder / "rows"], check=True, capture_output=True)
    return float(ran.stdout)


def main() -> None:
    """Print two tables."""
    import trees

    import packer

    with tempfile.TemporaryDirectory() as name:
        library = Path(name, "score.so")
        packer.export_library(packer.from_trees(trees.train(500, 31, -1, 30)), library)
        times: dict[str, list[list[float]]] = {"1": [], "2": []}
        for turn in range(2 * TURNS):
            threads = "12"[turn % 2]
            command = [sys.executable, __file__, str(library)]
            variables = {**os.environ, "TVM_NUM_THREADS": threads}
            ran = subprocess.run(command, env=variables, check=True, capture_output=True, text=True)
            times[threads].append([float(line) for line in ran.stdout.split()])
        one, two = (list(map(min, zip(*times[key], strict=True))) for key in "12")
        print("| rows | one thread | two threads | times as fast |\n|---|---|---|---|")
        for count, a, b in zip(BATCHES, one, two, strict=False):
            print(f"| {count:,} | {a:.2f} | {b:.2f} | {a / b:.2f} |")
        row = min(from_c(library, Path(name)) for _ in range(TURNS))
        print(f"\n| one row from Python | from C |\n|---|---|\n| {one[-1]:.2f} | {row:.2f} |")


if __name__ == "__main__":
    batches(sys.argv[1]) if len(sys.argv) > 1 else main()

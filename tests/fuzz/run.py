"""make fuzz: feed the core and the parsers with inputs that no one wrote.

run.py [--seconds N | --sample] [NAME ...]: each target runs for N seconds, or over a fixed number
of inputs; as many targets at once as there are processors. A C file in this folder is a libFuzzer
target (with the C files in the folder of the same name, if there is one), compiled with the core's
files that do not need Python, under AddressSanitizer and UndefinedBehaviorSanitizer; its seeds are
in corpus/NAME, or write_seeds.py makes them. inputs.py is the target for what Python reads. The
input that a target fails on is stored in build/fuzz/found, what libFuzzer learned in
build/fuzz/corpus.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
OUTPUT = ROOT / "build" / "fuzz"
sys.path.insert(0, str(ROOT))
from tests.support.native import INCLUDE, object_name, pure_sources  # noqa: E402

CLANG = (
    *("clang", "-std=gnu11", "-g", "-O1", "-fno-omit-frame-pointer"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"),
    *(f"-I{folder}" for folder in INCLUDE),
)
# -timeout: seconds for one input; -rss_limit_mb: includes the memory of the sanitizers.
LIMITS = ("-timeout=20", "-rss_limit_mb=2048", "-print_final_stats=1", "-verbosity=0")
SEED = 1  # the same sample in each run; --seed 0 takes another one each time
# The inputs of --sample. A program of the target bytecode takes a hundred times as long.
SAMPLE, SAMPLES = 150_000, {"bytecode": 6_000}
ROUNDS = 1  # of inputs.py


def main() -> int:
    """Build the targets and run them; 1 if one of them found something."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=int, default=600, help="for each target (%(default)s)")
    parser.add_argument(
        "--sample",
        action="store_true",
        help="a fixed number of inputs instead: the same ones on every machine",
    )
    parser.add_argument("--seed", type=int, default=SEED, help="0: a random one (%(default)s)")
    parser.add_argument("names", nargs="*", metavar="NAME", help="targets; all by default")
    options = parser.parse_args()
    targets = {path.stem: path for path in [*sorted(HERE.glob("*.c")), HERE / "inputs.py"]}
    names = options.names or list(targets)
    if unknown := set(names) - set(targets):
        parser.error(f"no target {sorted(unknown)}; choose from {list(targets)}")
    library = build_core() if any(targets[name].suffix == ".c" for name in names) else None
    subprocess.run([sys.executable, HERE / "write_seeds.py", OUTPUT / "seeds"], check=True)
    limit = None if options.sample else options.seconds
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        runs = [threads.submit(run, targets[name], library, limit, options.seed) for name in names]
        statuses = [run.result() for run in runs]
    return int(any(statuses))


def build_core() -> Path:
    """Compile the core's files without Python, once for all targets."""
    folder = OUTPUT / "objects"
    folder.mkdir(parents=True, exist_ok=True)

    def compile_file(source: Path) -> Path:
        output = folder / object_name(source)
        command = [*CLANG, "-fsanitize=fuzzer-no-link", "-c", source, "-o", output]
        subprocess.run(command, check=True)
        return output

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        objects = list(threads.map(compile_file, pure_sources()))
    library = OUTPUT / "core.a"
    library.unlink(missing_ok=True)
    subprocess.run(["ar", "rcs", library, *objects], check=True)
    return library


def run(target: Path, library: Path | None, seconds: int | None, seed: int) -> int:
    """Run one target, over its sample without `seconds`.

    It prints the end of the target's output, or all of it after a finding.
    """
    start = time.monotonic()
    if library is not None and target.suffix == ".c":
        inputs = SAMPLES.get(target.stem, SAMPLE)
        limit = f"-runs={inputs}" if seconds is None else f"-max_total_time={seconds}"
        command = [*build(target, library), *LIMITS, limit, f"-seed={seed}"]
    else:
        limits = ["--rounds", ROUNDS] if seconds is None else ["--seconds", seconds]
        command = [sys.executable, target, *map(str, limits), "--seed", str(seed)]
    done = subprocess.run(command, capture_output=True, check=False)
    output = (done.stdout + done.stderr).decode(errors="replace").strip()
    verdict = "clean" if done.returncode == 0 else f"FOUND something, exit {done.returncode}"
    shown = output if done.returncode else "\n".join(output.splitlines()[-12:])
    took = time.monotonic() - start
    print(f"---- {target.stem}: {verdict}, {took:.0f} s\n{shown}\n", flush=True)
    return done.returncode


def build(target: Path, library: Path) -> list[str]:
    """Link a libFuzzer target; returns the command that runs it over its corpora."""
    name = target.stem
    program, learned, found = OUTPUT / name, OUTPUT / "corpus" / name, OUTPUT / "found"
    for folder in (learned, found):
        folder.mkdir(parents=True, exist_ok=True)
    sources = [target, *sorted((HERE / name).glob("*.c"))]
    command = [*CLANG, "-fsanitize=fuzzer", *sources, library, "-ldl", "-lm", "-pthread"]
    subprocess.run([*command, "-o", program], check=True)
    folders = (HERE / "corpus" / name, OUTPUT / "seeds" / name)
    seeds = [str(folder) for folder in folders if folder.is_dir()]
    return [str(program), f"-artifact_prefix={found}/{name}-", str(learned), *seeds]


if __name__ == "__main__":
    sys.exit(main())

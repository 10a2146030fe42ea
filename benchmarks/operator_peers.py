"""The operators beside libraries that have such operators: time on one thread, and bytes.

python benchmarks/operator_peers.py

Peers that are not installed are left out. OpenBLAS: libopenblas-dev. XNNPACK: libxnnpack-dev and
libpthreadpool-dev. oneDNN: onednn-cpu-gomp and onednn-devel-cpu-gomp in this environment.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from operators import LEVELS

import packer.operators

ROUNDS = 15
SOURCE = Path(__file__).with_suffix(".c")
# The libraries of each peer; static where a package has a static one.
PEERS = {
    "OpenBLAS": ["-Wl,-Bstatic", "-lopenblas", "-Wl,-Bdynamic", "-lpthread"],
    "oneDNN": ["-ldnnl"],
    "XNNPACK": ["-lXNNPACK"],
}
Times = dict[str, dict[str, float]]  # by shape and peer
EMPTY = "int main(void) { return 0; }"


def main() -> None:
    """Measure, and print a table."""
    flags = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    level = [option for option, flag in LEVELS.items() if flag in flags][:1]
    with TemporaryDirectory() as name:
        folder = Path(name)
        programs = {"packer": _ours(folder, level)}
        for peer, libraries in PEERS.items():
            prefix = [f"-I{sys.prefix}/include", f"-L{sys.prefix}/lib"]
            rpath = f"-Wl,-rpath,{sys.prefix}/lib"
            options = [f"-D{peer.upper()}", *prefix, SOURCE, *libraries, rpath]
            if (program := _link(folder / peer, options)) is not None:
                programs[peer] = program
        (folder / "empty.c").write_text(EMPTY)
        empty = _link(folder / "empty", [folder / "empty.c"])
        assert empty is not None
        _print(_times(programs), {peer: _bytes(path, empty) for peer, path in programs.items()})


def _ours(folder: Path, level: list[str]) -> Path:
    options = [*level, f"-I{packer.operators.INCLUDE}", "-DOURS", SOURCE]
    program = _link(folder / "packer", [*options, *packer.operators.sources("matmul", "conv2d")])
    assert program is not None
    return program


def _link(program: Path, options: list[object]) -> Path | None:
    command = ["cc", "-O2", "-w", "-s", "-Wl,--gc-sections", "-o", program, *options, "-lm"]
    done = subprocess.run([str(part) for part in command], capture_output=True, check=False)
    return program if done.returncode == 0 else None


def _times(programs: dict[str, Path]) -> list[Times]:
    """Run the programs in turn, and return the microseconds of each peer and shape."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    rounds = []
    for _ in range(ROUNDS):
        times: Times = {}
        for peer, program in programs.items():
            text = subprocess.run(
                [program], env=environment, capture_output=True, text=True, check=True
            ).stdout
            for line in text.splitlines():
                shape, time = line.split("\t")
                times.setdefault(shape, {})[peer] = float(time)
        rounds.append(times)
    return rounds


def _bytes(program: Path, empty: Path) -> str:
    """Say what the program is larger than an empty one, and which shared libraries it needs."""
    loaded = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    paths = [line.split()[2] for line in loaded.splitlines() if "=> /" in line]
    known = subprocess.run(["ldd", empty], capture_output=True, text=True, check=True).stdout
    shared = [path for path in map(Path, paths) if path.name not in known + "libm.so.6"]
    size = program.stat().st_size - empty.stat().st_size
    names = [f"{path.name} {path.resolve().stat().st_size / 1e6:.1f} MB" for path in shared]
    return ", ".join([f"{size / 1e6:.2f} MB in the program", *names])


def _print(rounds: list[Times], sizes: dict[str, str]) -> None:
    print(f"{'us, and times as long as packer':48}", *(f"{peer:>15}" for peer in sizes))
    for shape, row in rounds[0].items():
        cells = []
        for peer in sizes:
            least = min(times[shape].get(peer, 0) for times in rounds)
            ratios = [times[shape].get(peer, 0) / times[shape]["packer"] for times in rounds]
            cells.append(f"{least:9.1f} {median(ratios):5.2f}" if peer in row else f"{'-':>15}")
        print(f"{shape:48}", *cells)
    for peer, size in sizes.items():
        print(f"{peer}: {size}")


if __name__ == "__main__":
    main()

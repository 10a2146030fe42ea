"""Measure dso-packer and its peers, and print the tables.

python benchmarks/run.py [--only NAME]... [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import time
import traceback
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import call
import cold_start
import export
import forms
import graph
import kernel
import levels
import libdso
import load
import members
import models
import numba_functions
import operators
import pool
import resnet18
import trust
import vm
import weights
from measure import Launcher, Row
from table import Table

# Each has tables(folder, launch). To add a subject, add a file and a row here.
SUBJECTS = {
    "cold_start": cold_start.tables,
    "load": load.tables,
    "libdso": libdso.tables,
    "export": export.tables,
    "weights": weights.tables,
    "trust": trust.tables,
    "call": call.tables,
    "members": members.tables,
    "forms": forms.tables,
    "kernel": kernel.tables,
    "levels": levels.tables,
    "graph": graph.tables,
    "vm": vm.tables,
    "pool": pool.tables,
    "resnet18": resnet18.tables,
    "operators": operators.tables,
    "models": models.tables,
    "numba": numba_functions.tables,
}
PACKAGES = (
    "dso-packer", "apache-tvm-ffi", "cffi", "pybind11", "nanobind", "numpy", "torch", "llvmlite",
    "onnxruntime", "apache-tvm",
)  # fmt: skip


def main() -> None:
    """Run the requested subjects."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=SUBJECTS, metavar="NAME",
                        help=f"measure only this; repeatable: {', '.join(SUBJECTS)}")  # fmt: skip
    parser.add_argument("--large", action="store_true", help="also measure 4 GiB of weights")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all samples to this file")
    arguments = parser.parse_args()

    facts, tables = describe_machine(), []
    print("\n".join(facts.values()))
    started = time.monotonic()
    with TemporaryDirectory(prefix="dso-packer-benchmark-") as folder:
        launch = Launcher(Path(folder))
        for name in arguments.only or SUBJECTS:
            options = {"large": True} if arguments.large and name == "weights" else {}
            for table in measured(name, Path(folder), launch, **options):
                tables.append({"subject": name, **table.json()})
                print(f"\n{table.text()}", flush=True)
    print(f"\n{time.monotonic() - started:.0f} s; load average now {os.getloadavg()[0]:.2f}")
    if arguments.json:
        text = json.dumps({"machine": facts, "tables": tables}, indent=1)
        arguments.json.write_text(text + "\n", encoding="utf-8")


def measured(name: str, folder: Path, launch: Launcher, **options: Any) -> Iterator[Table]:
    """Measure a subject; if it cannot run here, the last table has the reason."""
    try:
        yield from SUBJECTS[name](folder, launch, **options)
    except Exception as error:
        traceback.print_exc()
        reason = (str(error).strip() or repr(error)).splitlines()[-1]
        yield Table(name, [Row(f"all of {name}", (), f"cannot run: {reason}")], "ms")


def describe_machine() -> dict[str, str]:
    """Describe the machine, one line for each fact."""
    gcc = subprocess.run(["gcc", "--version"], capture_output=True, text=True, check=True).stdout
    processor = f"{_processor()}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.2f}"
    return {
        "processor": processor,
        "system": f"{platform.system()} {platform.release()}, {gcc.splitlines()[0]}",
        "packages": f"Python {platform.python_version()}, " + ", ".join(map(_version, PACKAGES)),
    }


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} not installed"


if __name__ == "__main__":
    main()

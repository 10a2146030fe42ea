"""examples/tokens: a C program with its model, beside Python."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import packer
import runtime

FOLDER = Path(__file__).parents[4] / "examples/tokens"


def test_the_commands_of_the_page_run(tmp_path: Path) -> None:
    """The program prints the tokens that Python finds with the same model."""
    folder = tmp_path / "tokens"
    shutil.copytree(FOLDER, folder)
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, module in (("python", ""), ("packer", "-m packer")):
        (tools / name).write_text(f'#!/bin/sh\nexec {sys.executable} {module} "$@"\n')
        (tools / name).chmod(0o755)
    commands = re.findall(r"^    (.*)$", (folder / "README.md").read_text(), re.MULTILINE)
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    printed = []
    for command in commands:
        ran = subprocess.run(
            command,
            shell=True,
            cwd=folder,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        printed.append(ran.stdout)
    model = packer.from_onnx(folder / "decoder.onnx")
    build = packer.Build(cpu="native")
    library = runtime.load(packer.export_library(model, tmp_path / "model.so", build=build))
    right = list(runtime.generate(library.session(), [1, 2, 3], maximum=16))
    assert [int(line) for line in printed[-1].split()] == right
    wrong = subprocess.run(
        ["./generate", "4", "5000"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert (wrong.returncode, wrong.stderr.partition(":")[0]) == (1, "IndexError")

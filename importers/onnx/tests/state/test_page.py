"""The code and the commands of tokens.md run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.libdso import compile_program, run_program

from ..support.encoders import write

PAGE = (Path(__file__).parents[2] / "docs/tokens.md").read_text()


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python programs, the commands, and the C program with the first library."""
    *programs, decoder = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    compile(decoder, "decoder.py", "exec")
    for program in programs:
        subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    write(tmp_path / "t5", "merged")
    for words in re.findall(r"^    packer (.*)$", PAGE, re.MULTILINE):
        if any(one in words for one in ("h=h_next", "none", "--torch", "whisper")):
            continue
        command = [sys.executable, "-m", "packer", *words.partition("#")[0].split()]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    (code,) = re.findall(r"```c\n(.*?)```", PAGE, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    last = float(run_program(compile_program(code, tmp_path / "tokens")))
    assert last == pytest.approx(np_softmax(), rel=1e-5)


def np_softmax() -> float:
    """The share of the second row in the second row's attention: of e^3 and e^0."""
    from math import exp

    return exp(3) / (exp(3) + 1)

"""Scripts of calls (c/calls.c), run by a C program with libdso and by Python's runtime."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import runtime

from ..support.libdso import compile_program, run_program
from ..support.opencl_kernels import on_device
from ..support.paths import C_SOURCES


@functools.cache
def _driver(*options: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="calls-"))
    return compile_program((C_SOURCES / "calls.c").read_text(), folder / "calls", *options)


def by_libdso(library: Path, script: str, *options: str) -> list[str]:
    """Return the output of a C program."""
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(script)
        file.flush()
        return run_program(_driver(*options), library, file.name).splitlines()


def by_python(library: Path, script: str) -> list[str]:
    """Return the results of the same calls in Python's runtime."""
    root = runtime.load(library)
    results: list[Any] = []
    return [_run(root, line.split(), results) for line in script.splitlines()]


def _run(root: Any, words: list[str], results: list[Any]) -> str:
    target, name, *texts = words
    args = [_argument(text, results) for text in texts]
    module = root if target == "m" else results[int(target[1:])]
    results.append(None)
    try:
        results[-1] = module(*args) if name == "()" else module[name](*args)
    except Exception as error:
        text = error.args[0] if isinstance(error, KeyError) else error
        return f"{type(error).__name__}: {text}"
    tensors = [arg for text, arg in zip(texts, args, strict=True) if text[0] in "to"]
    return " ".join(map(_shown, [results[-1], *tensors]))


def _argument(text: str, results: list[Any]) -> Any:
    kind, rest = text[0], text[1:]
    if kind in "to":
        array = np.array([float(item) for item in rest.split(",")], "float32")
        return on_device(array) if kind == "o" else array
    readers: dict[str, Callable[[str], Any]] = {
        "i": int,
        "b": lambda digit: digit != "0",
        "f": float,
        "s": str,
        "x": bytes.fromhex,
        "d": lambda device: runtime.Device(*map(int, device.split(","))),
        "n": lambda _: None,
        "r": lambda index: results[int(index)],
    }
    return readers[kind](rest)


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({''.join(f'{_shown(item)},' for item in value)})"
    if isinstance(value, dict):
        return _shown(tuple(part for pair in value.items() for part in pair))
    if isinstance(value, runtime.Module):
        return "module"
    if hasattr(value, "__dlpack__"):
        array = value.numpy() if isinstance(value, runtime.Tensor) else value
        return f"tensor:{np.ascontiguousarray(array).tobytes().hex()}"
    if callable(value):
        return "function"
    return f"{value:.17g}" if isinstance(value, float) else repr(value)


def assert_equal(library: Path, script: str, *options: str) -> list[str]:
    """Compare, and return what both give."""
    script = "\n".join(line.strip() for line in script.strip().splitlines()) + "\n"
    found = by_libdso(library, script, *options)
    assert found == by_python(library, script)
    return found

"""A tree as text: by Python's runtime, and by the C program dso_driver.c; both are the same."""

from __future__ import annotations

import functools
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import runtime
from runtime.tensors.dtype import string_to_dtype

from .libdso import compile_program
from .paths import C_SOURCES


@functools.cache
def driver() -> Path:
    """Compile the program once in this process."""
    folder = Path(tempfile.mkdtemp(prefix="dso-driver-"))
    return compile_program((C_SOURCES / "dso_driver.c").read_text(), folder / "driver")


def shown_by_c(path: Path) -> str:
    """Return the output of the program for a file, without its first line."""
    command = [str(driver()), str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, f"{ran.returncode}: {ran.stdout}{ran.stderr}"
    return ran.stdout.partition("\n")[2]


def shown_by_python(path: Path) -> str:
    """The same text from Python's runtime."""
    try:
        root = runtime.load(path)
    except runtime.PackerError as error:
        return f"error {type(error).__name__}: {error}\n"
    lines = [*_modules(root, 0), *_weights(root), f"entry {root.entry_name}"]
    return "\n".join(lines) + "\n"


def _modules(module: runtime.Module, depth: int) -> Iterable[str]:
    yield f"module {depth} {module.type_key}"
    for name in module.function_names():
        yield f"function {name}"
    for imported in module.imported_modules:
        yield from _modules(imported, depth + 1)


def _weights(root: runtime.Module) -> Iterable[str]:
    for name, tensor in root.weights.items():
        code, bits, lanes = string_to_dtype(tensor.dtype)
        shape = ",".join(map(str, tensor.shape))
        yield f"weight {name} {code}.{bits}.{lanes} ({shape}) {_sum(bytes(tensor.raw)):08x}"


def _sum(data: bytes) -> int:
    value = 5381
    for byte in data:
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value

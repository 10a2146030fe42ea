"""A tree as text: by Python's runtime, and by the C program dso_driver.c; both are the same.

``dso_driver.py PATH ...`` prints the texts by Python's runtime, as JSON lines; a path "@net1_" is
the system library of that prefix.
"""

from __future__ import annotations

import functools
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import runtime
from runtime.modules.device import metadata_of
from runtime.tensors.dtype import string_to_dtype

ROOT = Path(__file__).parents[2]
SOURCE = Path(__file__).parent / "c" / "dso_driver.c"
HOME = Path(runtime.__file__).parent
ARCHIVE = HOME / "lib" / "libdso.a"
CRASH = "crash\n"


@functools.cache
def installed_program(source: Path) -> Path:
    """Link a C program with the installed libdso.a, once in this process."""
    output = Path(tempfile.mkdtemp(prefix="dso-program-")) / source.stem
    command = ["cc", "-std=c99", "-g", f"-I{HOME / 'include'}", source, ARCHIVE, "-o", output]
    subprocess.run([*command, "-pthread", "-ldl", "-lm"], check=True)
    return output


def shown_by_c(path: Path | str, *before: Path | str) -> str:
    """Return the output for a file; some are loaded before, and are still in use."""
    command = [str(installed_program(SOURCE)), "-c", *map(str, before), str(path)]
    ran = subprocess.run(
        command, capture_output=True, text=True, errors="replace", check=False, timeout=120
    )
    if ran.returncode < 0 and ran.stdout.endswith(f"{path}\n"):
        return CRASH
    assert ran.returncode == 0, f"{ran.returncode}: {ran.stdout}{ran.stderr}"
    return ran.stdout.partition(f"{path}\n")[2]


def shown_by_python(path: Path | str) -> str:
    """The same text from Python's runtime."""
    try:
        root = runtime.system_lib(path[1:]) if isinstance(path, str) else runtime.load(path)
    except runtime.PackerError as error:
        return f"error {type(error).__name__}: {error}\n"
    lines = [*_modules(root, 0), *_weights(root), f"entry {root.entry_name}"]
    return "\n".join(lines) + "\n"


def shown_in_children(paths: Sequence[Path]) -> list[str]:
    """The same of many files in other processes, which the code of a damaged one may end."""
    texts: list[str] = []
    while len(texts) < len(paths):
        command = [sys.executable, __file__, *map(str, paths[len(texts) :])]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        texts += [json.loads(line) for line in ran.stdout.splitlines()]
        assert ran.returncode <= 0, ran.stderr
        if ran.returncode < 0:
            texts.append(CRASH)
    return texts


def _modules(module: runtime.Module, depth: int) -> Iterable[str]:
    yield f"module {depth} {module.type_key}"
    for name in module.function_names():
        yield f"function {name}"
        if text := _signature(module, name):
            yield f"signature {text}"
    for imported in module.imported_modules:
        yield from _modules(imported, depth + 1)


def _signature(module: Any, name: str) -> str | None:
    if isinstance(module, runtime.DeviceModule):
        declared = metadata_of(module.functions[name]).splitlines()[1]
        return declared.removeprefix("type ")
    if hasattr(module, "signature"):  # bytecode
        return str(module.signature(name)).removeprefix(name)
    if module.type_key != "library":
        return None
    function: Any = module.get_function(name)
    text: str | None = function.signature
    return text and text.replace(f" {name}(", "(", 1).replace(f"*{name}(", "*(", 1)


def _weights(root: runtime.Module) -> Iterable[str]:
    for name, tensor in root.weights.items():
        code, bits, lanes = string_to_dtype(tensor.dtype)
        shape = ",".join(map(str, tensor.shape))
        data = bytes(tensor.raw)
        is_complete = len(data) == math.prod(tensor.shape) * ((bits * lanes + 7) // 8)
        if not is_complete:
            yield f"! ValueError: {_why_incomplete(tensor)}"
            return
        yield f"weight {name} {code}.{bits}.{lanes} ({shape}) {_sum(data):08x}"


def _why_incomplete(tensor: runtime.Tensor) -> str:
    """The error of reading it, without the advice that C cannot follow."""
    try:
        tensor.__dlpack__()
    except ValueError as error:
        return str(error).removesuffix("; read .raw instead")
    return "complete"


def _sum(data: bytes) -> int:
    value = 5381
    for byte in data:
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value


if __name__ == "__main__":
    for name in sys.argv[1:]:
        shown = shown_by_python(name if name.startswith("@") else Path(name))
        print(json.dumps(shown), flush=True)

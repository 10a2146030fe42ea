"""The calls of calls.py and model_calls.py, made by a C program with libdso: what it prints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..support.dso_script import run_by_c, tensor, text_of
from .calls import Call
from .model_calls import Shape

CPU, OPENCL = 1, 4
POOLED = 2  # TVM's number for memory that a machine keeps
ModelCall = tuple[str, tuple[Any, ...]]


def library_by_c(path: Path, calls: list[Call], kernels_on: int = 0) -> tuple[list[str], list[str]]:
    """The outcome of each call, and what the callback received; kernels get tensors on a device."""
    lines = [
        _line(0, call.function, call.make(), kernels_on if call.is_kernel else 0) for call in calls
    ]
    printed = run_by_c("listen test.told", f"load {path}", *lines).splitlines(keepends=True)
    told = [line.strip() for line in printed if line.startswith("told ")]
    return _outcomes("".join(x for x in printed if not x.startswith("told ")))[2:], told


def model_by_c(path: Path, calls: list[ModelCall]) -> list[str]:
    """The outcome of each call."""
    return _outcomes(run_by_c(f"load {path}", *(_line(0, name, args) for name, args in calls)))[1:]


def model_on_opencl_by_c(path: Path, calls: list[ModelCall]) -> list[str]:
    """The same on a device, through TVM's functions for arguments that are set before.

    Without the arguments.
    """
    machine = [
        f"load {path}",
        _line(0, "vm_load_executable", ()),
        _line(1, "vm_initialization", (OPENCL, 0, POOLED, CPU, 0, POOLED)),
    ]
    made = []
    for name, args in calls:
        lines = [_line(1, "set_input", (name, *args)), _line(1, "invoke_stateful", (name,))]
        found = _outcomes(run_by_c(*machine, *lines, _line(1, "get_output", (name,))))[3:]
        error = next((text for text in found if text.startswith("error ")), None)
        made.append(error.partition("\ntensor ")[0] if error else found[-1])
    return made


def text_of_outcome(value: Any, args: Iterable[Any]) -> str:
    """Describe a result (or the "Kind: text" of an error) and the arguments."""
    first = f"error {value}" if isinstance(value, str) else text_of(value)
    return "\n".join([first, *map(text_of, _arrays(args))])


def text_of_notes(notes: Iterable[list[Any]]) -> list[str]:
    """Describe the notes of the callback, where lists are arrays of float32."""
    lines = []
    for values in notes:
        shown = [np.array(v, "float32") if isinstance(v, list) else v for v in values]
        lines += [f"told {len(values)}", *(f"told {text_of(value)}" for value in shown)]
    return lines


def _line(slot: int, function: str, args: Iterable[Any], device_type: int = 0) -> str:
    return " ".join([f"call {slot} {function}", *(_argument(arg, device_type) for arg in args)])


def _argument(value: Any, device_type: int) -> str:
    if isinstance(value, np.ndarray):
        return tensor(value, device_type)
    if isinstance(value, Shape):
        return f"h:{','.join(map(str, value))}"
    if isinstance(value, tuple):  # tensors in it are objects
        return f"( {' '.join(_argument(item, device_type or CPU) for item in value)} )"
    if isinstance(value, bool):
        return f"b:{int(value)}"
    kinds = {int: "i", float: "f", str: "s"}
    return "n" if value is None else f"{kinds[type(value)]}:{value}"


def _arrays(values: Iterable[Any]) -> Iterator[np.ndarray]:
    for value in values:
        if isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, tuple):
            yield from _arrays(value)


def _outcomes(printed: str) -> list[str]:
    """Return the output after each line of the script."""
    return [part.partition("\n")[2].rstrip("\n") for part in f"\n{printed}".split("\n> ")[1:]]

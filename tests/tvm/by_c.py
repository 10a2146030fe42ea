"""The calls of calls.py and model_calls.py, made by a C program with libdso."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ..support.dso_script import run_by_c, tensor
from .calls import Call
from .model_calls import Shape

CPU, OPENCL = 1, 4
Outcomes = list[str]


def call_line(function: str, args: Iterable[Any], device_type: int = 0) -> str:
    """The line of a script for a call of the tree that was loaded first."""
    return " ".join([f"call 0 {function}", *(argument(arg, device_type) for arg in args)])


def argument(value: Any, device_type: int = 0) -> str:
    """The argument for a value of Python; tensors in tuples are objects."""
    if isinstance(value, np.ndarray):
        return tensor(value, device_type)
    if isinstance(value, Shape):
        return f"h:{','.join(map(str, value))}"
    if isinstance(value, tuple):
        return f"( {' '.join(argument(item, device_type or CPU) for item in value)} )"
    if isinstance(value, bool):
        return f"b:{int(value)}"
    kinds = {int: "i", float: "f", str: "s"}
    return "n" if value is None else f"{kinds[type(value)]}:{value}"


def library_by_c(path: Path, calls: list[Call], is_on_opencl: bool) -> tuple[Outcomes, list[str]]:
    """The outcomes of the calls of a library, and what its callback was told."""
    lines = [
        call_line(call.function, call.make(), OPENCL if is_on_opencl and call.is_kernel else 0)
        for call in calls
    ]
    found = _outcomes(run_by_c("listen test.told", f"load {path}", *lines))[2:]
    told = [line for outcome in found for line in outcome.splitlines() if _is_told(line)]
    rest = ["\n".join(x for x in outcome.splitlines() if not _is_told(x)) for outcome in found]
    return rest, told


def model_by_c(path: Path, calls: list[tuple[str, tuple[Any, ...]]]) -> Outcomes:
    """The outcomes of the calls of a model."""
    lines = [call_line(name, args) for name, args in calls]
    return _outcomes(run_by_c(f"load {path}", *lines))[1:]


def _outcomes(printed: str) -> Outcomes:
    """What follows each line of the script."""
    return [part.partition("\n")[2].rstrip("\n") for part in f"\n{printed}".split("\n> ")[1:]]


def _is_told(line: str) -> bool:
    return line.startswith("told ")

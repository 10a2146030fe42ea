"""The calls of calls.py and model_calls.py, made by a C program with libdso: what it prints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import packer
from runtime.modules.vm import load
from runtime.serial.stream import Reader

from ..support.dso_script import outcomes, run_by_c, tensor, text_of
from ..support.vm_assembler import Code, Program, call, packed, reg, ret
from .calls import Call
from .model_calls import Shape

CPU, OPENCL = 1, 4
POOLED = 2  # TVM's number for memory that a machine keeps
ModelCall = tuple[str, tuple[Any, ...]]


def library_by_c(
    path: Path, calls: list[Call], copier: Path | None = None
) -> tuple[list[str], list[str]]:
    """The outcome of each call, and what the callback received.

    Kernels get tensors on a device, if there is a model that copies them (copying_model).
    """
    before = ["listen test.told", f"load {path}"]
    if copier:
        before += [f"load {copier}", *_machine(1)]
    groups, slot = [], 3
    for one in calls:
        if copier and one.is_kernel:
            groups.append(_on_device(one, slot))
            slot += len(list(_arrays(one.make())))
        else:
            groups.append([_line(0, one.function, one.make())])
    printed = run_by_c(*before, *(line for lines in groups for line in lines))
    told = [line for line in printed.splitlines() if line.startswith("told ")]
    kept = [line for line in printed.splitlines() if not line.startswith("told ")]
    texts = iter(outcomes("\n".join(kept))[len(before) :])
    found = [[next(texts) for _ in lines] for lines in groups]
    # Of the lines of _on_device, lines that copy to the device do not count.
    return ["\n".join(group[len(group) // 2 :]) for group in found], told


def copying_model(folder: Path) -> Path:
    """Export a model that copies a tensor to a device: ``main(tensor, type, id)``."""
    code = [call(3, 1, reg(0), reg(1), reg(2)), ret(3)]
    program = Program([Code("main", ["x", "type", "id"], code, 4), packed("vm.builtin.to_device")])
    return packer.export_library(load(Reader(program.payload())), folder / "copy.so")


def _on_device(one: Call, slot: int) -> list[str]:
    """Copy the arrays to a device, call, and copy them back."""
    args = one.make()
    arrays = list(_arrays(args))
    slots = [slot + i for i in range(len(arrays))]
    places = iter(slots)
    words = [f"o:{next(places)}" if isinstance(a, np.ndarray) else _argument(a) for a in args]
    return [
        *(_line(2, "main", (array, OPENCL, 0)) for array in arrays),
        " ".join([f"call 0 {one.function}", *words]),
        *(_copy_back(slot, 2) for slot in slots),
    ]


def model_by_c(path: Path, calls: list[ModelCall]) -> list[str]:
    """The outcome of each call."""
    return outcomes(run_by_c(f"load {path}", *(_line(0, name, args) for name, args in calls)))[1:]


def model_on_opencl_by_c(path: Path, one: ModelCall, copier: Path, num_tensors: int) -> str:
    """The tensors of a result, or the error, of a call with arguments that are set before."""
    name, args = one
    lines = [
        *(f"load {path}", *_machine(0), f"load {copier}", *_machine(2)),
        *(_line(1, "set_input", (name, *args)), _line(1, "invoke_stateful", (name,))),
        _line(1, "get_output", (name,)),
        *(_copy_back(4 + index, 3) for index in range(num_tensors)),
    ]
    found = outcomes(run_by_c(*lines))
    errors = (text.partition("\ntensor ")[0] for text in found if text.startswith("error "))
    return next(errors, "\n".join(found[len(lines) - num_tensors :]))


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


def _copy_back(slot: int, machine: int) -> str:
    return f"call {machine} main o:{slot} i:{CPU} i:0"


def _machine(slot: int) -> list[str]:
    """Make a machine of a model; it takes the next slot."""
    devices = (OPENCL, 0, POOLED, CPU, 0, POOLED)
    return [_line(slot, "vm_load_executable"), _line(slot + 1, "vm_initialization", devices)]


def _line(slot: int, function: str, args: Iterable[Any] = ()) -> str:
    return " ".join([f"call {slot} {function}", *(_argument(arg) for arg in args)])


def _argument(value: Any, kind: str = "t") -> str:
    if isinstance(value, np.ndarray):
        return tensor(value, kind)
    if isinstance(value, Shape):
        return f"h:{','.join(map(str, value))}"
    if isinstance(value, tuple):  # tensors in it are objects
        return f"( {' '.join(_argument(item, 'm') for item in value)} )"
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

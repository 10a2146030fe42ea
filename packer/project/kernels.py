"""The kernels of device code: those that a table declares, or else those that the code declares."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from runtime.device.kernel_source import TAGS, left_out
from runtime.error import BlobFormatError
from runtime.lone_files import DEVICE_CODE, kernels_of_file
from runtime.modules.device import LAUNCHED, FunctionInfo

from ..elf.cubin import cubin_kernels
from .inputs import read_bytes
from .table import Table

# A probable type of a parameter of this size; a cubin has no types.
_TYPE_OF_SIZE = {1: "int8", 2: "float16", 4: "int32", 8: "handle"}
_GUESS = "int32"


def declared_kernels(table: Table) -> list[FunctionInfo]:
    """Return the kernels that a table of functions declares."""
    return [_kernel(name, table.table(name)) for name in table]


def _kernel(name: str, table: Table) -> FunctionInfo:
    table.only(("arg_types", "launch_param_tags"))
    try:
        return FunctionInfo(name, table.texts("arg_types"), table.texts("launch_param_tags"))
    except ValueError as error:
        raise table.error(str(error), "arg_types") from error


def format_of_code(path: Path) -> str:
    """Return the format of device code that a suffix names; the suffix itself if unknown."""
    suffix = path.suffix[1:]
    return DEVICE_CODE[suffix][1] if suffix in DEVICE_CODE else suffix


def read_kernels(table: Table, paths: Sequence[Path]) -> dict[str, FunctionInfo]:
    """Return the kernels that files of a module declare, as `runtime.load` reads each file.

    A note names each kernel that is left out, and shows the table that declares the kernels.
    """
    kernels: dict[str, FunctionInfo] = {}
    reasons: list[str] = []
    guessed: dict[str, FunctionInfo] = {}
    for path in paths:
        data = memoryview(read_bytes(path))
        fmt = format_of_code(path)
        try:
            kernels = kernels_of_file(str(path), fmt, data) | kernels
        except BlobFormatError as error:
            raise table.error(str(error), "sources") from error
        for name, parameters in left_out(fmt, data).items():
            reason, guess = _examine(name, parameters)
            reasons.append(reason)
            guessed |= {name: guess} if guess else {}
        guessed |= _of_cubin(data) if fmt == "cubin" else {}
    guessed = {name: info for name, info in guessed.items() if name not in kernels}
    if guessed and not reasons:
        reasons.append("a cubin does not state the types of its kernels")
    if not (kernels or reasons) and table.text("kind") in LAUNCHED:
        reasons.append("the code does not state the types of its kernels, so none can be called")
    if reasons:
        _note(table, paths[0], reasons, kernels | guessed if guessed else {})
    return kernels


def _examine(
    name: str, parameters: Sequence[tuple[str, str | None]]
) -> tuple[str, FunctionInfo | None]:
    """Return why a kernel is left out, and a guess at its types if it can be declared."""
    unknown = next(text for text, type_ in parameters if type_ is None)
    if not unknown.replace(" ", "").isidentifier() or unknown.startswith(("struct ", "union ")):
        text = f"kernel {name!r} is left out: a launch passes numbers and arrays, not {unknown!r}"
        return text, None
    text = f"kernel {name!r} is left out: the type of its parameter {unknown!r} is unknown"
    return text, FunctionInfo(name, [type_ or _GUESS for _, type_ in parameters], TAGS)


def _of_cubin(data: memoryview) -> dict[str, FunctionInfo]:
    """Guess the types of kernels by their sizes; a kernel with a struct is left out."""
    return {
        name: FunctionInfo(name, [_TYPE_OF_SIZE[size] for size in sizes], TAGS)
        for name, sizes in cubin_kernels(data).items()
        if _TYPE_OF_SIZE.keys() >= set(sizes)
    }


def _note(
    table: Table, path: Path, reasons: Sequence[str], shown: Mapping[str, FunctionInfo]
) -> None:
    text = f"{path.name}: {'; '.join(reasons)}"
    if not shown:
        table.note(text, "sources")
        return
    rows = [
        f"{_key(name)} = {{ arg_types = {_texts(info.arg_types)}, "
        f"launch_param_tags = {_texts(info.launch_param_tags)} }}"
        for name, info in shown.items()
    ]
    title = f"[{table.name}.functions]"
    remedy = "declare all kernels; where a type below is a guess, write that of the source:"
    table.note("\n".join([f"{text}; {remedy}", title, *rows]), "sources")


def _key(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else _quoted(name)


def _texts(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(_quoted, texts))}]"


def _quoted(text: str) -> str:
    return json.dumps(text)

"""The kernels of device code: a table declares them, or else the code does."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from runtime.device.kernel_source import TAGS, left_out
from runtime.device.standalone_files import DEVICE_CODE, kernels_of_file, load_file
from runtime.error import BlobFormatError, ExportError
from runtime.module import Module
from runtime.modules.device import LAUNCHED, FunctionInfo

from ..elf.cubin import cubin_kernels
from ..files.text import shown_path
from .inputs import Inputs, read_bytes
from .table import Table

# A probable type of a parameter of this size; a cubin has no types.
_TYPE_OF_SIZE = {1: "int8", 2: "float16", 4: "int32", 8: "handle"}
_GUESS = "int32"


def device_module(path: Path, inputs: Inputs) -> Module:
    """Make a module of one file of device code, as `runtime.load` does, with a note if needed."""
    module = load_file(str(path))
    kernels = read_kernels([path], module.type_key)
    if kernels.reasons:
        name = _key(path.stem)
        before = (
            f"[module.{name}]\nkind = {_quoted(module.type_key)}\nsources = {_texts([path.name])}\n"
        )
        inputs.notes.append(f"{shown_path(path)}: {kernels.note(name, before)}")
    return module


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


class Kernels(NamedTuple):
    """The kernels that device code declares."""

    functions: dict[str, FunctionInfo]  # the kernels that can be called
    reasons: str  # which kernels are left out, and why; empty if none is
    # If `reasons` can be remedied: all kernels, some with types that are guessed.
    guessed: dict[str, FunctionInfo]

    def note(self, name: str, before: str = "") -> str:
        """Return the reasons, and the table of packer.toml that declares the kernels.

        `name` is that of the module in packer.toml, `before` is text before the table.
        """
        if not self.guessed:
            return self.reasons
        remedy = "declare all in packer.toml; where a type is a guess, write that of the source:"
        rows = [
            f"{_key(name)} = {{ arg_types = {_texts(info.arg_types)}, "
            f"launch_param_tags = {_texts(info.launch_param_tags)} }}"
            for name, info in self.guessed.items()
        ]
        title = f"{before}[module.{name}.functions]"
        return "\n".join([f"{self.reasons}; {remedy}", title, *rows])


def read_kernels(paths: Sequence[Path], kind: str) -> Kernels:
    """Find the kernels that the files of a module declare, as `runtime.load` reads each file.

    Raises ExportError if the file beside the code is malformed.
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
            raise ExportError(error.message, path=error.path) from error
        for name, parameters in left_out(fmt, data).items():
            if name not in kernels:
                reason, guess = _examine(name, parameters)
                reasons.append(reason)
                guessed |= {name: guess} if guess else {}
        guessed |= _of_cubin(data) if fmt == "cubin" else {}
    guessed = {name: info for name, info in guessed.items() if name not in kernels}
    if guessed and not reasons:
        reasons.append("a cubin does not state the types of its kernels")
    if not (kernels or reasons) and kind in LAUNCHED:
        reasons.append("the code does not state the types of its kernels, so none can be called")
    return Kernels(kernels, "; ".join(reasons), kernels | guessed if guessed else {})


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


def _key(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else _quoted(name)


def _texts(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(_quoted, texts))}]"


def _quoted(text: str) -> str:
    return json.dumps(text)

"""A script of calls: by Python's runtime, and by the C program dso_script.c, which describes it."""

from __future__ import annotations

import ctypes
import functools
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import runtime
from runtime.tensors.dtype import dtype_to_string, string_to_dtype

from .dso_driver import installed_program
from .libdso import SANITIZE, compile_program
from .opencl_kernels import on_device
from .paths import C_SOURCES, ROOT
from .process import run_python


def tensor(array: Any, kind: str = "t") -> str:
    """The argument for a NumPy array; kind "m" is a tensor object, "g" one on opencl:0.

    Strides are passed if they differ from a full compact array's; none may be negative.
    """
    code, bits, _ = string_to_dtype(str(array.dtype))
    layout, data = ",".join(map(str, array.shape)), array.tobytes()
    if not array.size or not array.flags.c_contiguous:
        layout += "/" + ",".join(str(step // array.itemsize) for step in array.strides)
    if array.size:
        last = sum((n - 1) * step for n, step in zip(array.shape, array.strides, strict=True))
        data = ctypes.string_at(array.ctypes.data, last + array.itemsize)
    return f"{kind}:{code}.{bits}:{layout}:{data.hex()}"


@functools.cache
def sanitized_program() -> Path:
    """The program with libdso, compiled from the sources with sanitizers."""
    output = Path(tempfile.mkdtemp(prefix="script-")) / "script"
    return compile_program((C_SOURCES / "dso_script.c").read_text(), output, *SANITIZE)


def run_by_c(*lines: str, is_sanitized: bool = False) -> str:
    """Return the output of the program."""
    installed = C_SOURCES / "dso_script.c"
    program = sanitized_program() if is_sanitized else installed_program(installed)
    text = "".join(f"{line}\n" for line in lines)
    ran = subprocess.run(
        [program],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ran.returncode == 0, f"{ran.returncode}: {ran.stdout}{ran.stderr}"
    return ran.stdout


def run_by_python(*lines: str) -> str:
    """The same text from Python's runtime."""
    script = Script()
    for line in lines:
        script.printed.append(f"> {line}")
        script.run(line)
    return "".join(f"{line}\n" for line in script.printed)


def run_by_python_alone(*lines: str) -> str:
    """The same in another process: functions and system libraries are registered for ever."""
    code = (
        "import json, sys; sys.path.append(sys.argv[1])\n"
        "from tests.support.dso_script import run_by_python\n"
        "print(json.dumps(run_by_python(*sys.argv[2:])))"
    )
    text: str = run_python(code, str(ROOT), *lines)
    return text


def outcomes(printed: str) -> list[str]:
    """Return the output after each line of a script."""
    return [part.partition("\n")[2].rstrip("\n") for part in f"\n{printed}".split("\n> ")[1:]]


def assert_same(path: Path, script: str, *, is_sanitized: bool = False) -> list[str]:
    """Make calls of the tree of a file, which is slot 0, by both; return what each line gives."""
    lines = [f"load {path}", *map(str.strip, script.strip().splitlines())]
    found = run_by_c(*lines, is_sanitized=is_sanitized)
    assert found == run_by_python(*lines)
    return outcomes(found)[1:]


class Script:
    """The state of a script."""

    def __init__(self) -> None:
        self.slots: list[Any] = []
        self.printed: list[str] = []
        self.tensors: list[Any] = []  # of the arguments of a call

    def run(self, line: str) -> None:
        """Run a line, and print its outcome."""
        verb, *words = line.split()
        self._try(getattr(self, f"_{verb}"), *words)

    def _try(self, function: Any, *args: Any) -> None:
        try:
            function(*args)
        except Exception as error:  # any kind: both runtimes must raise the same
            text = error.args[0] if isinstance(error, KeyError) else error
            self.printed.append(f"error {type(error).__name__}: {text}")

    def _load(self, path: str) -> None:
        self._show(runtime.load(path))

    def _system(self, prefix: str = "") -> None:
        self._show(runtime.system_lib(prefix))

    def _call(self, slot: str, name: str, *words: str) -> None:
        self._call_with(lambda *args: self.slots[int(slot)][name](*args), words)

    def _keep(self, slot: str, name: str, *words: str) -> None:
        def call(*args: Any) -> Any:
            self.slots.append(self.slots[int(slot)][name](*args))
            return self.slots[-1]

        self._call_with(call, words)

    def _apply(self, slot: str, *words: str) -> None:
        self._call_with(self.slots[int(slot)], words)

    def _weight(self, slot: str, name: str) -> None:
        self._show(self.slots[int(slot)].weights[name])

    def _import(self, slot: str, imported: str) -> None:
        self.slots[int(slot)].import_module(self.slots[int(imported)])

    def _drop(self, slot: str) -> None:
        self.slots[int(slot)] = None

    def _listen(self, name: str) -> None:
        runtime.register_func(name)(self._told)

    def _told(self, *values: Any) -> int:
        self.printed.append(f"told {len(values)}")
        self.printed += [f"told {self._text(value)}" for value in values]
        if 7 in [value for value in values if isinstance(value, int)]:
            raise ValueError("not seven")
        return 41

    def _call_with(self, function: Any, words: tuple[str, ...]) -> None:
        self.tensors = []
        args = self._arguments(iter(words))
        self._try(lambda: self._show(function(*args)))
        for made in self.tensors:
            self._show(made if isinstance(made, np.ndarray) else made.to("cpu"))

    def _arguments(self, words: Iterator[str]) -> tuple[Any, ...]:
        """The words up to a lone ")"."""
        left = iter(words.__next__, ")")
        return tuple(self._arguments(words) if w == "(" else self._argument(w) for w in left)

    def _argument(self, word: str) -> Any:
        kind, _, text = word.partition(":")
        if kind in ("t", "m", "g"):
            made = _tensor(text)
            self.tensors.append(on_device(made) if kind == "g" else made)
            return self.tensors[-1]
        if kind == "d":
            device_type, device_id = map(int, text.split(":"))
            return runtime.Device(device_type, device_id)
        if kind == "h":
            return _integers(text)
        makers = {"n": lambda _: None, "i": int, "f": float, "s": str, "b": lambda t: t == "1"}
        makers["x"] = bytes.fromhex
        return makers[kind](text) if kind in makers else self.slots[int(text)]

    def _show(self, value: Any) -> None:
        self.printed.append(self._text(value))

    def _text(self, value: Any) -> str:
        return text_of(value, self._kept)

    def _kept(self, value: Any) -> str:
        if isinstance(value, runtime.Tensor):
            kind = "tensor"
        elif isinstance(value, runtime.Module):
            kind = value.type_key
        elif callable(value):
            kind = "function"
        else:
            return "other"
        self.slots.append(value)
        return f"slot {len(self.slots) - 1} {kind}"


def text_of(value: Any, other: Callable[[Any], str] = lambda _: "other") -> str:
    """Describe a value; `other` is asked about modules and functions."""
    if isinstance(value, np.ndarray) or _is_on_cpu(value):
        return _text_of_tensor(value)
    if isinstance(value, dict):
        value = tuple(part for item in value.items() for part in item)
    if isinstance(value, tuple):
        return "\n".join([f"tuple {len(value)}", *(text_of(item, other) for item in value)])
    if isinstance(value, bool):
        return f"bool {int(value)}"
    if isinstance(value, float):
        return f"float {struct.unpack('<Q', struct.pack('<d', value))[0]:016x}"
    if isinstance(value, (int, str)):
        return f"{'int' if isinstance(value, int) else 'text'} {value}"
    return "none" if value is None else other(value)


def _text_of_tensor(value: Any) -> str:
    code, bits, lanes = string_to_dtype(str(value.dtype))
    data = value.tobytes() if isinstance(value, np.ndarray) else bytes(value.raw)
    return f"tensor {code}.{bits}.{lanes} ({','.join(map(str, value.shape))}) {data.hex()}"


def _is_on_cpu(value: Any) -> bool:
    return isinstance(value, runtime.Tensor) and value.device == runtime.Device("cpu")


def _integers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(","))) if text else ()


def _tensor(text: str) -> Any:
    dtype, layout, data = text.split(":")
    code, bits = map(int, dtype.split("."))
    name = dtype_to_string((code, bits, 1))
    shape, *strides = map(_integers, layout.split("/"))
    if strides:
        array = np.frombuffer(bytearray.fromhex(data), name)
        steps = [stride * array.itemsize for stride in strides[0]]
        return np.lib.stride_tricks.as_strided(array, shape, steps)
    made = runtime.empty(shape, name)
    made.copy_from(runtime.Tensor(bytes.fromhex(data), shape, (code, bits, 1)))
    return made

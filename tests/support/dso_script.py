"""A script of calls: by Python's runtime, and by the C program dso_script.c, which describes it."""

from __future__ import annotations

import struct
import subprocess
from typing import Any

import runtime
from runtime.tensors.dtype import dtype_to_string, string_to_dtype

from .dso_driver import installed_program
from .paths import C_SOURCES


def tensor(array: Any) -> str:
    """The argument for a NumPy array."""
    code, bits, _ = string_to_dtype(str(array.dtype))
    shape = ",".join(map(str, array.shape))
    return f"t:{code}.{bits}:{shape}:{array.tobytes().hex()}"


def run_by_c(*lines: str) -> str:
    """Return the output of the program."""
    text = "".join(f"{line}\n" for line in lines)
    ran = subprocess.run(
        [installed_program(C_SOURCES / "dso_script.c")],
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


class Script:
    """The state of a script."""

    def __init__(self) -> None:
        self.slots: list[Any] = []
        self.printed: list[str] = []

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

    def _apply(self, slot: str, *words: str) -> None:
        self._call_with(self.slots[int(slot)], words)

    def _weight(self, slot: str, name: str) -> None:
        self._show(self.slots[int(slot)].weights[name])

    def _import(self, slot: str, imported: str) -> None:
        self.slots[int(slot)].import_module(self.slots[int(imported)])

    def _drop(self, slot: str) -> None:
        self.slots[int(slot)] = None

    def _call_with(self, function: Any, words: tuple[str, ...]) -> None:
        args = [self._argument(word) for word in words]
        self._try(lambda: self._show(function(*args)))
        for word, arg in zip(words, args, strict=True):
            if word.startswith("t:"):
                self._show(arg)

    def _argument(self, word: str) -> Any:
        kind, _, text = word.partition(":")
        if kind == "t":
            dtype, shape, data = text.split(":")
            code, bits = map(int, dtype.split("."))
            extents = tuple(map(int, shape.split(","))) if shape else ()
            made = runtime.empty(extents, dtype_to_string((code, bits, 1)))
            made.copy_from(runtime.Tensor(bytes.fromhex(data), extents, (code, bits, 1)))
            return made
        if kind == "d":
            device_type, device_id = map(int, text.split(":"))
            return runtime.Device(device_type, device_id)
        makers = {"n": lambda _: None, "i": int, "f": float, "s": str, "b": lambda t: t == "1"}
        return makers[kind](text) if kind in makers else self.slots[int(text)]

    def _show(self, value: Any) -> None:
        self.printed.append(self._text(value))

    def _text(self, value: Any) -> str:
        if isinstance(value, runtime.Tensor):
            code, bits, lanes = value.dtype_code
            shape = ",".join(map(str, value.shape))
            return f"tensor {code}.{bits}.{lanes} ({shape}) {bytes(value.raw).hex()}"
        if isinstance(value, runtime.Module) or callable(value):
            self.slots.append(value)
            kind = value.type_key if isinstance(value, runtime.Module) else "function"
            return f"slot {len(self.slots) - 1} {kind}"
        if isinstance(value, float):
            return f"float {struct.unpack('<Q', struct.pack('<d', value))[0]:016x}"
        for kind, name in ((type(None), "none"), (bool, "bool"), (int, "int"), (str, "text")):
            if isinstance(value, kind):
                return (
                    name if value is None else f"{name} {int(value) if name == 'bool' else value}"
                )
        return "other"

"""Use Python's runtime, libdso in a C++ library and tvm_ffi in one process; prints what they say.

three_runtimes.py ORDER PLUGIN FOLDER: ORDER is the order of imports, "runtime,libdso,tvm_ffi". All
load FOLDER/same.so, and each its own copy, FOLDER/<name>.so. They are released in another order.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path
from typing import Any

NUMBERS = {"runtime": 1, "libdso": 2, "tvm_ffi": 3}


class Runtime:
    """Python's runtime."""

    def __init__(self, _plugin: str) -> None:
        import runtime

        self.load = runtime.load
        runtime.register_func("test.who")(lambda *_: 1)

    def call(self, module: Any, name: str, *args: Any) -> Any:
        """Call; an error becomes its text."""
        try:
            return module[name](*args)
        except TypeError as error:
            return f"TypeError: {error}"

    def release(self, modules: list[Any]) -> None:
        """Drop the last references."""
        modules.clear()


class Ffi(Runtime):
    """The real tvm_ffi."""

    def __init__(self, _plugin: str) -> None:
        import tvm_ffi

        self.load = lambda path: tvm_ffi.load_module(str(path))
        tvm_ffi.register_global_func("test.who", lambda *_: 3)


class Plugin(Runtime):
    """libdso, as a C++ library uses it."""

    def __init__(self, plugin: str) -> None:
        self.plugin = plugin_of(plugin)
        assert self.plugin.plugin_register(b"test.who", 2) == 0

    def load(self, path: Path) -> Any:
        """Load a file."""
        module = self.plugin.plugin_load(str(path).encode())
        assert module, self.plugin.plugin_error()
        return module

    def call(self, module: Any, name: str, *args: Any) -> Any:
        """Call; an error becomes its text."""
        number, text = (0, args[0].encode()) if isinstance(args[0], str) else (args[0], None)
        result = self.plugin.plugin_call(module, name.encode(), number, text)
        return result if result != -1 else self.plugin.plugin_error().decode()

    def release(self, modules: list[Any]) -> None:
        """Release each."""
        for module in modules:
            self.plugin.plugin_release(module)
        modules.clear()


def plugin_of(path: str) -> ctypes.CDLL:
    """Load the C++ library, and declare its functions."""
    plugin = ctypes.CDLL(path)
    plugin.plugin_load.restype = ctypes.c_void_p
    plugin.plugin_load.argtypes = [ctypes.c_char_p]
    plugin.plugin_release.argtypes = [ctypes.c_void_p]
    plugin.plugin_error.restype = ctypes.c_char_p
    plugin.plugin_call.restype = ctypes.c_int64
    plugin.plugin_call.argtypes = [
        *(ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64, ctypes.c_char_p),
    ]
    plugin.plugin_register.argtypes = [ctypes.c_char_p, ctypes.c_int64]
    return plugin


KINDS = {"runtime": Runtime, "libdso": Plugin, "tvm_ffi": Ffi}


def main(order: list[str], plugin: str, folder: Path) -> None:
    """Load all, call all, and release one after the other."""
    used = {name: KINDS[name](plugin) for name in order}
    held = {
        name: [one.load(folder / "same.so"), one.load(folder / f"{name}.so")]
        for name, one in used.items()
    }
    said: dict[str, list[Any]] = {name: [] for name in order}
    for name in (*order, order[1], order[2], order[0]):
        one = used[name]
        if not held[name]:
            continue
        for module in held[name]:
            said[name] += [one.call(module, "add", 40, 2), one.call(module, "add", "x", 2)]
        said[name].append(one.call(held[name][1], "who", 0, 2))
    for name in (order[1], order[2], order[0]):
        used[name].release(held[name])
        for other, modules in held.items():
            said[other] += [used[other].call(module, "add", 40, 2) for module in modules]
    print(json.dumps(said))


if __name__ == "__main__":
    main(sys.argv[1].split(","), sys.argv[2], Path(sys.argv[3]))

"""Load packer's libraries in TVM 0.17 and call them: ``run_legacy.py FOLDER``; prints JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from legacy_tvm import import_tvm

tvm = import_tvm(compiles=False)
from tvm.contrib.graph_executor import GraphModule  # noqa: E402


def raised(function: Callable[..., Any], *args: Any) -> list[str]:
    """Call, and return the error's kind and the last line of its text."""
    try:
        return ["returned", str(function(*args))]
    except Exception as error:  # any error: the test compares it
        return [type(error).__name__, str(error).strip().splitlines()[-1]]


def plain(module: Any) -> dict[str, Any]:
    """Numbers, text, arrays, functions, errors, the entry."""
    x, y = (tvm.nd.array(a) for a in (np.arange(4, dtype="float32"), np.zeros(4, "float32")))
    seen: list[Any] = []

    def noted(number: float, name: str) -> float:
        seen.append([number, name])
        return number * 2

    def failing(number: float, name: str) -> float:
        raise KeyError("mine")

    module["add_one"](x, y, 4)
    return {
        "numbers": [module["add"](40, 2), module["twice"](4), module["half"](3), module["odd"](3)],
        "text": [str(module["greet"](name)) for name in ("hi", "hello, world", "none")],
        "y": y.numpy().tolist(),
        "each": module["each"](noted, 3),
        "seen": seen,
        "failing": raised(module["each"], failing, 3),
        "nothing": module["checked"](7),
        "checked": raised(module["checked"], 8),
        "dtype": raised(module["add_one"], x, tvm.nd.array(np.zeros(4, "int32")), 4),
        "count": raised(module["add"], 1),
        "entry": module.get_function("__tvm_main__")(3.0),
        "hidden": raised(module.get_function, "shown"),
    }


def constants(module: Any) -> dict[str, Any]:
    """The root hands its arrays to host code below it, once."""
    return {
        "kinds": [module.type_key, module.imported_modules[0].type_key],
        "scaled": [module["scaled"](2.0), module["scaled"](3.0)],
    }


def graph(module: Any) -> list[float]:
    """A model in TVM's graph executor."""
    executor = GraphModule(module["default"](tvm.cpu()))
    executor.set_input("x", np.arange(6, dtype="float32").reshape(2, 3))
    executor.run()
    return executor.get_output(0).numpy().ravel().tolist()


def ahead(module: Any) -> list[Any]:
    """A model that was compiled ahead of time, in TVM's executor for it."""
    executor = module["default"](tvm.cpu())
    x = np.arange(384, dtype="float32").reshape(2, 3, 8, 8) / 384
    executor["set_input"]("x", tvm.nd.array(x))
    executor["set_input"]("index.1", tvm.nd.array(np.arange(5)))
    executor["run"]()
    return [executor["get_output"](i).numpy().tolist() for i in range(3)]


def main(folder: Path) -> None:
    """Load them all; nothing of the project can be imported here."""
    modules = {path.stem: tvm.runtime.load_module(str(path)) for path in folder.glob("*.so")}
    made = {
        "plain": plain(modules["plain"]),
        "constants": constants(modules["constants"]),
        "graph": graph(modules["graph"]),
        "ahead": ahead(modules["ahead"]),
    }
    assert not {"packer", "runtime"} & set(sys.modules)
    print(json.dumps(made))


main(Path(sys.argv[1]))

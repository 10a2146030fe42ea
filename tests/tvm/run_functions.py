"""Make the calls of function_calls.py with our runtime alone: ``run_functions.py FILE``."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

for blocked in ("tvm", "tvm_ffi"):
    sys.modules[blocked] = None  # type: ignore[assignment]


def read_value(value: Any) -> Any:
    """As NumPy and Python have it."""
    if isinstance(value, tuple):
        return tuple(map(read_value, value))
    return value.numpy() if hasattr(value, "numpy") else value


def pass_value(value: Any) -> Any:
    """A copy of an array, since calls write to their outputs."""
    return value.copy() if hasattr(value, "copy") else value


def main(file: Path) -> None:
    """Make them, and store the outcomes."""
    from function_calls import SEED, outcomes

    import runtime

    runtime.get_global_func("tvm.contrib.random.seed")(SEED)
    made = outcomes(runtime.get_global_func, pass_value, read_value)
    file.write_bytes(pickle.dumps(made))


main(Path(sys.argv[1]))

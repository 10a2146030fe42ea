"""Make the calls of function_calls.py with real TVM: ``make_functions.py FILE``."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from function_calls import outcomes


def pass_value(value: Any) -> Any:
    """Convert a value to the form of TVM."""
    if isinstance(value, tuple):
        is_shape = all(isinstance(item, int) for item in value)
        return tvm_ffi.Shape(value) if is_shape else tvm_ffi.Array(value)
    return tvm.runtime.tensor(value) if isinstance(value, np.ndarray) else value


def read_value(value: Any) -> Any:
    """As NumPy and Python have it."""
    if isinstance(value, tvm_ffi.Array):
        return tuple(map(read_value, value))
    return value.numpy() if hasattr(value, "numpy") else value


Path(sys.argv[1]).write_bytes(pickle.dumps(outcomes(tvm.get_global_func, pass_value, read_value)))

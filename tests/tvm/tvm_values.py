"""Arguments and results of models in real TVM."""

from __future__ import annotations

from typing import Any

import numpy as np
import tvm
import tvm_ffi
from model_calls import Shape


def pass_value(value: Any) -> Any:
    """Convert a value to the form of TVM."""
    if isinstance(value, Shape):
        return tvm_ffi.Shape(value)
    if isinstance(value, tuple):
        return tuple(map(pass_value, value))
    return tvm.runtime.tensor(value) if isinstance(value, np.ndarray) else value


def read_value(value: Any) -> Any:
    """As NumPy and Python have it."""
    if isinstance(value, tvm_ffi.Shape):
        return tuple(value)
    if isinstance(value, tvm_ffi.Array):
        return tuple(map(read_value, value))
    return value.numpy() if hasattr(value, "numpy") else value

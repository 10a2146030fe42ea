"""Arrays of any layout."""

from __future__ import annotations

from typing import Any

import numpy as np


def strided(form: str) -> np.ndarray[Any, Any]:
    """A float32 array of shape (3, 4) with strides."""
    whole = np.arange(120, dtype="f4")
    return {
        "compact": lambda: whole[:12].reshape(3, 4),
        "transposed": lambda: whole[:12].reshape(4, 3).T,
        "steps": lambda: whole.reshape(6, 20)[::2, 3:19:4],
        "reversed": lambda: whole[:12].reshape(3, 4)[::-1, ::-1],
        "broadcast": lambda: np.broadcast_to(whole[:4], (3, 4)),
        "rows": lambda: whole.reshape(12, 10)[1:12:4, 2:6],
    }[form]()


FORMS = ["compact", "transposed", "steps", "reversed", "broadcast", "rows"]

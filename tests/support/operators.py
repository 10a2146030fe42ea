"""The operators of packer.operators, compiled for one level, and called with NumPy's arrays."""

from __future__ import annotations

import ctypes
import platform
import subprocess
from ctypes import POINTER, Structure, c_float, c_int, c_int64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import packer.operators

from . import needs

ACTIVATIONS = ("none", "relu", "clip", "gelu", "gelu_tanh")
LOW, HIGH = -0.25, 0.75  # of "clip"
Floats = POINTER(c_float)
# enum dso_op_type; NumPy has no bfloat16
HALVES = {np.dtype(np.uint16): 4, np.dtype(np.float16): 5}
Pair = c_int64 * 2

# The option of each level, and a flag of /proc/cpuinfo that machines of the level have.
LEVELS = {
    "x86_64": {
        "-march=x86-64": "sse2",
        "-march=x86-64-v2": "sse4_2",
        "-march=x86-64-v3": "avx2",
        "-march=x86-64-v4": "avx512vl",
    },
    "aarch64": {"-march=armv8-a": "asimd", "-march=armv8.2-a": "asimdhp"},
}


def levels() -> list[str]:
    """Return the options of this machine's levels; the compiler's own choice elsewhere."""
    return [*LEVELS.get(platform.machine(), {"": ""})]


def require_level(option: str) -> None:
    """Skip a test of a level that this machine does not have."""
    flag = LEVELS.get(platform.machine(), {"": ""})[option]
    has = not flag or flag in Path("/proc/cpuinfo").read_text().split()
    needs.hardware(has, option.removeprefix("-march="))


class After(Structure):
    """struct dso_op_after."""

    _fields_ = [
        ("bias", Floats),
        ("residual", Floats),
        ("activation", c_int),
        ("low", c_float),
        ("high", c_float),
    ]


class Matmul(Structure):
    """struct dso_op_matmul."""

    _fields_ = [
        ("batch", Pair),
        *((name, c_int64) for name in ("rows", "inner", "columns")),
        *(("a", Floats), ("a_batch", Pair), ("a_row", c_int64), ("a_column", c_int64)),
        *(("b", Floats), ("b_batch", Pair), ("b_row", c_int64), ("b_column", c_int64)),
        *(("b_is_packed", c_int), ("b_type", c_int)),
        *(("out", Floats), ("out_batch", Pair), ("out_row", c_int64)),
        ("after", After),
        ("workspace", Floats),
    ]


def newest_level() -> list[str]:
    """Return the options of the last level that this machine has."""
    flags = Path("/proc/cpuinfo").read_text().split()
    of_machine = LEVELS.get(platform.machine(), {})
    return [option for option, flag in of_machine.items() if flag in flags][-1:]


def build(folder: Path, *options: str) -> Path:
    """Compile all operators, and functions that make the hidden ones visible, into one library."""
    from .lowp import VISIBLE as NARROW

    (folder / "visible.c").write_text(VISIBLE + NARROW)
    command = [
        "cc",
        "-O2",
        "-fPIC",
        "-shared",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wl,-z,defs",
        *options,
    ]
    command += [f"-I{packer.operators.INCLUDE}", "-o", str(folder / "operators.so")]
    files = [folder / "visible.c", *packer.operators.sources()]
    subprocess.run([*command, *map(str, files)], check=True)
    return folder / "operators.so"


_NAMES = ("attention", "conv2d", "matmul", "matmul_bits", "recurrent")
VISIBLE = '#include "dso_operators.h"\n' + "".join(
    f"int run_{name}(const struct dso_op_{name} *p) {{ return dso_op_{name}(p); }}\n"
    f"int64_t room_{name}(const struct dso_op_{name} *p) {{"
    f" return dso_op_{name}_workspace(p); }}\n"
    for name in _NAMES
)
VISIBLE += """
int run_double_matmul(const struct dso_op_double_matmul *p) { return dso_op_double_matmul(p); }
void column_matmul_bits(const struct dso_op_matmul_bits *p, int64_t column, float *out) {
  dso_op_matmul_bits_column(p, column, out);
}
int run_normalize(const struct dso_op_normalize *p) { return dso_op_normalize(p); }
int run_resize(const struct dso_op_resize *p) { return dso_op_resize(p); }
int64_t room_resize(const struct dso_op_resize *p) { return dso_op_resize_workspace(p); }
int run_pooling(const struct dso_op_pooling *p) { return dso_op_pooling(p); }
int64_t size_matmul(const struct dso_op_matmul *p) { return dso_op_matmul_packed_size(p); }
void pack_matmul(const struct dso_op_matmul *p, const float *b, int64_t row, int64_t column,
                 float *packed) { dso_op_matmul_pack(p, b, row, column, packed); }
int64_t size_conv2d(const struct dso_op_conv2d *p) { return dso_op_conv2d_packed_size(p); }
void pack_conv2d(const struct dso_op_conv2d *p, const float *weight, float *packed) {
  dso_op_conv2d_pack(p, weight, packed);
}
int reorder(int64_t batch, const struct dso_op_image *in, const struct dso_op_image *out) {
  return dso_op_reorder(batch, in, out);
}
"""


def pointer(array: np.ndarray | None) -> Any:
    """Return the address of an array's first float; None is NULL."""
    if array is None:
        return None
    assert array.dtype in (np.float32, *HALVES)
    return array.ctypes.data_as(Floats)


def steps(array: np.ndarray) -> list[int]:
    """Return the distances of an array in elements."""
    return [stride // array.itemsize for stride in array.strides]


@dataclass
class Epilogue:
    """Bias, residual and activation, for a call and for its expected result."""

    bias: np.ndarray | None = None
    residual: np.ndarray | None = None
    activation: str = "none"

    def struct(self) -> After:
        """Return struct dso_op_after."""
        number = ACTIVATIONS.index(self.activation)
        return After(pointer(self.bias), pointer(self.residual), number, LOW, HIGH)

    def expected(self, sums: np.ndarray, channel_axis: int) -> np.ndarray:
        """Return what follows from sums in double precision."""
        if self.bias is not None:
            shape = [1] * sums.ndim
            shape[channel_axis] = -1
            sums = sums + self.bias.astype(np.float64).reshape(shape)
        if self.residual is not None:
            sums = sums + self.residual
        return activated(sums, self.activation)


def activated(x: np.ndarray, activation: str) -> np.ndarray:
    """Apply an activation in double precision."""
    from math import erf, pi, sqrt

    if activation == "relu":
        return np.maximum(x, 0)
    if activation == "clip":
        return np.clip(x, np.float32(LOW), np.float32(HIGH))
    if activation == "gelu":
        return x / 2 * (1 + np.vectorize(erf, otypes=[np.float64])(x / sqrt(2)))
    if activation == "gelu_tanh":
        return x / 2 * (1 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))
    return x


def run(library: ctypes.CDLL, name: str, struct: Structure) -> None:
    """Call an operator, with the workspace that it asks for filled with NaN."""
    if hasattr(struct, "workspace"):
        room = getattr(library, f"room_{name}")
        room.restype = c_int64
        workspace = np.full(room(ctypes.byref(struct)), np.nan, np.float32)
        struct.workspace = pointer(workspace)
    assert getattr(library, f"run_{name}")(ctypes.byref(struct)) == 0


def matmul(
    library: ctypes.CDLL,
    a: np.ndarray,
    b: np.ndarray,
    after: Epilogue | None = None,
    *,
    packed: np.ndarray | None = None,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Multiply arrays of 4 dimensions, the first two of which are a batch; strides are kept."""
    batch = np.broadcast_shapes(a.shape[:2], b.shape[:2])
    a, wide = (np.broadcast_to(x, (*batch, *x.shape[2:])) for x in (a, b))
    if out is None:
        out = np.full((*batch, a.shape[2], b.shape[3]), np.nan, np.float32)
    right = wide if packed is None else np.broadcast_to(packed, (*batch, *packed.shape[2:]))
    struct = Matmul(
        batch=Pair(*batch),
        rows=a.shape[2],
        inner=a.shape[3],
        columns=b.shape[3],
        a=pointer(a),
        a_batch=Pair(*steps(a)[:2]),
        a_row=steps(a)[2],
        a_column=steps(a)[3],
        b=pointer(right),
        b_batch=Pair(*steps(right)[:2]),
        b_row=steps(wide)[2],
        b_column=steps(wide)[3],
        b_is_packed=packed is not None,
        b_type=HALVES.get(right.dtype, 0),
        out=pointer(out),
        out_batch=Pair(*steps(out)[:2]),
        out_row=steps(out)[2],
        after=(after or Epilogue()).struct(),
    )
    run(library, "matmul", struct)
    return out


def assert_close(found: np.ndarray, expected: np.ndarray, tolerance: float = 1e-5) -> None:
    """Compare by the greatest expected value, as the accuracy of a model is compared."""
    assert found.shape == expected.shape
    limit = tolerance * max(float(np.abs(expected).max(initial=0)), 1e-30)
    assert float(np.abs(found - expected).max(initial=0)) <= limit

"""Products of 8-bit integers and bfloat16, called with NumPy's arrays."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, c_float, c_int, c_int64, c_void_p
from dataclasses import dataclass
from typing import Any

import numpy as np

from packer.operators import pack_lowp_conv2d

from .images import Window
from .operators import After, Epilogue, Pair

TYPES = {"float32": 0, "int32": 1, "int8": 2, "uint8": 3, "uint16": 4}  # uint16 holds bfloat16
NAMES = ("lowp_conv2d", "lowp_matmul")
VISIBLE = '#include "dso_operators.h"\n' + "".join(
    f"int run_{name}(const struct dso_op_{name} *p) {{ return dso_op_{name}(p); }}\n"
    f"int64_t room_{name}(const struct dso_op_{name} *p) {{"
    f" return dso_op_{name}_workspace(p); }}\n"
    f"int64_t size_{name}(const struct dso_op_{name} *p) {{"
    f" return dso_op_{name}_packed_size(p); }}\n"
    for name in NAMES
)
VISIBLE += """
void pack_lowp_matmul(const struct dso_op_lowp_matmul *p, const void *b, int64_t row,
                        int64_t column, void *packed) {
  dso_op_lowp_matmul_pack(p, b, row, column, packed);
}
void pack_lowp_conv2d(const struct dso_op_lowp_conv2d *p, const void *weight, void *packed) {
  dso_op_lowp_conv2d_pack(p, weight, packed);
}
"""


class Rescale(Structure):
    """struct dso_op_rescale."""

    _fields_ = [
        ("bias", c_void_p),
        ("scale", POINTER(c_float)),
        ("scale_step", c_int64),
        ("zero", c_void_p),
        ("after", After),
    ]


class LowpMatmul(Structure):
    """struct dso_op_lowp_matmul."""

    _fields_ = [
        ("batch", Pair),
        *((name, c_int64) for name in ("rows", "inner", "columns")),
        *((name, c_int) for name in ("a_type", "b_type", "out_type")),
        *(("a", c_void_p), ("a_batch", Pair), ("a_row", c_int64), ("a_column", c_int64)),
        *(("b", c_void_p), ("b_batch", Pair), ("b_row", c_int64), ("b_column", c_int64)),
        ("b_is_packed", c_int),
        *(("out", c_void_p), ("out_batch", Pair), ("out_row", c_int64)),
        *(("a_zero", c_void_p), ("b_zero", c_void_p), ("b_zero_step", c_int64)),
        ("after", Rescale),
        ("workspace", c_void_p),
    ]


@dataclass
class Result:
    """The type of a result, and what is done to the sums."""

    dtype: str = "int32"
    bias: np.ndarray | None = None
    scale: np.ndarray | None = None
    zero: int = 0
    after: Epilogue | None = None

    def struct(self, keep: list[Any]) -> Rescale:
        """Return struct dso_op_rescale; `keep` gets the arrays that it refers to."""
        is_byte = self.dtype in ("int8", "uint8")
        zero = np.array(self.zero, self.dtype) if is_byte else None
        keep += [zero, self]
        return Rescale(
            address(self.bias),
            None if self.scale is None else self.scale.ctypes.data_as(POINTER(c_float)),
            int(self.scale is not None and self.scale.size > 1),
            address(zero),
            (self.after or Epilogue()).struct(),
        )

    def expected(self, sums: np.ndarray) -> np.ndarray:
        """Return the result for exact sums of (..., columns)."""
        if self.bias is not None:
            sums = sums + self.bias.astype(np.int64)
        if self.dtype == "int32":
            return sums.astype(np.int32)
        values = sums.astype(np.float32)
        if self.scale is not None:
            values = values * self.scale
        if self.after is not None:
            values = self.after.expected(values, values.ndim - 1)
        if self.dtype == "float32":
            return values
        limits = np.iinfo(self.dtype)
        rounded = np.rint(values).astype(np.int64) + self.zero
        return np.clip(rounded, limits.min, limits.max).astype(self.dtype)


def address(array: np.ndarray | None) -> int | None:
    """Return where an array's elements begin; None is NULL."""
    return None if array is None else array.ctypes.data


def distances(array: np.ndarray) -> list[int]:
    """Return the distances of an array in elements."""
    return [stride // array.itemsize for stride in array.strides]


def aligned(nbytes: int) -> np.ndarray:
    """Return bytes of 255 at a multiple of 64, of exactly this size."""
    room = np.full(nbytes + 64, 255, np.uint8)
    begin = -room.ctypes.data % 64
    return room[begin : begin + nbytes]


def run(library: ctypes.CDLL, name: str, struct: Structure) -> None:
    """Call an operator with the workspace that it asks for."""
    room = getattr(library, f"room_{name}")
    room.restype = c_int64
    workspace = aligned(room(ctypes.byref(struct)))
    struct.workspace = workspace.ctypes.data
    assert getattr(library, f"run_{name}")(ctypes.byref(struct)) == 0


def lowp_matmul(
    library: ctypes.CDLL,
    a: np.ndarray,
    b: np.ndarray,
    result: Result,
    *,
    zeros: tuple[int, Any] = (0, 0),
    packed: np.ndarray | None = None,
) -> np.ndarray:
    """Multiply arrays of 4 dimensions, the first two of which are a batch; strides are kept.

    `zeros` belong to a and b; of b a number or one for each column.
    """
    batch = np.broadcast_shapes(a.shape[:2], b.shape[:2])
    a, wide = (np.broadcast_to(x, (*batch, *x.shape[2:])) for x in (a, b))
    right = wide if packed is None else np.broadcast_to(packed, (*batch, *packed.shape[2:]))
    out = np.zeros((*batch, a.shape[2], b.shape[3]), result.dtype)
    is_byte = a.dtype.itemsize == 1
    a_zero = np.array(zeros[0], a.dtype) if is_byte else None
    b_zero = np.array(zeros[1], b.dtype) if is_byte else None
    keep: list[Any] = []
    struct = LowpMatmul(
        batch=Pair(*batch),
        rows=a.shape[2],
        inner=a.shape[3],
        columns=b.shape[3],
        a_type=TYPES[a.dtype.name],
        b_type=TYPES[b.dtype.name],
        out_type=TYPES[result.dtype],
        a=address(a),
        a_batch=Pair(*distances(a)[:2]),
        a_row=distances(a)[2],
        a_column=distances(a)[3],
        b=address(right),
        b_batch=Pair(*distances(right)[:2]),
        b_row=distances(wide)[2],
        b_column=distances(wide)[3],
        b_is_packed=packed is not None,
        out=address(out),
        out_batch=Pair(*distances(out)[:2]),
        out_row=distances(out)[2],
        a_zero=address(a_zero),
        b_zero=address(b_zero),
        b_zero_step=int(b_zero is not None and b_zero.size > 1),
        after=result.struct(keep),
    )
    run(library, "lowp_matmul", struct)
    return out


class Image(Structure):
    """struct dso_op_lowp_image."""

    _fields_ = [
        ("data", c_void_p),
        *((name, c_int64) for name in ("channels", "height", "width", "block")),
    ]


class LowpConv(Structure):
    """struct dso_op_lowp_conv2d."""

    _fields_ = [
        ("batch", c_int64),
        *(("input", Image), ("out", Image)),
        *((name, c_int) for name in ("in_type", "weight_type", "out_type")),
        ("groups", c_int64),
        *((name, Pair) for name in ("kernel", "stride", "dilation", "pad")),
        ("weight", c_void_p),
        *(("a_zero", c_void_p), ("b_zero", c_void_p), ("b_zero_step", c_int64)),
        ("after", Rescale),
        ("workspace", c_void_p),
    ]


def blocked(images: np.ndarray) -> np.ndarray:
    """Return (batch, channels, height, width) in blocks of 32 channels, the missing ones 0."""
    batch, channels, height, width = images.shape
    whole = np.zeros((batch, -(-channels // 32) * 32, height, width), images.dtype)
    whole[:, :channels] = images
    return np.ascontiguousarray(
        whole.reshape(batch, -1, 32, height, width).transpose(0, 1, 3, 4, 2)
    )


def planar(images: np.ndarray, channels: int) -> np.ndarray:
    """Return images in blocks as (batch, channels, height, width)."""
    batch, blocks, height, width, block = images.shape
    moved = images.transpose(0, 1, 4, 2, 3).reshape(batch, blocks * block, height, width)
    assert not moved[:, channels:].any()
    return moved[:, :channels]


def lowp_conv2d(
    library: ctypes.CDLL,
    window: Window,
    x: np.ndarray,
    weight: np.ndarray,
    result: Result,
    *,
    zeros: tuple[int, Any] = (0, 0),
    blocks: tuple[int, int] = (1, 1),
) -> np.ndarray:
    """Convolve planar images; `blocks` are those in which the input and the output are stored."""
    height, width = window.extents(x.shape[2], x.shape[3])
    outputs = weight.shape[0]
    out = np.full((x.shape[0], outputs, height, width), 99, result.dtype)
    source = x if blocks[0] == 1 else blocked(x)
    out = out if blocks[1] == 1 else blocked(out)
    packed = pack_lowp_conv2d(weight, groups=window.groups)
    a_zero, b_zero = np.array(zeros[0], x.dtype), np.array(zeros[1], weight.dtype)
    keep: list[Any] = []
    struct = LowpConv(
        batch=x.shape[0],
        input=Image(address(source), x.shape[1], x.shape[2], x.shape[3], blocks[0]),
        out=Image(address(out), outputs, height, width, blocks[1]),
        in_type=TYPES[x.dtype.name],
        weight_type=TYPES[weight.dtype.name],
        out_type=TYPES[result.dtype],
        groups=window.groups,
        kernel=Pair(*weight.shape[2:]),
        stride=Pair(*window.stride),
        dilation=Pair(*window.dilation),
        pad=Pair(*window.pads[:2]),
        weight=address(packed),
        a_zero=address(a_zero),
        b_zero=address(b_zero),
        b_zero_step=int(b_zero.size > 1),
        after=result.struct(keep),
    )
    expected = np.empty_like(packed)
    library.size_lowp_conv2d.restype = c_int64
    assert library.size_lowp_conv2d(ctypes.byref(struct)) == packed.nbytes
    library.pack_lowp_conv2d(
        ctypes.byref(struct), c_void_p(address(weight)), c_void_p(address(expected))
    )
    assert packed.tobytes() == expected.tobytes()
    run(library, "lowp_conv2d", struct)
    return out if blocks[1] == 1 else planar(out, outputs)

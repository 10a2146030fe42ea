"""Images in the layouts of packer.operators, convolutions of them, and NumPy's results."""

from __future__ import annotations

import ctypes
from ctypes import Structure, c_int, c_int64
from dataclasses import dataclass

import numpy as np

from packer.operators import pack_conv2d

from .operators import HALVES, After, Epilogue, Floats, Pair, pointer, run


class Image(Structure):
    """struct dso_op_image."""

    _fields_ = [
        ("data", Floats),
        *((name, c_int64) for name in ("channels", "height", "width", "block", "padding")),
        *((name, c_int64) for name in ("batch", "plane", "row")),
    ]


class Depth(Structure):
    """struct dso_op_depth."""

    _fields_ = [(name, c_int64) for name in ("in_", "out", "kernel", "stride", "dilation", "pad")]


class Conv2d(Structure):
    """struct dso_op_conv2d."""

    _fields_ = [
        ("batch", c_int64),
        *(("in_", Image), ("out", Image)),
        ("groups", c_int64),
        *((name, Pair) for name in ("kernel", "stride", "dilation", "pad")),
        *(("depth", Depth), ("weight", Floats), ("weight_type", c_int)),
        *(("after", After), ("workspace", Floats)),
    ]


@dataclass
class Memory:
    """Images in memory, (batch, planes, height, width, block) with the padding."""

    array: np.ndarray
    channels: int
    padding: int

    @classmethod
    def of(cls, images: np.ndarray, block: int, padding: int) -> Memory:
        """Store (batch, channels, height, width) in a layout."""
        batch, channels, height, width = images.shape
        planes = -(-channels // block)
        whole = np.zeros((batch, planes * block, height, width), np.float32)
        whole[:, :channels] = images
        blocked = whole.reshape(batch, planes, block, height, width).transpose(0, 1, 3, 4, 2)
        pad = [(0, 0), (0, 0), (padding, padding), (padding, padding), (0, 0)]
        return cls(np.ascontiguousarray(np.pad(blocked, pad)), channels, padding)

    def struct(self) -> Image:
        """Return struct dso_op_image."""
        batch, plane, row, _, _ = (stride // 4 for stride in self.array.strides)
        _, _, height, width, block = self.array.shape
        inside = self.array[0, 0, self.padding :, self.padding :]
        padding = self.padding
        extents = (self.channels, height - 2 * padding, width - 2 * padding)
        return Image(pointer(inside), *extents, block, padding, batch, plane, row)

    def images(self) -> np.ndarray:
        """Return (batch, channels, height, width), after a check of all that must be zero."""
        batch, planes, height, width, block = self.array.shape
        f = self.padding
        inside = self.array[:, :, f : height - f, f : width - f]
        whole = inside.transpose(0, 1, 4, 2, 3).reshape(batch, planes * block, *inside.shape[2:4])
        padded = self.array.copy()
        padded[:, :, f : height - f, f : width - f] = 0
        assert (padded == 0).all(), "the padding"
        assert (whole[:, self.channels :] == 0).all(), "channels that are missing"
        return whole[:, : self.channels]


@dataclass(frozen=True)
class Window:
    """The attributes of a convolution."""

    kernel: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (1, 1, 1, 1)  # top, left, bottom, right
    groups: int = 1

    def extents(self, height: int, width: int) -> tuple[int, int]:
        """Return the height and the width of the output."""
        sums = (self.pads[0] + self.pads[2], self.pads[1] + self.pads[3])
        return tuple(
            (extent + pad - (k - 1) * d - 1) // s + 1
            for extent, pad, k, d, s in zip(
                (height, width), sums, self.kernel, self.dilation, self.stride, strict=True
            )
        )

    def convolve(self, images: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Convolve in double precision."""
        top, left, bottom, right = self.pads
        padded = np.pad(images.astype(np.float64), [(0, 0), (0, 0), (top, bottom), (left, right)])
        height, width = self.extents(*images.shape[2:])
        batch, outputs, groups = len(images), len(weight), self.groups
        split = weight.astype(np.float64).reshape(groups, outputs // groups, *weight.shape[1:])
        sums = np.zeros((batch, groups, outputs // groups, height, width))
        for y, x in np.ndindex(*self.kernel):
            rows = y * self.dilation[0] + np.arange(height) * self.stride[0]
            columns = x * self.dilation[1] + np.arange(width) * self.stride[1]
            taken = padded[:, :, rows][..., columns].reshape(batch, groups, -1, height, width)
            sums += np.einsum("goc,bgchw->bgohw", split[..., y, x], taken, optimize=True)
        return sums.reshape(batch, outputs, height, width)


def conv2d_struct(
    window: Window, source: Memory, out: Memory, depth: Depth | None = None
) -> Conv2d:
    """Return struct dso_op_conv2d without weights."""
    return Conv2d(
        batch=len(out.array),
        in_=source.struct(),
        out=out.struct(),
        groups=window.groups,
        kernel=Pair(*window.kernel),
        stride=Pair(*window.stride),
        dilation=Pair(*window.dilation),
        pad=Pair(*window.pads[:2]),
        depth=depth or Depth(),
    )


def conv2d(
    library: ctypes.CDLL,
    window: Window,
    source: Memory,
    weight: np.ndarray,
    after: Epilogue | None = None,
    *,
    block: int = 16,
    padding: int = 0,
    depth: Depth | None = None,
) -> np.ndarray:
    """Convolve images into a layout; the residual of `after` is stored in the same one."""
    after = after or Epilogue()
    batch = len(source.array) // depth.in_ * depth.out if depth else len(source.array)
    _, _, height, width, in_block = source.array.shape
    extents = window.extents(height - 2 * source.padding, width - 2 * source.padding)
    empty = np.zeros((batch, len(weight), *extents), np.float32)
    out = Memory.of(empty, block, padding)
    out.array[:] = np.nan
    struct = conv2d_struct(window, source, out, depth)
    struct.after = after.struct()
    if after.residual is not None:
        residual = Memory.of(after.residual, block, padding)
        struct.after.residual = residual.struct().data
    packed = pack_conv2d(weight, groups=window.groups, block=in_block)
    struct.weight, struct.weight_type = pointer(packed), HALVES.get(packed.dtype, 0)
    run(library, "conv2d", struct)
    return out.images()


def reorder(library: ctypes.CDLL, source: Memory, block: int, padding: int) -> np.ndarray:
    """Copy images into a layout."""
    batch, _, height, width, _ = source.array.shape
    extents = [extent - 2 * source.padding for extent in (height, width)]
    out = Memory.of(np.zeros((batch, source.channels, *extents), np.float32), block, padding)
    out.array[:] = np.nan
    structs = source.struct(), out.struct()
    assert library.reorder(c_int64(batch), *map(ctypes.byref, structs)) == 0
    return out.images()

"""dso_op_conv2d beside NumPy in double precision, at every level of this machine."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from packer.operators import pack_conv2d

from ..support.images import Depth, Memory, Window, conv2d, conv2d_struct
from ..support.operators import ACTIVATIONS, Epilogue, assert_close, pointer

ONE = Window(kernel=(1, 1), pads=(0, 0, 0, 0))

# (batch, channels, height, width), outputs, window
CASES = {
    "3x3": ((1, 32, 7, 7), 64, Window()),
    "3x3 of odd extents": ((2, 19, 9, 13), 21, Window()),
    "3x3 of stride 2": ((1, 32, 14, 14), 32, Window(stride=(2, 2))),
    "3x3 of stride 2 for an odd image": ((1, 18, 15, 29), 40, Window(stride=(2, 2))),
    "3x3 of stride 3": ((1, 17, 14, 22), 8, Window(stride=(3, 3))),
    "different strides": ((1, 20, 9, 23), 33, Window(stride=(2, 1), pads=(0, 1, 2, 0))),
    "first layer": ((2, 3, 24, 30), 32, Window((7, 7), (2, 2), pads=(3, 3, 3, 3))),
    "first layer of stride 1": ((1, 3, 17, 33), 24, Window()),
    "patches": ((1, 3, 32, 32), 40, Window((8, 8), (8, 8), pads=(0, 0, 0, 0))),
    "one channel": ((1, 1, 10, 40), 5, Window((5, 3), pads=(2, 1, 2, 1))),
    "1x1": ((1, 64, 7, 7), 96, ONE),
    "1x1 of odd extents": ((3, 37, 5, 11), 50, ONE),
    "1x1 of stride 2": ((1, 32, 14, 14), 64, Window((1, 1), (2, 2), pads=(0, 0, 0, 0))),
    "1x1 with a pad": ((1, 16, 4, 4), 16, Window((1, 1))),
    "dilated": ((1, 16, 20, 21), 32, Window(dilation=(2, 3), pads=(2, 3, 2, 3))),
    "wide": ((1, 16, 1, 300), 16, Window((1, 9), pads=(0, 4, 0, 4))),
    "narrow": ((1, 16, 50, 1), 16, Window((3, 1), pads=(1, 0, 1, 0))),
    "one pixel": ((1, 40, 1, 1), 33, Window()),
    "pads at one side": ((1, 16, 8, 8), 32, Window(pads=(2, 0, 0, 3))),
    "window as large as the image": ((1, 35, 6, 6), 32, Window((6, 6), pads=(0, 0, 0, 0))),
    "many inputs": ((1, 300, 6, 20), 32, Window()),
    "2 groups": ((1, 64, 8, 8), 64, Window(groups=2)),
    "groups of odd sizes": ((1, 30, 7, 9), 50, Window(groups=5)),
    "groups of 4": ((2, 128, 7, 7), 128, Window(groups=32)),
    "groups of one channel": ((1, 20, 9, 9), 60, Window(groups=20)),
    "groups across panels": ((1, 96, 6, 6), 144, Window(groups=3)),
    "depthwise": ((1, 32, 14, 14), 32, Window(groups=32)),
    "depthwise of odd extents": ((2, 27, 9, 15), 27, Window(groups=27)),
    "depthwise of stride 2": ((1, 48, 15, 15), 48, Window(stride=(2, 2), groups=48)),
    "depthwise 5x5 of stride 3": (
        (1, 16, 20, 20), 16, Window((5, 5), (3, 3), pads=(2, 2, 2, 2), groups=16),
    ),
    "depthwise dilated": (
        (1, 16, 12, 12), 16, Window(dilation=(2, 2), pads=(2, 2, 2, 2), groups=16),
    ),
}  # fmt: skip
LAYOUTS = {"blocks": (16, 0), "padded blocks": (16, 2), "planes": (1, 0), "padded planes": (1, 1)}


def arrays(case: str) -> tuple[np.ndarray, np.ndarray]:
    """Random images and weights of a case."""
    shape, outputs, window = CASES[case]
    random = np.random.default_rng(len(case))
    of_weight = (outputs, shape[1] // window.groups, *window.kernel)
    images, weight = (random.normal(size=s).astype(np.float32) for s in (shape, of_weight))
    return images, weight


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", CASES)
def test_convolution_is_numpys(library, case, layout) -> None:
    """From each layout to itself."""
    images, weight = arrays(case)
    window = CASES[case][2]
    block, padding = LAYOUTS[layout]
    found = conv2d(
        library, window, Memory.of(images, block, padding), weight, block=block, padding=padding
    )
    assert_close(found, window.convolve(images, weight))


@pytest.mark.parametrize("case", ["3x3 of odd extents", "1x1", "first layer", "depthwise"])
@pytest.mark.parametrize("of_in", LAYOUTS)
@pytest.mark.parametrize("of_out", LAYOUTS)
def test_layouts_of_input_and_output_may_differ(library, case, of_in, of_out) -> None:
    """A network changes the layout where it needs to."""
    images, weight = arrays(case)
    window = CASES[case][2]
    block, padding = LAYOUTS[of_out]
    source = Memory.of(images, *LAYOUTS[of_in])
    found = conv2d(library, window, source, weight, block=block, padding=padding)
    assert_close(found, window.convolve(images, weight))


@pytest.mark.parametrize("case", ["3x3 of odd extents", "1x1 of odd extents", "depthwise"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_epilogue_follows_the_sum(library, case, activation, layout) -> None:
    """Bias, then the residual in the output's layout, then the activation."""
    images, weight = arrays(case)
    weight *= 0.1
    window = CASES[case][2]
    sums = window.convolve(images, weight)
    random = np.random.default_rng(2)
    bias = random.normal(size=len(weight)).astype(np.float32)
    after = Epilogue(bias, random.normal(size=sums.shape).astype(np.float32), activation)
    block, padding = LAYOUTS[layout]
    source = Memory.of(images, 16, 1)
    found = conv2d(library, window, source, weight, after, block=block, padding=padding)
    assert_close(found, after.expected(sums, channel_axis=1))


# Cases with a window along the depth of volumes: in, out, kernel, stride, dilation, pad
DEPTHS = {
    "3x3": Depth(6, 6, 3, 1, 1, 1),
    "3x3 of odd extents": Depth(5, 3, 3, 2, 1, 1),
    "first layer": Depth(9, 5, 3, 2, 1, 1),
    "1x1 of odd extents": Depth(7, 3, 3, 1, 2, 0),
    "groups of odd sizes": Depth(4, 6, 3, 1, 2, 3),
    "depthwise of odd extents": Depth(3, 3, 3, 1, 1, 1),
    "one pixel": Depth(1, 3, 1, 1, 1, 1),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", DEPTHS)
def test_images_of_volumes_are_read_together(library, case, layout) -> None:
    """Two volumes; images outside of them are zeros, and a window may have no other."""
    (_, *shape), outputs, window = CASES[case]
    depth, (block, padding) = DEPTHS[case], LAYOUTS[layout]
    random = np.random.default_rng(5)
    images = random.normal(size=(2, depth.in_, *shape)).astype(np.float32)
    of_weight = (outputs, shape[0] // window.groups, depth.kernel, *window.kernel)
    weight = random.normal(size=of_weight).astype(np.float32)
    reach = (depth.out - 1) * depth.stride + (depth.kernel - 1) * depth.dilation + 1
    beside = [(0, 0), (depth.pad, max(0, reach - depth.in_ - depth.pad)), *[(0, 0)] * 3]
    padded = np.pad(images, beside)
    expected = 0
    for tap in range(depth.kernel):
        read = tap * depth.dilation + np.arange(depth.out) * depth.stride
        taken = padded[:, read].reshape(-1, *shape)
        expected = expected + window.convolve(taken, weight[:, :, tap])
    source = Memory.of(images.reshape(-1, *shape), block, padding)
    rows = weight.reshape(*weight.shape[:2], -1, window.kernel[1])
    how = {"block": block, "padding": padding, "depth": depth}
    assert_close(conv2d(library, window, source, rows, **how), expected)


@pytest.mark.parametrize("case", ["3x3 of odd extents", "first layer", "groups across panels"])
def test_weights_of_float16_are_widened(library, case) -> None:
    """Weights that are not depthwise; their layout is that of floats."""
    images, weight = arrays(case)
    window, half = CASES[case][2], weight.astype(np.float16)
    found = conv2d(library, window, Memory.of(images, 16, 1), half)
    assert_close(found, window.convolve(images, half.astype(np.float32)))


def test_wide_enough_padding_needs_no_workspace(library) -> None:
    """The image is read in place."""
    images, _ = arrays("3x3")
    out = Memory.of(np.zeros((1, 64, 7, 7), np.float32), 16, 1)
    library.room_conv2d.restype = ctypes.c_int64
    for padding, is_copied in ((0, True), (1, False), (3, False)):
        struct = conv2d_struct(Window(), Memory.of(images, 16, padding), out)
        assert (library.room_conv2d(ctypes.byref(struct)) > 0) == is_copied


@pytest.mark.parametrize("block", [1, 16])
@pytest.mark.parametrize("case", CASES)
def test_packed_layout_is_the_same_in_c_and_python(library, case, block) -> None:
    """An export packs with NumPy, a program with the C function."""
    images, weight = arrays(case)
    window = CASES[case][2]
    expected = pack_conv2d(weight, groups=window.groups, block=block)
    out = np.zeros((1, len(weight), 1, 1), np.float32)
    struct = conv2d_struct(window, Memory.of(images, block, 0), Memory.of(out, 1, 0))
    library.size_conv2d.restype = ctypes.c_int64
    assert library.size_conv2d(ctypes.byref(struct)) == expected.size
    packed = np.full_like(expected, np.nan)
    library.pack_conv2d(ctypes.byref(struct), pointer(weight), pointer(packed))
    assert packed.tobytes() == expected.tobytes()

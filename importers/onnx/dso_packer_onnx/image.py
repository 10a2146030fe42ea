"""Images in memory: planar, or in blocks of 16 channels with zero padding.

``docs/operators.md`` describes both layouts; ``struct dso_op_image`` is the C type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from packer.operators import BLOCK

from .extent import Extent, extents_in, in_c, product, total
from .operator import Stored, shape_of, stored

if TYPE_CHECKING:
    import onnx_ir as ir

BLOCKED = "NCHW16c"


class Image(NamedTuple):
    """A value (batch, channels, height, width) as an operator reads or writes it."""

    batch: Extent  # how many images
    channels: int
    height: Extent
    width: Extent
    block: int = 1
    padding: int = 0  # columns of zeros beside each plane in memory, and rows

    @property
    def planes(self) -> int:
        """Planes, or blocks of channels, of one image."""
        return -(-self.channels // self.block)

    @property
    def rows(self) -> int:
        """Rows of zeros above a plane, and below it: images of one row need none."""
        return 0 if self.height == 1 else self.padding

    @property
    def row(self) -> Extent:
        """Floats from one row to the next."""
        return product((total((self.width, 2 * self.padding)), self.block))

    @property
    def plane(self) -> Extent:
        """Floats from one plane to the next."""
        return product((total((self.height, 2 * self.rows)), self.row))

    @property
    def nfloats(self) -> Extent:
        """Floats of one image."""
        return product((self.planes, self.plane))

    @property
    def first(self) -> Extent:
        """Floats before the first pixel."""
        return total((product((self.rows, self.row)), self.padding * self.block))

    @property
    def stored(self) -> Stored:
        """The shape in memory."""
        height = total((self.height, 2 * self.rows))
        width = total((self.width, 2 * self.padding))
        if self.block == 1:
            return Stored((self.batch, self.channels, height, width), padding=self.padding)
        return Stored((self.batch, self.planes, height, width, BLOCK), BLOCKED, self.padding)

    def in_c(self, data: str, planes: int = 0, whole: Image | None = None) -> str:
        """Return an initialiser of `dso_op_image`.

        Parameters
        ----------
        data : str
            The C expression of the tensor's first float.
        planes : int
            The number of planes before the image's first one.
        whole : Image, optional
            The image of which this is a part: its images are as far from each other.
        """
        first = total((product((planes, self.plane)), self.first))
        begin = f"{data} + {in_c(first)}" if first else data
        height, width, plane, row = map(in_c, (self.height, self.width, self.plane, self.row))
        return (
            f"{{(float *){begin}, {self.channels}, {height}, {width}, {self.block}, "
            f"{self.padding}, {in_c((whole or self).nfloats)}, {plane}, {row}}}"
        )


def image_of(value: ir.Value) -> Image:
    """Return how a value of four dimensions is stored.

    Values are planar unless `layout` chose another form. An image of one pixel whose channels are
    whole blocks has the same bytes in both layouts, and is read and written as blocks.
    """
    batch, channels, height, width = shape_of(value)
    assert isinstance(channels, int)
    form = stored(value)
    is_both = height == width == 1 and channels % BLOCK == 0
    block = BLOCK if form.layout == BLOCKED or is_both else 1
    return Image(batch, channels, height, width, block, form.padding)


def kernel_of(node: ir.Node) -> tuple[int, int]:
    """Return the window of dso.Conv in an image: rows and columns.

    The weight of a window with a depth, which is as in struct dso_op_depth, has so many times the
    rows.
    """
    assert node.inputs[1] is not None
    rows, columns = shape_of(node.inputs[1])[2:]
    assert isinstance(rows, int)
    assert isinstance(columns, int)
    depth = extents_in(node, "depth")
    return (rows // int(depth[2]) if depth else rows), columns

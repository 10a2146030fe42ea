"""Pictures in memory: planar, or in blocks of 16 channels with a frame of zeros.

``docs/operators.md`` describes both layouts; ``struct dso_op_picture`` is the C type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from packer.operators.packed import BLOCK

from .operator import Stored, shape_of, stored

if TYPE_CHECKING:
    import onnx_ir as ir

BLOCKED = "NCHW16c"


class Picture(NamedTuple):
    """A value (batch, channels, height, width) as an operator reads or writes it.

    Attributes
    ----------
    batch : int or str
        How many pictures; a str is the name of the symbolic dimension.
    frame : int
        Rows and columns of zeros around each plane in memory.
    """

    batch: int | str
    channels: int
    height: int
    width: int
    block: int = 1
    frame: int = 0

    @property
    def planes(self) -> int:
        """Planes, or blocks of channels, of one picture."""
        return -(-self.channels // self.block)

    @property
    def row(self) -> int:
        """Floats from one row to the next."""
        return (self.width + 2 * self.frame) * self.block

    @property
    def plane(self) -> int:
        """Floats from one plane to the next."""
        return (self.height + 2 * self.frame) * self.row

    @property
    def nfloats(self) -> int:
        """Floats of one picture."""
        return self.planes * self.plane

    @property
    def stored(self) -> Stored:
        """The shape in memory."""
        height, width = self.height + 2 * self.frame, self.width + 2 * self.frame
        if self.block == 1:
            return Stored((self.batch, self.channels, height, width), frame=self.frame)
        return Stored((self.batch, self.planes, height, width, BLOCK), BLOCKED, self.frame)

    def in_c(self, data: str, planes: int = 0, whole: Picture | None = None) -> str:
        """Return an initialiser of `dso_op_picture`.

        Parameters
        ----------
        data : str
            The C expression of the tensor's first float.
        planes : int
            The number of planes before the picture's first one.
        whole : Picture, optional
            The picture of which this is a part: its pictures are as far from each other.
        """
        first = planes * self.plane + self.frame * (self.row + self.block)
        begin = f"{data} + {first}" if first else data
        return (
            f"{{(float *){begin}, {self.channels}, {self.height}, {self.width}, {self.block}, "
            f"{self.frame}, {(whole or self).nfloats}, {self.plane}, {self.row}}}"
        )


def picture_of(value: ir.Value) -> Picture:
    """Return how a value of four dimensions is stored.

    Values are planar unless `layout` chose another form. A picture of one pixel whose channels are
    whole blocks has the same bytes in both layouts, and is read and written as blocks.
    """
    batch, channels, height, width = shape_of(value)
    assert isinstance(channels, int)
    assert isinstance(height, int)
    assert isinstance(width, int)
    form = stored(value)
    is_both = height == width == 1 and channels % BLOCK == 0
    block = BLOCK if form.layout == BLOCKED or is_both else 1
    return Picture(batch, channels, height, width, block, form.frame)

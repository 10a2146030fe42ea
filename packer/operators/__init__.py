"""Fast operators of neural networks as C sources: products, convolutions, attention, pooling.

`modules` makes the modules that a library needs beside code that includes ``dso_operators.h``.
Weights are stored in the order in which the kernels read them: `pack_conv2d` and
`pack_matmul` write it. ``docs/operators.md`` describes them.

>>> import packer.operators
>>> [source.name for source in packer.operators.sources("matmul")]
['matmul.c', 'finish.c', 'pack.c', 'parallel.c', 'tile.c']
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..modules.c_source import CSourceModule
from . import workspace
from .packed import BLOCK, PANEL, conv2d_count, conv2d_parts, matmul_shape, pack_conv2d, pack_matmul
from .packed_bits import matmul_bits_shape, pack_matmul_bits, quantize_matmul
from .packed_lowp import lowp_conv2d_count, lowp_matmul_shape, pack_lowp_conv2d, pack_lowp_matmul

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["BLOCK", "INCLUDE", "PANEL", "modules", "sources", "workspace"]
__all__ += ["conv2d_count", "conv2d_parts", "matmul_shape", "pack_conv2d", "pack_matmul"]
__all__ += ["matmul_bits_shape", "pack_matmul_bits", "quantize_matmul"]
__all__ += ["lowp_conv2d_count", "lowp_matmul_shape", "pack_lowp_conv2d", "pack_lowp_matmul"]

#: The folder of the sources and of ``dso_operators.h``: for the option ``include`` of a module.
INCLUDE = Path(__file__).parent

_TILES = ("finish", "pack", "parallel", "tile")
_LOWP_TILES = ("finish_lowp", "pack_lowp", "tile_lowp", "finish", "parallel")
# The files of each operator.
_FILES: dict[str, tuple[str, ...]] = {
    "attention": ("attention", "attention_row", *_TILES),
    "conv2d": ("conv2d", "depthwise", "pack_conv2d", "reorder", *_TILES),
    "double_matmul": ("matmul_double", "parallel"),
    "elementwise": ("reorder", "parallel"),
    "matmul": ("matmul", *_TILES),
    "matmul_bits": ("matmul_bits", "matmul_bits_rows", *_TILES),
    "lowp_conv2d": (
        *("conv2d_lowp", "copy_lowp", "depthwise_lowp", "pack_conv2d_lowp"),
        *_LOWP_TILES,
    ),
    "lowp_matmul": ("matmul_lowp", *_LOWP_TILES),
    "normalize": ("normalize", "parallel"),
    "parallel": ("parallel",),
    "pooling": ("pooling", "reorder", "parallel"),
    "quantize": ("quantize", "parallel"),
    "recurrent": ("recurrent", *_TILES),
    "reorder": ("reorder", "parallel"),
    "resize": ("resize", "reorder", "parallel"),
}


def sources(*names: str) -> list[Path]:
    """List the C files that operators need.

    Parameters
    ----------
    *names : {"attention", "conv2d", "double_matmul", "elementwise", "matmul", \
"lowp_conv2d", "lowp_matmul", "matmul_bits", "normalize", "parallel", "pooling", \
"quantize", "recurrent", "reorder", "resize"}
        The operators; by default all. ``"matmul"`` stands for `dso_op_matmul` and its functions.

    Returns
    -------
    list of Path
        Each file once. They include headers of their folder, `INCLUDE`, and the C library's.

    Raises
    ------
    ValueError
        If there is no such operator.
    """
    if unknown := [name for name in names if name not in _FILES]:
        known = ", ".join(_FILES)
        raise ValueError(f"operators: unknown name, expected some of {known}, found {unknown[0]!r}")
    files = [file for name in names or _FILES for file in _FILES[name]]
    return [INCLUDE / f"{file}.c" for file in dict.fromkeys(files)]


def modules(*names: str, options: Sequence[str] = ()) -> list[CSourceModule]:
    """Make the modules of operators, to import from a module whose code calls them.

    Parameters
    ----------
    *names : str
        As in `sources`.
    options : sequence of str
        Compiler options for these files, such as ``["-march=x86-64-v3"]``.

    Returns
    -------
    list of CSourceModule
        One for each file. They export no functions to callers of the library.

    Raises
    ------
    ValueError
        If there is no such operator.

    Examples
    --------
    >>> import packer, packer.operators
    >>> code = '''
    ... #include "dso_operators.h"
    ... long size(long n) {
    ...   return dso_op_matmul_packed_size(&(struct dso_op_matmul){.inner = n, .columns = 40});
    ... }'''
    >>> module = packer.CSourceModule(
    ...     code, functions="auto", include=[packer.operators.INCLUDE]
    ... )
    >>> for part in packer.operators.modules("matmul"):
    ...     module.import_module(part)
    """
    return [_module(path, options) for path in sources(*names)]


def _module(path: Path, options: Sequence[str]) -> CSourceModule:
    module = CSourceModule(path, options=options)
    module.stem = f"dso_{path.stem}"
    return module

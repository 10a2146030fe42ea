"""The batch of a product: which matrices are multiplied, as distances in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..extent import Extent, in_c, product
from ..operator import shape_of
from .code import count_in_c

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import onnx_ir as ir

    from ..operator import Shape


class Batches(NamedTuple):
    """The batch of a product: extents, and the distances of both factors and the result."""

    extents: tuple[Extent, ...]
    a: tuple[Extent, ...]
    b: tuple[Extent, ...]
    out: tuple[Extent, ...]

    def split(self) -> tuple[Batches, Batches]:
        """Return all dimensions but the last two, and these."""
        extents, a, b, out = self
        outside = Batches(extents[:-2], a[:-2], b[:-2], out[:-2])
        return outside, Batches(extents[-2:], a[-2:], b[-2:], out[-2:])


class Extents(NamedTuple):
    """The extents of a product with NumPy's broadcasting, and the distances of its factors."""

    batches: Batches
    rows: Shape  # their product is the number of rows
    inner: Extent
    columns: Extent
    a_steps: tuple[Extent, Extent]  # to the next row and column
    b_steps: tuple[Extent, Extent]

    @classmethod
    def of(cls, node: ir.Node, panels: Callable[[int, int], int] | None) -> Extents:
        """Read a node with two factors, ``trans_a`` and ``trans_b``.

        `panels` returns the size of a packed right factor, for (inner, columns); None: not packed.
        """
        a, b = (shape_of(value) for value in node.inputs[:2] if value is not None)
        out = shape_of(node.outputs[0])
        trans_a, trans_b = (bool(node.attributes.get_int(f"trans_{f}", 0)) for f in "ab")
        inner, columns = a[-2 if trans_a else -1], out[-1]
        # All rows are one matrix where all products have the same right factor.
        if not trans_a and all(extent == 1 for extent in b[:-2]):
            batches, rows = Batches((), (), (), ()), out[:-1]
        else:
            rows = out[-2:-1]
            b_size = product((inner, columns))
            if panels:
                assert isinstance(inner, int)
                assert isinstance(columns, int)
                b_size = panels(inner, columns)
            batches = _batches(out, a, b, b_size)
        a_steps = (1, a[-1]) if trans_a else (inner, 1)
        return cls(batches, rows, inner, columns, a_steps, (1, inner) if trans_b else (columns, 1))

    def in_c(self) -> str:
        """Return initialisers of the extents and distances of the last two batch dimensions."""
        inside, columns = self.batches.split()[1], in_c(self.columns)
        (a_row, a_column), (b_row, b_column) = (
            map(in_c, steps) for steps in (self.a_steps, self.b_steps)
        )
        return f"""\
      .batch = {pair(inside.extents)},
      .rows = {count_in_c(self.rows)}, .inner = {in_c(self.inner)}, .columns = {columns},
      .a_batch = {pair(inside.a)}, .a_row = {a_row}, .a_column = {a_column},
      .b_batch = {pair(inside.b)}, .b_row = {b_row}, .b_column = {b_column},
      .out_batch = {pair(inside.out)}, .out_row = {columns},"""


def _batches(out: Shape, a: Shape, b: Shape, b_size: Extent) -> Batches:
    """Return the batch of a product with adjacent dimensions joined where both factors allow it."""
    sizes = [product(shape[-2:]) for shape in (a, b, out)]
    sizes[1] = b_size
    steps = [
        _distances(shape[:-2], len(out) - 2, size)
        for shape, size in zip((a, b, out), sizes, strict=True)
    ]
    joined: list[tuple[Extent, list[Extent]]] = []
    for extent, *distances in zip(out[:-2], *steps, strict=True):
        if extent == 1:
            continue
        if joined:
            before, outer = joined[-1]
            if all(o == product((d, extent)) for o, d in zip(outer, distances, strict=True)):
                joined[-1] = (product((before, extent)), distances)
                continue
        joined.append((extent, distances))
    found = [tuple(distances[i] for _, distances in joined) for i in range(3)]
    return Batches(tuple(extent for extent, _ in joined), *found)


def _distances(shape: Shape, ndim: int, size: Extent) -> list[Extent]:
    """Return the distances along batch dimensions; 0 where the extent is 1 or missing."""
    distances: list[Extent] = []
    step = size
    for extent in reversed(shape):
        distances.append(0 if extent == 1 else step)
        step = product((step, extent))
    return [0] * (ndim - len(shape)) + distances[::-1]


def loops(outside: Batches, body: str) -> str:
    """Put loops over the outer batch around a body, which uses the distances a, b and out."""
    places = {"a": outside.a, "b": outside.b, "out": outside.out}
    opened = "".join(
        f"  for (int64_t i{d} = 0; i{d} < {in_c(extent)}; i{d}++)\n"
        for d, extent in enumerate(outside.extents)
    )
    lines = [
        f"    const int64_t {name} = "
        + (" + ".join(f"i{d} * {in_c(step)}" for d, step in enumerate(steps) if step) or "0")
        + ";\n"
        for name, steps in places.items()
    ]
    return f"{opened}  {{\n{''.join(lines)}{body}  }}\n"


def pair(values: Sequence[Extent]) -> str:
    """Return an initialiser of the last two numbers, with zeros for missing ones."""
    first, second = map(in_c, ([0, 0, *values])[-2:])
    return f"{{{first}, {second}}}"

"""The extents that have the sizes of all samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement

from ..extent import Extent, flattened, product, value_at, written
from ..extent_text import parsed
from .passes import Sample, value_of

_MOST_FACTORS = 3


def fitting_extent(
    calculated: Extent | None,
    nearby: Sequence[Extent | None] | None,
    sizes: tuple[int | None, ...],
    samples: Sequence[Sample],
    names: Sequence[str],
) -> Extent | None:
    """Return the extent that has some sizes for the samples: of `nearby` ones, or a product."""
    if calculated is not None and _fits(calculated, sizes, samples):
        return written(flattened(parsed(calculated))) if isinstance(calculated, str) else calculated
    if nearby is None:
        return None
    if len({*sizes}) == 1:
        return sizes[0] or 0
    texts = (one for one in nearby if isinstance(one, str))
    fitting = (
        one for one in (*texts, *_products(sizes, samples, names)) if _fits(one, sizes, samples)
    )
    found = next(fitting, None)
    return None if found is None else product([found])


def _fits(extent: Extent, sizes: tuple[int | None, ...], samples: Sequence[Sample]) -> bool:
    return tuple(value_of(extent, sample) for sample in samples) == sizes


def _products(
    sizes: tuple[int | None, ...], samples: Sequence[Sample], names: Sequence[str]
) -> Iterator[Extent]:
    """Yield multiples of products of open extents, simple ones first."""
    for count in range(1, _MOST_FACTORS + 1):
        for factors in combinations_with_replacement(names, count):
            whole = product(factors)
            value = value_at(whole, samples[0])
            if value and sizes[0] and sizes[0] % value == 0:
                yield product([sizes[0] // value, whole])

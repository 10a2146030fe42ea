"""The figures of a pool."""

from __future__ import annotations

from typing import NamedTuple


class PoolStatistics(NamedTuple):
    """The work of a pool, and the models that it holds.

    Attributes
    ----------
    models : int
        Models in memory that the pool would give out.
    nbytes : int
        The sizes of their files, in bytes.
    draining : int
        Modules that were closed or replaced, and that a caller still holds.
    hits : int
        Look-ups that found the model in memory.
    loads : int
        Files that were loaded.
    replaced : int
        Loads of a new version of a model that was in memory.
    evicted : int
        Models that were closed for the budget or the limit.
    failed : int
        Look-ups that raised an error.
    """

    models: int
    nbytes: int
    draining: int
    hits: int
    loads: int
    replaced: int
    evicted: int
    failed: int

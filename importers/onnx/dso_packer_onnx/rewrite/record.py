"""The record of weights that a rewrite folded into others, for `dso.graph`."""

from __future__ import annotations

from typing import NamedTuple

import onnx_ir as ir

_FOLDED = "dso.folded"  # the key in `ir.Model.meta`


class _Fold(NamedTuple):
    into: str | None  # the name of a weight
    why: str


def record_fold(model: ir.Model, source: ir.Value, into: ir.Value | None, why: str) -> None:
    """Record that a weight of the model is not stored as it was.

    Parameters
    ----------
    model : ir.Model
        The record is in its `meta`.
    source : ir.Value
        The weight.
    into : ir.Value or None
        The weight that has its elements now, which may be `source` itself; None for an attribute.
    why : str
        What was done, as in ``"scaled by the batch normalization 'bn1'"``.
    """
    folds: dict[str, _Fold] = model.meta.setdefault(_FOLDED, {})
    name = str(source.name)
    if name not in folds:
        folds[name] = _Fold(None if into is None else str(into.name), why)


def summary(model: ir.Model, names: list[str]) -> dict[str, str]:
    """Return for each of these weights that is not stored as it was, where it is and why.

    Parameters
    ----------
    model : ir.Model
        The rewritten model.
    names : list of str
        The weights that it had before.

    Returns
    -------
    dict of str to str
    """
    folds: dict[str, _Fold] = model.meta.get(_FOLDED, {})
    stored = model.graph.initializers
    found = {}
    for name in names:
        fold = folds.get(name)
        if fold is None:
            if name not in stored:
                found[name] = "not stored: no operator reads it"
            continue
        into, seen = fold.into, {name}
        while into is not None and into not in stored and into in folds and into not in seen:
            seen.add(into)
            into = folds[into].into
        where = f"in {into!r}: " if into in stored and into != name else ""
        found[name] = f"{where}{fold.why}"
    return found

"""torch's operators with bodies, from a module to a library, beside torch itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch._higher_order_ops import associative_scan, cond, map, scan, while_loop
from torch.export import Dim
from torch.utils._pytree import tree_leaves

import packer
import runtime

Function = Callable[[Tensor, Tensor], Any]
ZERO = torch.tensor(0)


def rows(x: Tensor, w: Tensor) -> Any:
    """Several inputs and outputs, one of another type, and a captured value."""

    def one(entry: dict[str, Tensor], w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return entry["a"] @ w, entry["b"].sum(), entry["a"] > 0

    return map(one, {"a": x[..., 0, :], "b": x * 2}, w)


def nested(x: Tensor, w: Tensor) -> Any:
    """Both maps have an open extent; the outer one's entry decides what the inner one captures."""
    return map(lambda a, w: map(lambda b, c: b @ w + c, a, a.sum(0)), x, w), x + 1


def branches(x: Tensor, w: Tensor) -> Any:
    """A branch for each entry, in rounds."""

    def entry(a: Tensor) -> Any:
        return cond(a.sum() > 0, lambda u: (u @ w).tanh(), lambda u: u + 1, (a,))

    rounds = (ZERO, x)
    return while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, map(entry, v)), rounds)


def scanned(x: Tensor, w: Tensor) -> Any:
    """A scan that carries a value, in a map, and one from the end in a loop that has no round."""
    made = map(lambda a, w: scan(lambda c, e: (c + e @ w, c * e), w[0].clone(), a)[1], x, w)
    backwards = scan(lambda c, a: (c + a, c * 2), torch.zeros_like(x[0]), x, reverse=True)
    none = while_loop(lambda i, v: i < 0, lambda i, v: (i + 1, v * 2), (ZERO, x + 0))
    return made, backwards, none


def associated(x: Tensor, w: Tensor) -> Any:
    """An associative scan of an extent that is a number."""
    return associative_scan(lambda a, b: a * b, w, 0, combine_mode="generic"), x + 1


@pytest.mark.parametrize("function", [rows, nested, branches, scanned, associated])
def test_an_operator_with_a_body_is_as_in_torch(function: Function, tmp_path: Path) -> None:
    """For open extents."""
    main = exported(function, tmp_path)
    for extents in ((4, 2), (1, 5), (3, 3)):
        x, w = values(*extents)
        expected = tree_leaves(function(x, w))
        for one, wanted in zip(main(x.numpy(), w.numpy()), expected, strict=True):
            assert one.shape == tuple(wanted.shape)
            np.testing.assert_allclose(one.numpy(), wanted, rtol=1e-5, atol=1e-6)


def test_a_map_of_no_entry_is_empty(tmp_path: Path) -> None:
    """Where torch refuses it."""
    x, w = (one.numpy() for one in values(0, 4))
    assert [one.shape for one in exported(rows, tmp_path)(x, w)] == [(0, 3), (0,), (0, 3)]


def twice(x: Tensor, w: Tensor) -> Any:
    """A tensor is carried twice."""
    return while_loop(lambda i, a, b: i < 2, lambda i, a, b: (i + 1, a + w[0], b * 2), (ZERO, x, x))


def captured(x: Tensor, w: Tensor) -> Any:
    """The entries are captured, too."""
    return map(lambda a: a @ w + x[0], x)


def cloned(x: Tensor, w: Tensor) -> Any:
    """Both, with clones."""
    sums = map(lambda a: a @ w + x[0], x.clone())
    rounds = (ZERO, x, x.clone())
    return sums, while_loop(lambda i, a, b: i < 2, lambda i, a, b: (i + 1, a + w[0], b * 2), rounds)


@pytest.mark.parametrize("function", [twice, captured])
def test_a_tensor_that_an_operator_takes_twice_is_refused(function: Function) -> None:
    """By torch, with an advice."""
    with pytest.raises(packer.ExportError, match=r"alias.*; pass x\.clone\(\) where"):
        made(function)


def test_the_advice_about_a_tensor_that_is_taken_twice_works(tmp_path: Path) -> None:
    """The other function differs in two clones."""
    x, w = values(2, 3)
    found = exported(cloned, tmp_path)(x.numpy(), w.numpy())
    for one, wanted in zip(found, tree_leaves(cloned(x, w)), strict=True):
        np.testing.assert_allclose(one.numpy(), wanted, rtol=1e-5, atol=1e-6)


class Model(torch.nn.Module):
    """A function as a model."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor, w: Tensor) -> Any:
        return self.function(x, w)


def values(entries: int, length: int) -> tuple[Tensor, Tensor]:
    """Return arguments of a model."""
    random = torch.Generator().manual_seed(entries)
    return torch.randn(entries, length, 3, generator=random), torch.randn(3, 3, generator=random)


def made(function: Function) -> runtime.Module:
    """Return the module of a model, whose first two extents are open."""
    open_extents = {0: Dim("entries", max=64), 1: Dim("length", max=64)}
    return packer.from_torch(Model(function), values(4, 5), (open_extents, None))


def exported(function: Function, folder: Path) -> Any:
    """Export and load a model; return its function."""
    library = packer.export_library(made(function), folder / "m.so", build=packer.Build(cpu=()))
    return runtime.load(library)["main"]

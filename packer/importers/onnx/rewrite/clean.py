"""Tidying: constants as weights, and nodes without an effect or a use removed."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import common


def lift_constants(model: ir.Model) -> int:
    """Make each Constant node a weight: the pass LiftConstantsToInitializersPass of onnx-ir.

    Weights that are inputs too, with a default, remain inputs. Returns 1 if anything changed.
    """
    lift = common.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)
    return int(lift(model).modified)

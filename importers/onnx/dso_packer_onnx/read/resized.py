"""The forms of Resize that have code for open extents: each axis after another."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx_ir as ir

_MODES = ("nearest", "linear", "cubic")
PLACES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
)


def is_separable(node: ir.Node) -> bool:
    """Return True if its attributes are of such a form."""
    attributes = node.attributes
    modes = _MODES[1:] if attributes.get_int("antialias", 0) else _MODES
    return (
        attributes.get_string("mode", "nearest") in modes
        and attributes.get_string("coordinate_transformation_mode", "half_pixel") in PLACES
        and attributes.get_string("keep_aspect_ratio_policy", "stretch") == "stretch"
    )

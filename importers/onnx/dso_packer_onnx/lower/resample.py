"""dso.Resize, of images, and dso.Resample, along one axis with a filter (antialias)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packer.declare.c_text import c_string
from packer.operators import workspace as need

from ..extent import in_c, product, total
from ..operator import elements, shape_of
from .code import operator_of
from .epilogue import float_in_c
from .images import batch_of, in_one_layout

if TYPE_CHECKING:
    import onnx_ir as ir

    from ..operator import Operator

_FLOAT = 4  # bytes
_REACH = {"linear": 1, "cubic": 2}  # of the filter, in elements of the smaller axis
# The place of element i of m in an axis of n elements, as ONNX Runtime computes it.
_PLACES = {
    "half_pixel": "(i + 0.5) / scale - 0.5",
    "half_pixel_symmetric": "(n - m / scale) / 2 + (i + 0.5) / scale - 0.5",
    "pytorch_half_pixel": "m == 1 ? 0 : (i + 0.5) / scale - 0.5",
    "align_corners": "m == 1 ? 0 : i * (n - 1.0) / (scale * n - 1)",
    "asymmetric": "i / scale",
}
_FILTERS = {
    "linear": "static double filter(double x) { return x < 1 ? 1 - x : 0; }\n",
    "cubic": "static double filter(double x) {\n"
    "  if (x <= 1) return ((A + 2) * x - (A + 3)) * x * x + 1;\n"
    "  return x < 2 ? ((A * x - 5 * A) * x + 8 * A) * x - 4 * A : 0;\n"
    "}\n",
}
_NO_PIXELS = "Resize: an image without pixels, expected one with pixels for an output with some"
_EMPTY = "Resize: an axis without elements, expected some for an output with some"


def _scale_in_c(node: ir.Node, name: str) -> str:
    index = node.attributes.get_int(f"index_of_{name}")
    return float_in_c(node.attributes.get_float(name, 0.0)) if index is None else f"x1[{index}]"


def resize(node: ir.Node) -> Operator:
    """Lower a Resize."""
    x, source, out = in_one_layout(node)
    scales = [_scale_in_c(node, name) for name in ("scale_y", "scale_x")]
    mode, places, nearest = (
        f"DSO_OP_{node.attributes.get_string(name, '').upper()}"
        for name in ("mode", "places", "nearest")
    )
    body = f"""\
  const struct dso_op_resize resize = {{
      .batch = {batch_of(source)},
      .in = {source.in_c("x0")},
      .out = {out.in_c("y0")},
      .scale = {{{", ".join(scales)}}},
      .mode = {mode},
      .places = {places},
      .nearest = {nearest},
      .cubic = {float_in_c(node.attributes.get_float("cubic", 0.0))},
      .exclude_outside = {node.attributes.get_int("exclude_outside", 0)},
      .workspace = workspace,
  }};
  if (!dso_op_resize(&resize)) return 0;
  return dso_raise("ValueError", {c_string(_NO_PIXELS)});
"""
    floats = product((need.RESIZE_FLOATS, total((out.height, out.width))))
    return operator_of(
        "resize",
        body,
        [x, *(value for value in node.inputs[1:] if value is not None)],
        node.outputs,
        workspace=product((_FLOAT, floats)),
        parts=["resize"],
        before='#include "dso_packer.h"\n',
        flops=4 * elements(shape_of(node.outputs[0])),
    )


def resample(node: ir.Node) -> Operator:
    """Lower a filter along one axis: the weights of all its elements, then the sums."""
    (x,), (out,), attributes = node.inputs, node.outputs, node.attributes
    assert x is not None
    axis, mode = attributes.get_int("axis", 0), attributes.get_string("mode", "")
    shape, made, reach = shape_of(x), shape_of(out), _REACH[mode]
    given = attributes.get_float("scale_y", 0.0)
    is_inside = "k >= 0 && k < n" if attributes.get_int("exclude_outside", 0) else "1"
    weight, a = "filter(fabs((double)k - place) * rate)", float_in_c(attributes.get_float("cubic"))
    body = f"""\
  const int64_t n = {in_c(shape[axis])}, m = {in_c(made[axis])};
  const int64_t outer = {in_c(product(shape[:axis]))}, inner = {in_c(product(shape[axis + 1 :]))};
  if (!(outer * m * inner)) return 0;
  if (n < 1) return dso_raise("ValueError", {c_string(_EMPTY)});
  const double scale = {float_in_c(given) if given else "(double)m / (double)n"};
  const double rate = scale < 1 ? scale : 1;
  int32_t *first = workspace, *count = first + m;
  float *const weights = (float *)(count + m), *weight = weights;
  for (int64_t i = 0; i < m; i++, weight += *count++) {{
    const double place = {_PLACES[attributes.get_string("places", "")]};
    const int64_t low = (int64_t)ceil(place - {reach} / rate);
    const int64_t high = (int64_t)floor(place + {reach} / rate);
    const int64_t begin = n_min(n_max(low, 0), n - 1), end = n_min(n_max(high, 0), n - 1);
    double sum = 0;
    first[i] = (int32_t)begin, *count = (int32_t)(end - begin + 1);
    for (int64_t k = 0; k < *count; k++) weight[k] = 0;
    for (int64_t k = low; k <= high; k++)
      if ({is_inside}) sum += {weight};
    for (int64_t k = low; k <= high; k++)
      if ({is_inside}) weight[n_min(n_max(k, 0), n - 1) - begin] += (float)({weight} / sum);
  }}
  for (int64_t o = 0; o < outer; o++) {{
    weight = weights, count = first + m;
    for (int64_t i = 0; i < m; i++, weight += *count++) {{
      const float *from = x0 + (o * n + first[i]) * inner;
      float *to = y0 + (o * m + i) * inner;
      float sum = 0;
      for (int64_t k = 0; inner == 1 && k < *count; k++) sum += weight[k] * from[k];
      for (int64_t c = 0; c < inner; c++) to[c] = sum;
      for (int64_t k = 0; inner > 1 && k < *count; k++, from += inner)
        for (int64_t c = 0; c < inner; c++) to[c] += weight[k] * from[c];
    }}
  }}
  return 0;
"""
    # An element has at most 2 * reach / rate + 1 weights, and m / scale is about n.
    width = total([shape[axis], 1])
    room = total([product((2 * reach, width)), product((2 * reach + 3, made[axis]))])
    return operator_of(
        "resample",
        body,
        [x],
        node.outputs,
        workspace=product((_FLOAT, room)),
        before='#include <math.h>\n#include "dso_packer.h"\n' + _FILTERS[mode].replace("A", a),
        flops=4 * elements(made),
    )

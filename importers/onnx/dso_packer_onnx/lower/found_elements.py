"""The elements of a Unique: places are sorted by what is there, so that equal ones are adjacent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dtypes import c_type
from ..extent import in_c, product
from ..operator import shape_of
from .code import operator_of
from .guards import HELPER
from .open.parts import attribute, given
from .refused import refuse

if TYPE_CHECKING:
    import onnx_ir as ir

    from ..operator import Operator

_PLACES = 3  # numbers in the workspace for each element
_RESULTS = ("values", "places", "inverse", "counts")
_BEFORE = """\
/* Compare what is at two places of the axis; a NaN is after all numbers. */
static inline int compare(const TYPE *x, int64_t outer, int64_t length, int64_t inner, int64_t a,
                          int64_t b) {
  for (int64_t i = 0; i < outer; i++)
    for (int64_t k = 0; k < inner; k++) {
      const TYPE one = x[(i * length + a) * inner + k], other = x[(i * length + b) * inner + k];
      if (one < other || (one == one && other != other)) return -1;
      if (one > other || (one != one && other == other)) return 1;
    }
  return 0;
}
"""
_BODY = """\
  const int64_t outer = OUTER, length = LENGTH, inner = INNER;
  int64_t *order = workspace, *other = order + length, *first = other + length, count = 0;
  for (int64_t i = 0; i < length; i++) order[i] = i;
  for (int64_t width = 1; width < length; width *= 2) { /* a stable sort by merging */
    for (int64_t low = 0; low < length; low += 2 * width) {
      const int64_t middle = low + width < length ? low + width : length;
      const int64_t high = low + 2 * width < length ? low + 2 * width : length;
      for (int64_t at = low, i = low, k = middle; at < high; at++)
        if (k == high || (i < middle && compare(x0, outer, length, inner, order[i], order[k]) <= 0))
          other[at] = order[i++];
        else other[at] = order[k++];
    }
    int64_t *const swapped = order;
    order = other, other = swapped;
  }
  for (int64_t i = 0, group = 0; i < length; i++) { /* each place with the first equal one */
    if (i == 0 || compare(x0, outer, length, inner, order[group], order[i]) != 0) {
      group = i;
      count++;
    }
    first[order[i]] = order[group];
  }
  /* From here on `other` has the number of each place that is the first one. */
  int64_t at = 0;
  for (int64_t i = 0; i < length; i++) {
    const int64_t place = SORTED ? order[i] : i;
    if (first[place] == place) other[place] = at++;
  }
  y0[0] = count;
  for (int64_t i = 0; i < length; i++) {
    const int64_t number = other[first[i]];
    (void)number;
WRITE  }
  return 0;
"""
_WRITE = {
    "values": """\
    if (first[i] == i)
      for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < inner; k++)
          Y[(o * length + number) * inner + k] = x0[(o * length + i) * inner + k];
""",
    "places": "    if (first[i] == i) Y[number] = i;\n",
    "inverse": "    Y[i] = number;\n",
    "counts": "    if (first[i] == i) Y[number] = 0;\n    Y[number]++;\n",
}


def found_elements(node: ir.Node) -> Operator:
    """Lower the ``dso.Extents`` of a Unique: the number of elements, and its results."""
    value = given(node, 0)
    type_, shape = c_type(value), shape_of(value)
    if type_ == "void" or "Complex" in type_:
        raise refuse(node, "dtype", f"value {value.name!r}")
    before, length, after = shape[:0], product(shape), shape[:0]
    if "axis" in node.attributes:
        axis = attribute(node, "axis", 0) % len(shape)
        before, length, after = shape[:axis], shape[axis], shape[axis + 1 :]
    names = [name for name in _RESULTS if name in (node.attributes.get_strings("results") or ())]
    write = "".join(_WRITE[name].replace("Y[", f"y{i + 1}[") for i, name in enumerate(names))
    facts = {
        "OUTER": in_c(product(before)),
        "LENGTH": in_c(length),
        "INNER": in_c(product(after)),
        "SORTED": str(attribute(node, "sorted", 1)),
        "WRITE": write,
    }
    body = _BODY
    for name, code in facts.items():
        body = body.replace(name, code)
    return operator_of(
        "found_elements",
        body,
        [value],
        node.outputs,
        workspace=product((8 * _PLACES, length)) or 8,
        before=HELPER + _BEFORE.replace("TYPE", type_),
        extents=shape,
    )

"""Nodes with open extents that choose elements: by conditions, or the greatest ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...dtypes import c_type
from ...extent import in_c, product
from ...operator import elements, shape_of
from ..code import count_in_c, operator_of
from ..guards import HELPER
from ..one_node import results
from .parts import attribute, given, indices_of, nest, operator, place, refuse_if, strides

if TYPE_CHECKING:
    from collections.abc import Callable

    import onnx_ir as ir

    from ...operator import Operator


def _nonzero(node: ir.Node) -> Operator:
    value, (out,) = given(node, 0), results(node)
    shape, count = shape_of(value), in_c(shape_of(out)[1])
    names = indices_of(len(shape))
    rows = "".join(f" y0[{axis} * {count} + at] = {name};" for axis, name in enumerate(names))
    rows = rows or " y0[at] = 0;"
    more = refuse_if(node, f"at >= {count}", "elements that are true", count, "at + 1")
    body = f"    if (x0[{place(strides(shape), names)}]) {{\n    {more}      {rows} at++;\n    }}\n"
    body = "  int64_t at = 0;\n" + nest(shape, body)
    body += refuse_if(node, f"at != {count}", "elements that are true", count, "at")
    return operator(node, body, [value])


def _compress(node: ir.Node) -> Operator:
    data, chosen, (out,) = given(node, 0), given(node, 1), results(node)
    shape = shape_of(data)
    outer, length, inner = "1", count_in_c(shape), "1"
    count = in_c(shape_of(out)[0])
    if "axis" in node.attributes:
        axis = attribute(node, "axis", 0) % len(shape)
        outer, length = count_in_c(shape[:axis]), in_c(shape[axis])
        inner, count = count_in_c(shape[axis + 1 :]), in_c(shape_of(out)[axis])
    more = refuse_if(node, f"at >= {count}", "elements that are true", count, "at + 1")
    whole = in_c(shape_of(chosen)[0])
    body = (
        "  int64_t at = 0;\n"
        f"  for (int64_t i = 0; i < {whole} && i < {length}; i++) {{\n    if (!x1[i]) continue;\n"
        f"  {more}"
        f"    for (int64_t o = 0; o < {outer}; o++)\n"
        f"      memcpy(y0 + (o * {count} + at) * {inner}, x0 + (o * {length} + i) * {inner}, "
        f"(size_t)({inner}) * sizeof *y0);\n    at++;\n  }}\n"
    )
    body += refuse_if(node, f"at != {count}", "elements that are true", count, "at")
    return operator(node, body, [data, chosen])


_HEAP = """\
/* Whether an element of a row is before another one in the result. */
static inline int is_before(const TYPE *x, int64_t step, int64_t a, int64_t b) {
  const TYPE one = x[a * step], other = x[b * step];
  return one SIGN other || (one == other && a < b);
}

/* Let the last one of the result be at the beginning of the heap. */
static inline void sink(const TYPE *x, int64_t step, int64_t *heap, int64_t size, int64_t at) {
  const int64_t moved = heap[at];
  for (int64_t next; (next = 2 * at + 1) < size; at = next) {
    if (next + 1 < size && is_before(x, step, heap[next], heap[next + 1])) next++;
    if (!is_before(x, step, moved, heap[next])) break;
    heap[at] = heap[next];
  }
  heap[at] = moved;
}
"""
# Stable: elements that are equal remain in order.
_SORT = """\
/* A number whose order is wanted; that of -0 is that of 0. */
static inline uint32_t key_of(float x) {
  const float number = x + 0.0f;
  uint32_t bits;
  memcpy(&bits, &number, sizeof bits);
  return (bits >> 31 ? ~bits : bits | 0x80000000) ^ FLIP;
}

/* Sort `from` by digits of 8 bits of the upper halves; `to` is as large. */
static void sort(uint64_t *to, uint64_t *from, int64_t n) {
  int64_t counts[4][256] = {{0}};
  for (int64_t i = 0; i < n; i++)
    for (int d = 0; d < 4; d++) counts[d][from[i] >> (32 + 8 * d) & 255]++;
  for (int d = 0; d < 4; d++) {
    int64_t at = 0;
    for (int v = 0; v < 256; v++) {
      const int64_t count = counts[d][v];
      counts[d][v] = at;
      at += count;
    }
    for (int64_t i = 0; i < n; i++) to[counts[d][from[i] >> (32 + 8 * d) & 255]++] = from[i];
    uint64_t *other = to;
    to = from, from = other;
  }
}
"""
# The lower half is the index. ROOM elements are sorted first, or twice as many as the result has
# beside them; later elements are kept if they are better than the last one of the
# result so far; most blocks have none.
_SORTED = """\
    const TYPE *x = x0 + i0 * N * STEP + i1;
    uint64_t *rows = workspace;
    const int64_t room = N < 8 * K + ROOM ? N : 2 * K + ROOM;
    int64_t size = room, next = 0;
    for (int64_t i = 0; i < room; i++) rows[i] = (uint64_t)key_of(x[i * STEP]) << 32 | (uint32_t)i;
    uint32_t last = 0;
    for (int64_t i = room; i < N; i = next) {
      if (size + BLOCK > room) {
        sort(rows + room, rows, size);
        size = K;
        last = K > 0 ? (uint32_t)(rows[K - 1] >> 32) : 0;
      }
      next = i + BLOCK < N ? i + BLOCK : N;
      int some = next < i + BLOCK;
      if (!some)
        for (int64_t j = 0; j < BLOCK; j++) some |= key_of(x[(i + j) * STEP]) < last;
      for (int64_t j = i; some && j < next; j++) {
        const uint32_t key = key_of(x[j * STEP]);
        if (key < last) rows[size++] = (uint64_t)key << 32 | (uint32_t)j;
      }
    }
    sort(rows + room, rows, size);
    for (int64_t i = 0; i < K; i++) {
      const int64_t best = (uint32_t)rows[i], to = (i0 * K + i) * STEP + i1;
WRITE    }
"""
_MOST_IN_HEAP = 32  # elements; with more a float row is sorted
_ROW = """\
    const TYPE *x = x0 + i0 * N * STEP + i1;
    int64_t *heap = workspace;
    for (int64_t i = 0; i < K; i++) heap[i] = i;
    for (int64_t i = K / 2; i-- > 0;) sink(x, STEP, heap, K, i);
    for (int64_t i = K, next; K > 0 && i < N; i = next) {
      const TYPE last = x[heap[0] * STEP];
      next = i + BLOCK < N ? i + BLOCK : N;
      int some = next < i + BLOCK;
      if (!some)
        for (int64_t j = 0; j < BLOCK; j++) some |= x[(i + j) * STEP] SIGN last;
      for (int64_t j = i; some && j < next; j++)
        if (is_before(x, STEP, j, heap[0])) {
          heap[0] = j;
          sink(x, STEP, heap, K, 0);
        }
    }
    for (int64_t size = K; size > 0;) {
      const int64_t best = heap[0], to = (i0 * K + --size) * STEP + i1;
      heap[0] = heap[size];
      sink(x, STEP, heap, size, 0);
WRITE    }
"""


def _top(node: ir.Node) -> Operator:
    """Keep the greatest elements of a row in a heap, or sort the row; the result is sorted."""
    value, outputs = given(node, 0), results(node)
    shape = shape_of(value)
    axis = attribute(node, "axis", -1) % len(shape)
    most, step = shape_of(outputs[0])[axis], shape[axis + 1 :]
    k, extent = in_c(most), in_c(shape[axis])
    is_sorted = c_type(value) == "float" and not (isinstance(most, int) and most <= _MOST_IN_HEAP)
    is_largest = attribute(node, "largest", 1)
    writes = {0: "x[best * STEP]", 1: "best"}
    kept = [index for index, one in enumerate(node.outputs) if one in outputs]
    text = "".join(f"      y{i}[to] = {writes[index]};\n" for i, index in enumerate(kept))
    names = {
        "WRITE": text,
        "TYPE": c_type(value),
        "SIGN": ">" if is_largest else "<",
        "FLIP": "0xffffffff" if is_largest else "0",
        "BLOCK": "16",
        "ROOM": "256",
        "STEP": f"({count_in_c(step)})",
        "N": f"({extent})",
        "K": f"({k})",
    }
    row, functions = (_SORTED, _SORT) if is_sorted else (_ROW, _HEAP)
    for name, code in names.items():
        row = row.replace(name, code)
        if name in ("TYPE", "SIGN", "FLIP"):
            functions = functions.replace(name, code)
    body = refuse_if(node, f"{k} > {extent}", "k", extent, k)
    body += nest((product(shape[:axis]), product(step)), row) + "  return 0;\n"
    return operator_of(
        "topk",
        body,
        [value],
        outputs,
        workspace=product((16, shape[axis]) if is_sorted else (8, most)) or 8,
        before=HELPER + functions,
        flops=elements(shape_of(value)),
    )


RULES: dict[str, Callable[[ir.Node], Operator]] = {
    "Compress": _compress,
    "NonZero": _nonzero,
    "TopK": _top,
}

"""The boxes that a NonMaxSuppression selects: a heap of candidates for each class of each image.

Equal scores are taken in the order of the boxes. The quotient of areas is that of ONNX Runtime, in
float32 without fused products, so that a box on the threshold is treated alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..extent import in_c, product
from ..operator import shape_of
from .code import operator_of
from .guards import HELPER
from .open.parts import attribute, given, input_of

if TYPE_CHECKING:
    import onnx_ir as ir

    from ..operator import Operator

_BYTES = 8 + 20 + 20  # of a candidate, a box and a selected box
_BEFORE = """\
struct candidate { float score; int32_t index; };
struct box { float y1, x1, y2, x2, area; };

static inline int is_before(struct candidate a, struct candidate b) {
  return a.score > b.score || (a.score == b.score && a.index < b.index);
}

static void sink(struct candidate *heap, int64_t size, int64_t at) {
  const struct candidate moved = heap[at];
  for (int64_t next; (next = 2 * at + 1) < size; at = next) {
    if (next + 1 < size && is_before(heap[next + 1], heap[next])) next++;
    if (!is_before(heap[next], moved)) break;
    heap[at] = heap[next];
  }
  heap[at] = moved;
}

static inline int overlaps(const struct box *a, const struct box *b, float threshold) {
  const float x1 = a->x1 > b->x1 ? a->x1 : b->x1, x2 = a->x2 < b->x2 ? a->x2 : b->x2;
  const float y1 = a->y1 > b->y1 ? a->y1 : b->y1, y2 = a->y2 < b->y2 ? a->y2 : b->y2;
  if (x2 <= x1 || y2 <= y1) return 0;
  const volatile float both = (x2 - x1) * (y2 - y1); /* no fused product */
  const float all = a->area + b->area - both;
  if (both <= 0 || a->area <= 0 || b->area <= 0 || all <= 0) return 0;
  return both / all > threshold;
}

static inline struct box box_of(const float *x) {
  struct box made;
#if CENTER
  made = (struct box){x[1] - x[3] / 2, x[0] - x[2] / 2, x[1] + x[3] / 2, x[0] + x[2] / 2, 0};
#else
  made = (struct box){x[0] < x[2] ? x[0] : x[2], x[1] < x[3] ? x[1] : x[3],
                      x[0] < x[2] ? x[2] : x[0], x[1] < x[3] ? x[3] : x[1], 0};
#endif
  made.area = (made.x2 - made.x1) * (made.y2 - made.y1);
  return made;
}
"""
_BODY = """\
  struct candidate *heap = workspace;
  struct box *boxes = (struct box *)(heap + N), *chosen = boxes + N;
  const int64_t limit = MOST;
  int64_t rows = 0;
  for (int64_t b = 0; b < BATCH; b++) {
    for (int64_t i = 0; i < N; i++) boxes[i] = box_of(x0 + (b * N + i) * 4);
    for (int64_t c = 0; c < CLASSES; c++) {
      const float *scores = x1 + (b * CLASSES + c) * N;
      int64_t size = 0, selected = 0;
      for (int64_t i = 0; i < N && limit > 0; i++)
        if (ENOUGH) heap[size++] = (struct candidate){scores[i], (int32_t)i};
      for (int64_t i = size / 2; i-- > 0;) sink(heap, size, i);
      while (size > 0 && selected < limit) {
        const struct candidate best = heap[0];
        heap[0] = heap[--size];
        sink(heap, size, 0);
        int64_t k = 0;
        while (k < selected && !overlaps(&boxes[best.index], &chosen[k], THRESHOLD)) k++;
        if (k < selected) continue;
        chosen[selected++] = boxes[best.index];
        int64_t *row = y1 + 3 * rows++;
        row[0] = b, row[1] = c, row[2] = best.index;
      }
    }
  }
  y0[0] = rows;
  return 0;
"""


def found_boxes(node: ir.Node) -> Operator:
    """Lower the ``dso.Extents`` of a NonMaxSuppression: the number of boxes, and the boxes."""
    boxes, scores = given(node, 0), given(node, 1)
    inputs = [boxes, scores]
    batch, classes, count = shape_of(scores)

    def number(index: int) -> str | None:
        value = input_of(node, index)
        if value is None:
            return None
        if value not in inputs:
            inputs.append(value)
        return f"x{inputs.index(value)}[0]"

    most, threshold, least = number(2), number(3), number(4)
    facts = {
        "MOST": f"{most} < N ? {most} : N" if most else "0",
        "THRESHOLD": threshold or "0",
        "ENOUGH": f"scores[i] > {least}" if least else "1",
        "BATCH": in_c(batch),
        "CLASSES": in_c(classes),
    }
    body = f"  const int64_t N = {in_c(count)};\n"
    for what, (one, other) in {
        "images": (shape_of(boxes)[0], batch),
        "boxes": (shape_of(boxes)[1], count),
    }.items():
        if one != other:
            a, b = in_c(one), in_c(other)
            text = f'"NonMaxSuppression: {what} of the scores"'
            body += f"  if ({a} != {b}) return dso_outside({text}, {a}, {a}, {b});\n"
    text = _BODY
    for name, code in facts.items():
        text = text.replace(name, code)
    return operator_of(
        "found_boxes",
        body + text,
        inputs,
        node.outputs,
        workspace=product((_BYTES, count)) or _BYTES,
        before=HELPER
        + f"#define CENTER {int(attribute(node, 'center_point_box', 0))}\n"
        + _BEFORE
        + "\n",
        extents=[*shape_of(boxes), *shape_of(scores)],
    )

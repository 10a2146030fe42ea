"""Convolutions, pooling and the layouts of images, as calls of `packer.operators`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packer.operators import BLOCK, conv2d_count
from packer.operators import workspace as need

from ..extent import Extent, expression_of, extents_in, in_c, pads_of, product, total, written
from ..image import image_of, kernel_of
from ..operator import elements, shape_of, stored
from .code import operator_of
from .epilogue import after_in_c
from .packing import half_in_c, packed_conv2d

if TYPE_CHECKING:
    from collections.abc import Sequence

    import onnx_ir as ir

    from ..image import Image
    from ..operator import Operator

_FLOAT = 4


def batch_of(image: Image) -> str:
    """Return the number of images as C."""
    return in_c(image.batch)


def _ints(node: ir.Node, name: str, default: list[int]) -> list[int]:
    found = node.attributes.get_ints(name)
    return list(found) if found is not None else default


def _pair(values: Sequence[Extent]) -> str:
    return f"{{{in_c(values[0])}, {in_c(values[1])}}}"


def _known(weight: ir.Value) -> list[int]:
    return [extent for extent in shape_of(weight) if isinstance(extent, int)]


def conv2d_padding(node: ir.Node) -> tuple[int, int]:
    """Return the rows and the columns of padding that a convolution reads around its input."""
    first = node.inputs[0]
    assert first is not None
    x, y = (shape_of(value) for value in (first, node.outputs[0]))
    window = kernel_of(node)
    strides, dilations = _ints(node, "strides", [1, 1]), _ints(node, "dilations", [1, 1])
    pads = pads_of(node)
    wanted = []
    for d, (before, after) in enumerate(zip(pads[:2], pads[2:], strict=True)):
        extent, output, kernel = x[2 + d], y[2 + d], window[d]
        if isinstance(extent, int) and isinstance(output, int) and isinstance(before, int):
            sizes = (extent, output, kernel, strides[d], dilations[d], before)
            wanted.append(need.padding_of_conv2d(*sizes))
        else:
            reach = (kernel - 1) * dilations[d]  # pads that follow from the extent are at most this
            wanted.append(max(pad if isinstance(pad, int) else reach for pad in (before, after)))
    return wanted[0], wanted[1]


def conv2d(node: ir.Node) -> Operator:
    """Lower a convolution; its weight is packed for the layout of its input.

    A weight that is computed is packed in each call.
    """
    x, weight, bias, residual = (*node.inputs, None, None)[:4]
    assert x is not None
    assert weight is not None
    source, out = image_of(x), image_of(node.outputs[0])
    groups = node.attributes.get_int("group", 1)
    kernel, depth = kernel_of(node), extents_in(node, "depth")
    is_packed = weight.const_value is not None
    packed = packed_conv2d(weight, groups=groups, block=source.block) if is_packed else weight
    size = 0 if is_packed else conv2d_count(_known(weight), groups, source.block)
    inputs = [value for value in (x, packed, bias, residual) if value is not None]
    names = dict(zip((id(value) for value in inputs), (f"x{i}" for i in range(4)), strict=False))
    height, width = map(expression_of, (source.height, source.width))
    floats = written(
        need.conv2d_workspace(
            *(source.channels, height, width),
            block=source.block,
            padding=(source.rows, source.padding),
            groups=groups,
            needs=conv2d_padding(node),
        )
    )
    packs = "" if is_packed else "\n  dso_op_conv2d_pack(&conv, x1, workspace);"
    of_depth = f"\n      .depth = {{{', '.join(map(in_c, depth))}}}," if depth else ""
    places = [
        "x1" if is_packed else "workspace",
        f"(float *)workspace + {size}" if size else "workspace",
    ]
    added = f"{names[id(residual)]} + {in_c(out.first)}" if residual is not None else ""
    body = f"""\
  const struct dso_op_conv2d conv = {{
      .batch = {batch_of(out)},
      .in = {source.in_c("x0")},
      .out = {out.in_c("y0")},
      .groups = {groups},
      .kernel = {{{kernel[0]}, {kernel[1]}}},
      .stride = {_pair(_ints(node, "strides", [1, 1]))},
      .dilation = {_pair(_ints(node, "dilations", [1, 1]))},
      .pad = {_pair(pads_of(node))},{of_depth}
      .weight = {places[0]},{half_in_c("weight_type", weight)}
      .after = {after_in_c(node, names[id(bias)] if bias is not None else "", added)},
{f"      .workspace = {places[1]}," if floats else ""}
  }};{packs}
  return dso_op_conv2d(&conv);
"""
    pixels = (out.batch, out.height, out.width)
    return operator_of(
        "conv2d",
        body,
        inputs,
        node.outputs,
        workspace=total((_FLOAT * size, product((_FLOAT, floats, source.batch)))),
        parts=["conv2d"],
        extents=[*pads_of(node), *depth],
        flops=2 * elements((*pixels, *shape_of(weight))),
    )


def in_one_layout(node: ir.Node) -> tuple[ir.Value, Image, Image]:
    """Return the input, and how it and the output are stored."""
    x = node.inputs[0]
    assert x is not None
    source, out = image_of(x), image_of(node.outputs[0])
    if out.block != source.block:  # one pixel: both layouts are the same bytes
        out = out._replace(block=source.block)
    return x, source, out


def pooling(node: ir.Node) -> Operator:
    """Lower the greatest or the average of windows."""
    x, source, out = in_one_layout(node)
    # An empty window is the whole image.
    kernel: Sequence[Extent] = _ints(node, "kernel", []) or (source.height, source.width)
    pads = pads_of(node)
    is_average = node.attributes.get_string("kind") == "average"
    body = f"""\
  const struct dso_op_pooling pooling = {{
      .batch = {batch_of(source)},
      .in = {source.in_c("x0")},
      .out = {out.in_c("y0")},
      .kernel = {_pair(kernel)},
      .stride = {_pair(_ints(node, "strides", [1, 1]))},
      .dilation = {_pair(_ints(node, "dilations", [1, 1]))},
      .pad = {_pair(pads)},
      .pad_after = {_pair(pads[2:])},
      .is_average = {int(is_average)},
      .count_padding = {node.attributes.get_int("count_include_pad", 0)},
  }};
  return dso_op_pooling(&pooling);
"""
    flops = elements((*shape_of(node.outputs[0]), *kernel))
    return operator_of(
        *("pooling", body, [x], node.outputs), parts=["pooling"], extents=pads, flops=flops
    )


def reorder(node: ir.Node) -> Operator:
    """Lower a copy from one layout to another."""
    x = node.inputs[0]
    assert x is not None
    source, out = image_of(x), image_of(node.outputs[0])
    body = f"""\
  const struct dso_op_image in = {source.in_c("x0")};
  const struct dso_op_image out = {out.in_c("y0")};
  return dso_op_reorder({batch_of(source)}, &in, &out);
"""
    return operator_of("reorder", body, [x], node.outputs, parts=["reorder"])


def concat(node: ir.Node) -> Operator:
    """Lower a join of images in blocks; all but the last one have whole blocks."""
    out = image_of(node.outputs[0])
    inputs = [value for value in node.inputs if value is not None]
    body, planes = "", 0
    for i, value in enumerate(inputs):
        source = image_of(value)
        part = out._replace(channels=source.channels)
        part_in_c = part.in_c("y0", planes, whole=out)
        body += f"""\
  const struct dso_op_image in{i} = {source.in_c(f"x{i}")};
  const struct dso_op_image out{i} = {part_in_c};
  if (dso_op_reorder({batch_of(source)}, &in{i}, &out{i})) return -1;
"""
        planes += source.planes
    body += "  return 0;\n"
    return operator_of("join_images", body, inputs, node.outputs, parts=["reorder"])


_INTERLEAVE = """
#include "image.h"

struct images {{ struct dso_op_image in[{inputs}], out; }};

/* One row of a plane of the output; the rows of {planes} planes that are read together. */
static void place(const struct images *p, int64_t batch, int64_t plane, int64_t y) {{
  const int64_t planes = planes_of(&p->out);
  const int64_t row = (y + {top}) / {high}, first = (y + {top}) % {high} * {wide};
  float *to = p->out.data + batch * p->out.batch + plane * p->out.plane + y * p->out.row;
  for (int64_t tap = 0; tap < {wide}; tap++) {{
    const struct dso_op_image *in = &p->in[(first + tap) / {each}];
    const int64_t channel = ((first + tap) % {each} * planes + plane) * {block};
    const int64_t cut = tap < {left} ? ({left} - tap + {wide} - 1) / {wide} : 0;
    const float *from = in->data + batch * in->batch + channel / {read} * in->plane +
                        row * in->row + cut * {read} + channel % {read};
    for (int64_t x = cut * {wide} + tap - {left}; x < p->out.width; x += {wide}, from += {read})
      for (int c = 0; c < {block}; c++) to[x * {block} + c] = from[c];
  }}
}}

static void item(const void *data, int64_t index) {{
  const struct images *p = data;
  const int64_t planes = planes_of(&p->out), parts = ceil_div(planes, {planes});
  const int64_t y = index % p->out.height, batch = index / p->out.height / parts;
  const int64_t begin = index / p->out.height % parts * {planes};
  for (int64_t plane = begin; plane < min(begin + {planes}, planes); plane++)
    place(p, batch, plane, y);
  if (y == 0 && p->out.padding) {{
    struct dso_op_image out = p->out;
    out.data += batch * out.batch;
    dso_op_write_padding(&out, begin, 1);
  }}
}}
"""


def interleave(node: ir.Node) -> Operator:
    """Lower the placing of channels, (window y, window x, output), as pixels."""
    inputs = [value for value in node.inputs if value is not None]
    out = image_of(node.outputs[0])
    # An image of one pixel is both planar and in blocks.
    block = BLOCK if stored(node.outputs[0]).layout else 1
    read = BLOCK if any(stored(value).layout for value in inputs) else block
    sources = [image_of(value)._replace(block=read) for value in inputs]
    out = out._replace(block=block)
    planes = read // block
    high, wide = _ints(node, "window", [1, 1])
    top, left, *_ = _ints(node, "crop", [0, 0, 0, 0])
    items = f"{in_c(out.batch)} * {in_c(product((-(-out.planes // planes), out.height)))}"
    work = f"{in_c(out.batch)} * {in_c(out.nfloats)}"
    images = ", ".join(source.in_c(f"x{i}") for i, source in enumerate(sources))
    body = f"""\
  const struct images images = {{{{{images}}}, {out.in_c("y0")}}};
  return dso_op_parallel(item, &images, {items}, {work});
"""
    before = _INTERLEAVE.format(
        inputs=len(inputs),
        each=high * wide // len(inputs),
        high=high,
        wide=wide,
        top=top,
        left=left,
        block=block,
        read=read,
        planes=planes,
    )
    return operator_of(
        "interleave", body, inputs, node.outputs, parts=["elementwise"], before=before
    )

"""Operators of sequences whose lengths data decides, as Loops: graphs in ONNX's text form."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx_ir as ir


def concatenation(rank: int, axis: int, is_new: bool) -> str:
    """Return the graph of a ConcatFromSequence; `rank` is that of a tensor."""
    axis %= rank + is_new
    if is_new:
        perm = [*range(1, rank + 1)]
        perm.insert(axis, 0)
        return f"""g (float s) => (float y) {{
          n = SequenceLength(s)
          rows = Loop(n, ) <body = b (int64 i, bool c) => (bool d, float t)
            {{ d = Identity(c) t = SequenceAt(s, i) }}>
          y = Transpose<perm = {perm}>(rows) }}"""
    return f"""g (float s) => (float y) <int64 zero = {{0}}, int64 one = {{1}}> {{
      n = SequenceLength(s) m = Sub(n, one) first = SequenceAt(s, zero)
      y = Loop(m, , first) <body = b (int64 i, bool c, float t) => (bool d, float u)
        {{ d = Identity(c) j = Add(i, one) v = SequenceAt(s, j) u = Concat<axis = {axis}>(t, v) }}>
    }}"""


def parts_of(axis: int, size: int, keeps: bool, dtype: int) -> str:
    """Return the graph of a SplitToSequence of an open extent, with parts of a known size."""
    part = f"y = Gather<axis = {axis}>(x, i)"
    if keeps:
        part = "start = Mul(i, size) end = Add(start, size) y = Slice(x, start, end, axes)"
    return f"""g (float x) => (float s)
      <int64[1] size = {{{size}}}, int64[1] axes = {{{axis}}}, int64[1] last = {{{size - 1}}}> {{
      extent = Shape<start = {axis}, end = {axis + 1}>(x)
      whole = Add(extent, last) count = Div(whole, size) n = Squeeze(count)
      empty = SequenceEmpty<dtype = {dtype}>()
      s = Loop(n, , empty) <body = b (int64 i, bool c, float t) => (bool d, float u)
        {{ d = Identity(c) {part} u = SequenceInsert(t, y) }}> }}"""


def parts_of_sizes(axis: int, has_one: bool, dtype: int) -> str:
    """Return the graph of a SplitToSequence by data: the size of each part, or one of them all.

    The first Split compares the sum of the sizes with the extent, the second one each size with
    what is left.
    """
    sizes = "total = ReduceSum<keepdims = 1>(size) sizes = Identity(size)"
    if has_one:
        sizes = """limit = Squeeze(extent) most = Max(limit, one) step = Min(size, most)
          start = Range(zero, limit, step) rest = Sub(extent, start) sizes = Min(step, rest)
          sum = ReduceSum<keepdims = 1>(sizes) negative = Min(step, none)
          total = Add(sum, negative)"""
    return f"""g (float x, int64 size) => (float s)
      <int64[1] axes = {{{axis}}}, int64[1] none = {{0}}, int64 zero = {{0}}, int64 one = {{1}}> {{
      extent = Shape<start = {axis}, end = {axis + 1}>(x)
      {sizes}
      whole = Split<axis = {axis}>(x, total)
      count = Shape(sizes) n = Squeeze(count)
      empty = SequenceEmpty<dtype = {dtype}>()
      s, last = Loop(n, , empty, none)
        <body = b (int64 i, bool c, float t, int64 begin) => (bool d, float u, int64 end)
        {{ d = Identity(c) k = Unsqueeze(i, none) part = Gather(sizes, k) end = Add(begin, part)
          found = Slice(whole, begin, end, axes) y = Split<axis = {axis}>(found, part)
          u = SequenceInsert(t, y) }}> }}"""


def parsed_graph(text: str, stem: str) -> ir.Graph:
    """Return a graph; the names of its values begin with `stem`."""
    import onnx.parser
    import onnx_ir as ir

    graph = ir.from_proto(onnx.parser.parse_graph(text))
    rename_values(graph, stem)
    return graph


def rename_values(graph: ir.Graph, stem: str) -> None:
    """Let the names of a graph's values begin with `stem`."""
    from .types import graphs_of

    values = [*graph.inputs, *graph.initializers.values()]
    for node in graph:
        values += node.outputs
        for inner in graphs_of(node):
            rename_values(inner, stem)
    for value in values:
        value.name = f"{stem}_{value.name}"

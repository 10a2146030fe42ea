"""Operators that ONNX Runtime's tools write, as functions of ONNX's operators.

Each row of the table makes the statements of one operator in ONNX's text form. Inputs are `i0`,
`i1`, ..., outputs `y0`, `y1`, ...; the inliner of ONNX puts them in place of the node. A Clip that
has a name checks the input of this name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any

from . import contrib_attention as attention
from . import contrib_bytes as of_bytes
from .contrib_bytes import real
from .contrib_text import (
    CAST_LIKE_SINCE,
    LAST_AXES_SINCE,
    REFUSED,
    Call,
    UnsupportedError,
    extent,
    integer_range,
    integers,
    number,
    written,
)
from .graphs import all_nodes
from .words import name_of_node, refusal

_DOMAIN = "com.microsoft"


def _mean(name: str, of: str, call: Call) -> str:
    if call.opset < LAST_AXES_SINCE:
        return f" {name} = ReduceMean<axes = [-1]>({of})"
    return f"{integers(f'{name}a', -1)} {name} = ReduceMean({of}, {name}a)"


def _root_mean_square(x: str, scale: str, call: Call, epsilon: float = 1e-12) -> str:
    """Return x / sqrt(mean of x * x + epsilon) * scale, as `y0`; the epsilon is a default."""
    text = f"{_widened('l', x, call)}{_scaled('n', x, call, epsilon)}"
    return f"{text} y0 = Mul(n, {scale})"


def _normal(x: str, scale: str, bias: str, call: Call) -> str:
    text = f"{_widened('f', x, call)}{_mean('c', 'f', call)} l = Sub(f, c)"
    text += f"{_scaled('n', x, call, 1e-12)} s = Mul(n, {scale})"
    return f"{text} y0 = {f'Add(s, {bias})' if bias else 'Identity(s)'}"


def _widened(name: str, of: str, call: Call) -> str:
    """Return float16 as float32, whose least numbers are below an epsilon."""
    kind = "Cast<to = 1>" if call.opset >= CAST_LIKE_SINCE else "Identity"
    return f" {name} = {kind}({of})"


def _scaled(name: str, like: str, call: Call, epsilon: float) -> str:
    """Return `l` / sqrt(mean of l * l + epsilon), of the data type of `like`."""
    text = f" q = Mul(l, l){_mean('m', 'q', call)}"
    text += f" e = Constant<value = float {{{call.number('epsilon', epsilon)!r}}}>()"
    text += " v = Add(m, e) d = Sqrt(v)"
    if call.opset < CAST_LIKE_SINCE:
        return f"{text} {name} = Div(l, d)"
    return f"{text} u = Div(l, d) {name} = CastLike(u, {like})"


def _simplified(call: Call) -> str:
    axis, rank = call.attributes.get("axis", -1), call.rank(0)
    if axis != -1 and (rank is None or axis != rank - 1):
        raise UnsupportedError(f"axis {axis}, which may not be the last one")
    return _root_mean_square("i0", "i1", call, 1e-5)


def _skip(call: Call) -> str:
    """Return the normalization of a sum, which is the fourth output."""
    is_simple = "beta" not in call.attributes
    bias = 3 if is_simple else 4
    text = f" t = Add(i0, i1) y3 = {f'Add(t, i{bias})' if call.has(bias) else 'Identity(t)'}"
    if is_simple:
        return text + _root_mean_square("y3", "i2", call)
    return text + _normal("y3", "i2", "i3" if call.has(3) else "", call)


def _embedded(call: Call) -> str:
    if not call.has(8):
        raise UnsupportedError("positions that are not given")
    return _embedding([f"i{i}" for i in range(8)], "i8", call)


def _quantised_embedded(call: Call) -> str:
    """Return the same of five tables of integers; a position is the column of its token."""
    text = "".join(real(f"t{i}", call, i, 6 + i, 11 + i) for i in range(2, 7) if call.has(i))
    text += f"{extent('tokens', 'i0', 1)}{integer_range('at', 'tokens')}"
    return text + _embedding(["i0", "i1", *(f"t{i}" for i in range(2, 7))], "at", call)


def _embedding(tables: list[str], positions: str, call: Call) -> str:
    if call.has(7):
        raise UnsupportedError("a mask, whose lengths are an output")
    ids, kinds, words, places, of_kinds, scale, bias = tables[:7]
    text = f" w = Gather({words}, {ids}) p = Gather({places}, {positions}) t = Add(w, p)"
    text += (
        f" g = Gather({of_kinds}, {kinds}) y2 = Add(t, g)" if call.has(1) else " y2 = Identity(t)"
    )
    return text + _normal("y2", scale, bias, call)


def _gelu(x: str, call: Call) -> str:
    numbers = {"h": 0.5, "one": 1.0, "k": 0.7071067811865476}
    text = "".join(number(name, value, x, call) for name, value in numbers.items())
    return f"{text} a = Mul({x}, k) f = Erf(a) g = Add(f, one) o = Mul({x}, g) y0 = Mul(o, h)"


def _fast_gelu(call: Call) -> str:
    text = " x = Add(i0, i1)" if call.has(1) else " x = Identity(i0)"
    for name, value in (("h", 0.5), ("one", 1.0), ("k", 0.7978845608028654), ("c", 0.044715)):
        text += number(name, value, "x", call)
    text += " s = Mul(x, x) w = Mul(s, x) b = Mul(w, c) u = Add(x, b) z = Mul(u, k) f = Tanh(z)"
    return text + " g = Add(f, one) o = Mul(x, g) y0 = Mul(o, h)"


def _activated(x: str, call: Call) -> str:
    """Return the activation that an attribute names."""
    kind = call.attributes.get("activation", b"").decode()
    numbers = [float(one) for one in call.attributes.get("activation_params", ())]
    numbers = numbers or [call.number(f"activation_{name}", 0.01) for name in ("alpha", "beta")]
    if not kind:
        return f" y0 = Identity({x})"
    if kind in ("Relu", "Tanh", "Sigmoid"):
        return f" y0 = {kind}({x})"
    if kind == "LeakyRelu":
        return f" y0 = LeakyRelu<alpha = {numbers[0]!r}>({x})"
    if kind == "HardSigmoid":
        return f" y0 = HardSigmoid<alpha = {numbers[0]!r}, beta = {numbers[1]!r}>({x})"
    if kind == "Clip":
        limits = zip(("low", "high"), numbers, strict=True)
        text = "".join(number(name, value, x, call) for name, value in limits)
        return f"{text} y0 = Clip({x}, low, high)"
    raise UnsupportedError(f"the activation {kind!r}")


def _conv(call: Call) -> str:
    own = {k: v for k, v in call.attributes.items() if not k.startswith("activation")}
    inputs = ", ".join(f"i{i}" for i in range(3) if call.has(i))
    added = " s = Add(r, i3)" if call.has(3) else " s = Identity(r)"
    return f" r = Conv{written(own)}({inputs}){added}{_activated('s', call)}"


def _gemm(call: Call) -> str:
    own = {k: v for k, v in call.attributes.items() if k in ("alpha", "beta", "transA", "transB")}
    inputs = ", ".join(f"i{i}" for i in range(3) if call.has(i))
    return f" r = Gemm{written(own)}({inputs}){_activated('r', call)}"


def _matmul(call: Call) -> str:
    if call.attributes.get("transBatchA") or call.attributes.get("transBatchB"):
        raise UnsupportedError("transBatchA and transBatchB")
    names, text = [], ""
    for index, letter in enumerate("AB"):
        names.append(f"i{index}")
        if not call.attributes.get(f"trans{letter}"):
            continue
        rank = call.rank(index)
        if rank is None:
            raise UnsupportedError(f"trans{letter} of a value whose rank the model does not say")
        perm = [*range(rank)]
        perm[-2:] = perm[:-3:-1]
        names[-1] = f"t{index}"
        text += f" t{index} = Transpose<perm = {perm}>(i{index})"
    text += f" r = MatMul({', '.join(names)})"
    return f"{text}{number('k', call.number('alpha', 1.0), 'r', call)} y0 = Mul(r, k)"


_POOL = ("auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides")
_ROWS: dict[str, Callable[[Call], str]] = {
    "Attention": attention.attention,
    "BiasGelu": lambda call: " x = Add(i0, i1)" + _gelu("x", call),
    "DequantizeLinear": of_bytes.scaled("DequantizeLinear"),
    "DynamicQuantizeMatMul": of_bytes.dynamic_matmul,
    "EmbedLayerNormalization": _embedded,
    "FastGelu": _fast_gelu,
    "FusedConv": _conv,
    "FusedGemm": _gemm,
    "FusedMatMul": _matmul,
    "GatherBlockQuantized": of_bytes.gather,
    "Gelu": lambda call: _gelu("i0", call),
    "GroupQueryAttention": attention.group_query_attention,
    "MatMulIntegerToFloat": of_bytes.integer_matmul,
    "MultiHeadAttention": attention.multi_head_attention,
    "QAttention": attention.quantised_attention,
    "QEmbedLayerNormalization": _quantised_embedded,
    "QGemm": of_bytes.gemm,
    "QLinearAdd": of_bytes.quantised("Add", 2),
    "QLinearAveragePool": of_bytes.quantised("AveragePool", 1, *_POOL),
    "QLinearConcat": of_bytes.joined,
    "QLinearGlobalAveragePool": of_bytes.quantised("GlobalAveragePool", 1),
    "QLinearLeakyRelu": of_bytes.quantised("LeakyRelu", 1, "alpha"),
    "QLinearMul": of_bytes.quantised("Mul", 2),
    "QLinearSigmoid": of_bytes.quantised("Sigmoid", 1),
    "QLinearSoftmax": of_bytes.softmax,
    "QLinearWhere": of_bytes.where,
    "QuantizeLinear": of_bytes.scaled("QuantizeLinear"),
    "QuickGelu": lambda call: (
        f"{number('k', call.number('alpha', 1.702), 'i0', call)} a = Mul(i0, k)"
        " s = Sigmoid(a) y0 = Mul(i0, s)"
    ),
    "RotaryEmbedding": attention.rotary_embedding,
    "SimplifiedLayerNormalization": _simplified,
    "SkipLayerNormalization": lambda call: _skip(
        call._replace(attributes={**call.attributes, "beta": 1})
    ),
    "SkipSimplifiedLayerNormalization": _skip,
}


def define_contrib(model: Any, weights: Mapping[str, Any], source: str) -> None:
    """Add the functions of such nodes to a ModelProto, and let the nodes call them.

    `weights` are its large constants.

    Raises ExportError if a node has an input or an attribute for which there is no row.
    """
    import onnx

    opset = max(
        (one.version for one in model.opset_import if one.domain in ("", "ai.onnx")), default=1
    )
    known = {function.name for function in model.functions if function.domain == _DOMAIN}
    shapes = {name: (*map(int, one.shape),) for name, one in weights.items()} | _shapes(model.graph)
    nodes = [*all_nodes(model.graph.node)]
    read = {name for node in nodes for name in node.input} | {
        one.name for one in model.graph.output
    }
    for node in nodes:
        is_here = node.domain == _DOMAIN or node.op_type == "SimplifiedLayerNormalization"
        if not is_here or node.op_type not in _ROWS or node.op_type in known:
            continue
        attributes = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
        call = Call(
            [bool(name) for name in node.input],
            attributes,
            opset,
            [shapes.get(name) for name in node.input],
        )
        try:
            body = _ROWS[node.op_type](call)
        except UnsupportedError as error:
            text = (
                f"{name_of_node(node)}: {node.op_type} with {error} is not supported; write it with"
            )
            raise refusal(source, f"{text} ONNX's operators") from None
        outputs = [f"y{i}" for i, name in enumerate(node.output)]
        kept = [name for name in outputs if f" {name} =" in f" {body}"]
        for name, of_node in zip(outputs, node.output, strict=True):
            if name not in kept and of_node in read:
                text = f"{name_of_node(node)}: output {name[1:]} of {node.op_type}"
                raise refusal(source, f"{text} is not supported; leave it out")
        inputs = [f"i{i}" for i in range(len(node.input))]
        name = f"{node.op_type}_{blake2b(body.encode(), digest_size=4).hexdigest()}"
        head = f'<domain: "{_DOMAIN}", opset_import: ["" : {opset}]>'
        if name not in known:
            known.add(name)
            text = f"{head} {name} ({', '.join(inputs)}) => ({', '.join(kept)}) {{ {body} }}"
            model.functions.append(_parsed(text, node.op_type))
        used = [one for one, of in zip(node.output, outputs, strict=True) if of in kept]
        del node.output[:], node.attribute[:]
        node.output.extend(used)
        node.op_type, node.domain = name, _DOMAIN
    if known and all(one.domain != _DOMAIN for one in model.opset_import):
        model.opset_import.add(domain=_DOMAIN, version=1)


def _parsed(text: str, operator: str) -> Any:
    """Return a function whose nodes with names say what they refuse."""
    import onnx.parser

    function = onnx.parser.parse_function(text)
    for node in function.node:
        if node.name:
            node.metadata_props.add(key=REFUSED, value=f"{operator}: {node.name}")
    return function


def _shapes(graph: Any) -> dict[str, tuple[int, ...]]:
    """Return the shapes that a model says, by the names of values; 0 is open."""
    shapes = {one.name: (*one.dims,) for one in graph.initializer}
    for value in (*graph.input, *graph.value_info):
        if value.type.tensor_type.HasField("shape"):
            shapes[value.name] = (*(one.dim_value for one in value.type.tensor_type.shape.dim),)
    return shapes

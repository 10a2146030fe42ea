"""Operators that ONNX Runtime's tools write, as functions of ONNX's operators.

Each row of the table makes the statements of one operator in ONNX's text form. Inputs are `i0`,
`i1`, ..., outputs `y0`, `y1`, ...; the inliner of ONNX puts them in place of the node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

from .graphs import all_nodes
from .words import name_of_node, refusal

_DOMAIN = "com.microsoft"
_CAST_LIKE_SINCE = 15  # before it, numbers are float32
_LAST_AXES_SINCE = 18  # the opset from which the axes of a ReduceMean are an input


class Call(NamedTuple):
    """A node, as its row sees it."""

    given: list[bool]  # for each input whether it is there
    attributes: dict[str, Any]
    opset: int
    ranks: list[int | None]  # of the inputs, where the model says them

    def has(self, index: int) -> bool:
        """Return True if an input is given."""
        return index < len(self.given) and self.given[index]

    def number(self, name: str, default: float) -> float:
        """Return an attribute."""
        return float(self.attributes.get(name, default))


class _UnsupportedError(Exception):
    """A part of a node that no row has; the text names it."""


def _ranked(name: str, index: int, rank: int, call: Call) -> str:
    """Return the statement of an input with so many axes: a Transpose refuses others."""
    if call.ranks[index] not in (rank, None):
        raise _UnsupportedError(f"input {index} of {call.ranks[index]} axes, not {rank}")
    return f" {name} = Transpose<perm = {[*range(rank)]}>(i{index})"


def _real(name: str, first: int, call: Call, axis: str = "") -> str:
    zero = f", i{first + 2}" if call.has(first + 2) else ""
    return f" {name} = DequantizeLinear{axis}(i{first}, i{first + 1}{zero})"


def _rounded(name: str, scale: int, call: Call) -> str:
    zero = f", i{scale + 1}" if call.has(scale + 1) else ""
    return f" y0 = QuantizeLinear({name}, i{scale}{zero})"


def _quantised(operator: str, count: int, *names: str) -> Callable[[Call], str]:
    """Return a row: the operator on `count` inputs, each with a scale and a zero."""

    def row(call: Call) -> str:
        if call.attributes.get("channels_last"):
            raise _UnsupportedError("channels_last")
        inputs = "".join(_real(f"r{i}", 3 * i, call) for i in range(count))
        values = ", ".join(f"r{i}" for i in range(count))
        known = {name: call.attributes[name] for name in names if name in call.attributes}
        return f"{inputs} r = {operator}{_written(known)}({values}){_rounded('r', 3 * count, call)}"

    return row


def _written(attributes: dict[str, Any]) -> str:
    def one(value: Any) -> str:
        if isinstance(value, bytes):
            return f'"{value.decode()}"'
        return str(list(value)) if isinstance(value, (list, tuple)) else repr(value)

    texts = [f"{name} = {one(value)}" for name, value in attributes.items()]
    return f"<{', '.join(texts)}>" if texts else ""


def _joined(call: Call) -> str:
    count = len(call.given) // 3
    inputs = "".join(_real(f"r{i}", 2 + 3 * i, call) for i in range(count))
    values = ", ".join(f"r{i}" for i in range(count))
    axis = _written({"axis": call.attributes.get("axis", 0)})
    return f"{inputs} r = Concat{axis}({values}){_rounded('r', 0, call)}"


def _number(name: str, value: float, like: str, call: Call) -> str:
    """Return a constant of the data type of `like`."""
    constant = f"Constant<value = float {{{value!r}}}>()"
    if call.opset < _CAST_LIKE_SINCE:
        return f" {name} = {constant}"
    return f" {name}f = {constant} {name} = CastLike({name}f, {like})"


def _cast(name: str, of: str, like: str, call: Call) -> str:
    kind = f"CastLike({of}, {like})" if call.opset >= _CAST_LIKE_SINCE else f"Cast<to = 1>({of})"
    return f" {name} = {kind}"


def _mean(name: str, of: str, call: Call) -> str:
    if call.opset < _LAST_AXES_SINCE:
        return f" {name} = ReduceMean<axes = [-1]>({of})"
    return f" {name}a = Constant<value = int64[1] {{-1}}>() {name} = ReduceMean({of}, {name}a)"


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
    kind = "Cast<to = 1>" if call.opset >= _CAST_LIKE_SINCE else "Identity"
    return f" {name} = {kind}({of})"


def _scaled(name: str, like: str, call: Call, epsilon: float) -> str:
    """Return `l` / sqrt(mean of l * l + epsilon), of the data type of `like`."""
    text = f" q = Mul(l, l){_mean('m', 'q', call)}"
    text += f" e = Constant<value = float {{{call.number('epsilon', epsilon)!r}}}>()"
    text += " v = Add(m, e) d = Sqrt(v)"
    if call.opset < _CAST_LIKE_SINCE:
        return f"{text} {name} = Div(l, d)"
    return f"{text} u = Div(l, d) {name} = CastLike(u, {like})"


def _simplified(call: Call) -> str:
    axis, rank = call.attributes.get("axis", -1), call.ranks[0]
    if axis != -1 and (rank is None or axis != rank - 1):
        raise _UnsupportedError(f"axis {axis}, which may not be the last one")
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
    if call.has(7):
        raise _UnsupportedError("a mask, whose lengths are an output")
    if not call.has(8):
        raise _UnsupportedError("positions that are not given")
    text = " w = Gather(i2, i0) p = Gather(i3, i8) t = Add(w, p)"
    text += " g = Gather(i4, i1) y2 = Add(t, g)" if call.has(1) else " y2 = Identity(t)"
    return text + _normal("y2", "i5", "i6", call)


def _gelu(x: str, call: Call) -> str:
    numbers = {"h": 0.5, "one": 1.0, "k": 0.7071067811865476}
    text = "".join(_number(name, value, x, call) for name, value in numbers.items())
    return f"{text} a = Mul({x}, k) f = Erf(a) g = Add(f, one) o = Mul({x}, g) y0 = Mul(o, h)"


def _fast_gelu(call: Call) -> str:
    text = " x = Add(i0, i1)" if call.has(1) else " x = Identity(i0)"
    for name, value in (("h", 0.5), ("one", 1.0), ("k", 0.7978845608028654), ("c", 0.044715)):
        text += _number(name, value, "x", call)
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
        text = "".join(_number(name, value, x, call) for name, value in limits)
        return f"{text} y0 = Clip({x}, low, high)"
    raise _UnsupportedError(f"the activation {kind!r}")


def _conv(call: Call) -> str:
    own = {k: v for k, v in call.attributes.items() if not k.startswith("activation")}
    inputs = ", ".join(f"i{i}" for i in range(3) if call.has(i))
    added = " s = Add(r, i3)" if call.has(3) else " s = Identity(r)"
    return f" r = Conv{_written(own)}({inputs}){added}{_activated('s', call)}"


def _gemm(call: Call) -> str:
    own = {k: v for k, v in call.attributes.items() if k in ("alpha", "beta", "transA", "transB")}
    inputs = ", ".join(f"i{i}" for i in range(3) if call.has(i))
    return f" r = Gemm{_written(own)}({inputs}){_activated('r', call)}"


def _quantised_gemm(call: Call) -> str:
    own = {k: v for k, v in call.attributes.items() if k in ("alpha", "transA", "transB")}
    axis = "<axis = 0>" if call.attributes.get("transB") else ""  # that of the columns
    text = _real("a", 0, call) + _real("b", 3, call, axis)
    if call.has(6):
        text += f" w = Mul(i1, i4){_cast('f', 'i6', 'w', call)} c = Mul(f, w)"
        text += f"{_number('k', call.number('alpha', 1.0), 'w', call)} d = Mul(c, k)"
    text += f" r = Gemm{_written(own)}(a, b{', d' if call.has(6) else ''})"
    return text + (_rounded("r", 7, call) if call.has(7) else " y0 = Identity(r)")


def _matmul(call: Call) -> str:
    if call.attributes.get("transBatchA") or call.attributes.get("transBatchB"):
        raise _UnsupportedError("transBatchA and transBatchB")
    names, text = [], ""
    for index, letter in enumerate("AB"):
        names.append(f"i{index}")
        if not call.attributes.get(f"trans{letter}"):
            continue
        rank = call.ranks[index]
        if rank is None:
            raise _UnsupportedError(f"trans{letter} of a value whose rank the model does not say")
        perm = [*range(rank)]
        perm[-2:] = perm[:-3:-1]
        names[-1] = f"t{index}"
        text += f" t{index} = Transpose<perm = {perm}>(i{index})"
    text += f" r = MatMul({', '.join(names)})"
    return f"{text}{_number('k', call.number('alpha', 1.0), 'r', call)} y0 = Mul(r, k)"


def _heads(value: str, name: str, count: int, perm: str) -> str:
    shape = f" {name}s = Constant<value = int64[4] {{0, 0, {count}, -1}}>()"
    return f"{shape} {name}r = Reshape({value}, {name}s) {name} = Transpose<perm = {perm}>({name}r)"


def _attended(call: Call, mask: str) -> str:
    """Return softmax of q and k times v for `qi`, `ki`, `vi` of (batch, rows, columns), as `y0`."""
    heads = int(call.attributes.get("num_heads", 0))
    if call.attributes.get("unidirectional"):
        raise _UnsupportedError("unidirectional")
    text = _heads("qi", "q", heads, "[0, 2, 1, 3]") + _heads("ki", "k", heads, "[0, 2, 3, 1]")
    text += _heads("vi", "v", heads, "[0, 2, 1, 3]") + " p = MatMul(q, k)"
    if call.number("scale", 0.0):
        text += f"{_number('f', call.number('scale', 0.0), 'p', call)} w = Mul(p, f)"
    else:
        text += " hs = Shape(q) li = Constant<value = int64[1] {3}>() hn = Gather(hs, li)"
        text += f"{_cast('hf', 'hn', 'p', call)} hr = Sqrt(hf) w = Div(p, hr)"
    text += f" z = Add(w, {mask})" if mask else " z = Identity(w)"
    text += " o = Softmax<axis = -1>(z) x = MatMul(o, v) xt = Transpose<perm = [0, 2, 1, 3]>(x)"
    return f"{text} ys = Constant<value = int64[3] {{0, 0, -1}}>() y0 = Reshape(xt, ys)"


def _thirds(axis: int, call: Call) -> str:
    count = ", num_outputs = 3" if call.opset >= _LAST_AXES_SINCE else ""
    return f"Split<axis = {axis}{count}>"


def _multi_head_attention(call: Call) -> str:
    if call.has(4) or any(call.given[6:]) or not (call.has(1) and call.has(2)):
        raise _UnsupportedError("packed or cached keys, or a key_padding_mask")
    text = f" bq, bk, bv = {_thirds(0, call)}(i3)" if call.has(3) else ""
    for i, name in enumerate("qkv"):
        text += _ranked(f"{name}x", i, 3, call)
        text += f" {name}i = {f'Add({name}x, b{name})' if call.has(3) else f'Identity({name}x)'}"
    return text + _attended(call, "i5" if call.has(5) else "")


def _attention(call: Call) -> str:
    if call.has(4) or any(call.given[6:]) or call.attributes.get("qkv_hidden_sizes"):
        raise _UnsupportedError("past keys, or sizes of q, k and v")
    if call.attributes.get("do_rotary"):
        raise _UnsupportedError("do_rotary")
    text = " w0 = MatMul(i0, i1)" + (" wb = Add(w0, i2)" if call.has(2) else " wb = Identity(w0)")
    text += f" qi, ki, vi = {_thirds(2, call)}(wb)"
    mask = ""
    if call.has(3):  # of (batch, keys), not lengths
        low = call.number("mask_filter_value", -10000.0)
        text += f"{_ranked('mt', 3, 2, call)}{_cast('mf', 'mt', 'w0', call)}"
        text += f"{_number('mo', 1.0, 'w0', call)}{_number('ml', low, 'w0', call)}"
        text += " mn = Sub(mo, mf) mm = Mul(mn, ml)"
        text += " ms = Constant<value = int64[4] {0, 1, 1, -1}>() mask = Reshape(mm, ms)"
        mask = "mask"
    if call.has(5):
        text += f" bias = {f'Add({mask}, i5)' if mask else 'Identity(i5)'}"
        mask = "bias"
    return text + _attended(call, mask)


_POOL = ("auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides")
_ROWS: dict[str, Callable[[Call], str]] = {
    "Attention": _attention,
    "BiasGelu": lambda call: " x = Add(i0, i1)" + _gelu("x", call),
    "EmbedLayerNormalization": _embedded,
    "FastGelu": _fast_gelu,
    "FusedConv": _conv,
    "FusedGemm": _gemm,
    "FusedMatMul": _matmul,
    "Gelu": lambda call: _gelu("i0", call),
    "MultiHeadAttention": _multi_head_attention,
    "QGemm": _quantised_gemm,
    "QLinearAdd": _quantised("Add", 2),
    "QLinearAveragePool": _quantised("AveragePool", 1, *_POOL),
    "QLinearConcat": _joined,
    "QLinearGlobalAveragePool": _quantised("GlobalAveragePool", 1),
    "QLinearLeakyRelu": _quantised("LeakyRelu", 1, "alpha"),
    "QLinearMul": _quantised("Mul", 2),
    "QLinearSigmoid": _quantised("Sigmoid", 1),
    "QuickGelu": lambda call: (
        f"{_number('k', call.number('alpha', 1.702), 'i0', call)} a = Mul(i0, k)"
        " s = Sigmoid(a) y0 = Mul(i0, s)"
    ),
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
    import onnx.parser

    opset = max(
        (one.version for one in model.opset_import if one.domain in ("", "ai.onnx")), default=1
    )
    known = {function.name for function in model.functions if function.domain == _DOMAIN}
    ranks = {name: len(weight.shape) for name, weight in weights.items()} | _ranks(model.graph)
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
            [ranks.get(name) for name in node.input],
        )
        try:
            body = _ROWS[node.op_type](call)
        except _UnsupportedError as error:
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
            model.functions.append(onnx.parser.parse_function(text))
        used = [one for one, of in zip(node.output, outputs, strict=True) if of in kept]
        del node.output[:], node.attribute[:]
        node.output.extend(used)
        node.op_type, node.domain = name, _DOMAIN
    if known and all(one.domain != _DOMAIN for one in model.opset_import):
        model.opset_import.add(domain=_DOMAIN, version=1)


def _ranks(graph: Any) -> dict[str, int]:
    """Return the ranks that a model says, by the names of values."""
    ranks = {one.name: len(one.dims) for one in graph.initializer}
    for value in (*graph.input, *graph.value_info):
        if value.type.tensor_type.HasField("shape"):
            ranks[value.name] = len(value.type.tensor_type.shape.dim)
    return ranks

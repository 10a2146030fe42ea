"""The rows of read/contrib.py that compute with integers of 8 bits."""

from __future__ import annotations

from collections.abc import Callable

from .contrib_text import Call, UnsupportedError, cast, number, written

_BLOCKS_SINCE = 21  # the opset from which a DequantizeLinear has blocks


def real(name: str, call: Call, index: int, scale: int, zero: int, axis: str = "") -> str:
    """Return an input as real numbers; `scale` and `zero` are inputs too."""
    last = f", i{zero}" if call.has(zero) else ""
    return f" {name} = DequantizeLinear{axis}(i{index}, i{scale}{last})"


def _real(name: str, first: int, call: Call, axis: str = "") -> str:
    return real(name, call, first, first + 1, first + 2, axis)


def _rounded(name: str, scale: int, call: Call) -> str:
    zero = f", i{scale + 1}" if call.has(scale + 1) else ""
    return f" y0 = QuantizeLinear({name}, i{scale}{zero})"


def quantised(operator: str, count: int, *names: str) -> Callable[[Call], str]:
    """Return a row: the operator on `count` inputs, each with a scale and a zero."""

    def row(call: Call) -> str:
        call.refuse("channels_last")
        inputs = "".join(_real(f"r{i}", 3 * i, call) for i in range(count))
        values = ", ".join(f"r{i}" for i in range(count))
        known = {name: call.attributes[name] for name in names if name in call.attributes}
        return f"{inputs} r = {operator}{written(known)}({values}){_rounded('r', 3 * count, call)}"

    return row


def joined(call: Call) -> str:
    """Return Concat of inputs of different scales."""
    count = len(call.given) // 3
    inputs = "".join(_real(f"r{i}", 2 + 3 * i, call) for i in range(count))
    values = ", ".join(f"r{i}" for i in range(count))
    axis = written({"axis": call.attributes.get("axis", 0)})
    return f"{inputs} r = Concat{axis}({values}){_rounded('r', 0, call)}"


def gemm(call: Call) -> str:
    """Return Gemm of two matrices and a bias of 32 bits."""
    own = {k: v for k, v in call.attributes.items() if k in ("alpha", "transA", "transB")}
    axis = "<axis = 0>" if call.attributes.get("transB") else ""  # that of the columns
    text = _real("a", 0, call) + _real("b", 3, call, axis)
    if call.has(6):
        text += f" w = Mul(i1, i4){cast('f', 'i6', 'w', call)} c = Mul(f, w)"
        text += f"{number('k', call.number('alpha', 1.0), 'w', call)} d = Mul(c, k)"
    text += f" r = Gemm{written(own)}(a, b{', d' if call.has(6) else ''})"
    return text + (_rounded("r", 7, call) if call.has(7) else " y0 = Identity(r)")


def where(call: Call) -> str:
    """Return a choice between two inputs of different scales."""
    inputs = _real("a", 1, call) + _real("b", 4, call)
    return f"{inputs} r = Where(i0, a, b){_rounded('r', 7, call)}"


def softmax(call: Call) -> str:
    """Return Softmax, which before opset 13 is one of all axes from its own on."""
    if call.count("opset", 13) < 13 and call.count("axis", -1) not in (-1, (call.rank(0) or 0) - 1):
        raise UnsupportedError("an axis before the last one, of an opset before 13")
    axis = written({"axis": call.count("axis", -1)})
    return f"{_real('x', 0, call)} r = Softmax{axis}(x){_rounded('r', 3, call)}"


def scaled(operator: str) -> Callable[[Call], str]:
    """Return a row: a conversion between real numbers and integers, along an axis."""

    def row(call: Call) -> str:
        zero = ", i2" if call.has(2) else ""
        axis = "" if call.rank(1) == 0 else written({"axis": call.count("axis", 1)})
        return f" y0 = {operator}{axis}(i0, i1{zero})"

    return row


def integer_product(
    name: str, a: str, scale: str, zero: str, weight: tuple[int, int], call: Call
) -> str:
    """Return a times `i1`, as real numbers; `weight` has the inputs of its scale and its zero."""
    zeros = [zero] if zero else []
    if call.has(weight[1]):
        if not zero:
            raise UnsupportedError("a zero of its second matrix only")
        zeros.append(f"i{weight[1]}")
    text = f" {name}i = MatMulInteger({', '.join((a, 'i1', *zeros))})"
    text += f" {name}f = Cast<to = 1>({name}i) {name}s = Mul({scale}, i{weight[0]})"
    return f"{text} {name} = Mul({name}f, {name}s)"


def integer_matmul(call: Call) -> str:
    """Return a product of integers as real numbers, plus a bias."""
    zero = "i4" if call.has(4) else ""
    text = integer_product("r", "i0", "i2", zero, (3, 5), call)
    return text + (" y0 = Add(r, i6)" if call.has(6) else " y0 = Identity(r)")


def dynamic_matmul(call: Call) -> str:
    """Return such a product of real numbers, which are rounded first."""
    text = " q, s, z = DynamicQuantizeLinear(i0)" + integer_product(
        "r", "q", "s", "z", (2, 3), call
    )
    return text + (" y0 = Add(r, i4)" if call.has(4) else " y0 = Identity(r)")


def gather(call: Call) -> str:
    """Return rows of a table of integers in blocks, which share a scale."""
    axis, block = call.count("quantize_axis", 1), call.count("block_size", 128)
    found = (call.extent(0, axis), call.extent(2, axis))
    if call.opset < _BLOCKS_SINCE or found[1] != -(-found[0] // block):
        text = f"{found[0]} columns and {found[1]} blocks of {block}"
        raise UnsupportedError(
            f"{text}, two integers in a byte, or an opset before {_BLOCKS_SINCE}"
        )
    zero, blocks = ", i3" if call.has(3) else "", {"axis": axis, "block_size": block}
    rows = written({"axis": call.count("gather_axis")})
    return f" t = DequantizeLinear{written(blocks)}(i0, i2{zero}) y0 = Gather{rows}(t, i1)"

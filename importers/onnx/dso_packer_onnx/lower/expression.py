"""Elementwise operators of ONNX as C expressions over vectors of float32."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from .epilogue import float_in_c

if TYPE_CHECKING:
    from collections.abc import Callable

    import onnx_ir as ir


def _alpha(node: ir.Node, default: float, name: str = "alpha") -> str:
    return f"splat({float_in_c(node.attributes.get_float(name, default))})"


def _function(name: str, node: ir.Node, args: list[str]) -> str:
    return f"each_{name}({args[0]})"


def _limited(x: str, low: str, high: str) -> str:
    return f"each_min(each_max({x}, {low}), {high})"


def _clip(node: ir.Node, args: list[str]) -> str:
    x, *limits = args
    if limits and limits[0]:
        x = f"each_max({x}, {limits[0]})"
    if len(limits) > 1 and limits[1]:
        x = f"each_min({x}, {limits[1]})"
    return x


def _joined(function: str) -> Callable[[ir.Node, list[str]], str]:
    def join(node: ir.Node, args: list[str]) -> str:
        joined = args[0]
        for arg in args[1:]:
            joined = f"{function}({joined}, {arg})"
        return joined

    return join


def _gelu(node: ir.Node, args: list[str]) -> str:
    (x,) = args
    if node.attributes.get_string("approximate", "none") == "tanh":
        inner = f"({x} * 0.797884561f * ({x} * {x} * 0.044715f + 1.0f))"
        return f"{x} * 0.5f * (each_tanh({inner}) + 1.0f)"
    return f"{x} * 0.5f * (vec_erf({x} * 0.707106781f) + 1.0f)"


def _hard_sigmoid(node: ir.Node, args: list[str]) -> str:
    line = f"{args[0]} * {_alpha(node, 0.2)} + {_alpha(node, 0.5, 'beta')}"
    return _limited(line, "splat(0)", "splat(1)")


#: The operators that `expression` knows; all compute each element from those at its place.
EXPRESSIONS: dict[str, Callable[[ir.Node, list[str]], str]] = {
    **{
        name: partial(_function, name.lower())
        for name in (
            *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cosh", "Exp"),
            *("Floor", "Log", "Mish", "Sigmoid", "Sign", "Sinh", "Softplus", "Sqrt", "Tanh"),
        )
    },
    "Add": lambda _, a: f"{a[0]} + {a[1]}",
    "Clip": _clip,
    "Celu": lambda n, a: (
        f"each_max({a[0]}, splat(0)) + {_alpha(n, 1.0)} *"
        f" (vec_exp(at_most({a[0]} / {_alpha(n, 1.0)}, 0)) - 1.0f)"
    ),
    "Cos": lambda _, a: f"sine({a[0]}, 1)",
    "Div": lambda _, a: f"{a[0]} / {a[1]}",
    "Elu": lambda n, a: f"choose({a[0]} < 0, {_alpha(n, 1.0)} * (vec_exp({a[0]}) - 1.0f), {a[0]})",
    "Erf": lambda _, a: f"vec_erf({a[0]})",
    "Gelu": _gelu,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": lambda _, a: (
        f"{a[0]} * {_limited(f'{a[0]} * 0x1.555556p-3f + 0.5f', 'splat(0)', 'splat(1)')}"
    ),
    "Identity": lambda _, a: a[0],
    "LeakyRelu": lambda n, a: f"choose({a[0]} < 0, {a[0]} * {_alpha(n, 0.01)}, {a[0]})",
    "Max": _joined("each_max"),
    "Mean": lambda _, a: f"({' + '.join(a)}) / {len(a)}.0f",
    "Min": _joined("each_min"),
    "Mul": lambda _, a: f"{a[0]} * {a[1]}",
    "Neg": lambda _, a: f"-{a[0]}",
    "PRelu": lambda _, a: f"choose({a[0]} < 0, {a[0]} * {a[1]}, {a[0]})",
    "Pow": lambda _, a: f"each_pow({a[0]}, {a[1]})",
    "Reciprocal": lambda _, a: f"1.0f / {a[0]}",
    "Relu": lambda _, a: f"at_least({a[0]}, 0)",
    "Round": lambda _, a: f"each_rint({a[0]})",
    "Selu": lambda n, a: (
        f"{_alpha(n, 1.05070102, 'gamma')} * choose({a[0]} > 0, {a[0]},"
        f" {_alpha(n, 1.67326319)} * (vec_exp({a[0]}) - 1.0f))"
    ),
    "Sin": lambda _, a: f"sine({a[0]}, 0)",
    "Softsign": lambda _, a: f"{a[0]} / (each_abs({a[0]}) + 1.0f)",
    "Sub": lambda _, a: f"{a[0]} - {a[1]}",
    "Sum": lambda _, a: " + ".join(a),
    "Swish": lambda n, a: f"{a[0]} * each_sigmoid({a[0]} * {_alpha(n, 1.0)})",
    "Tan": lambda _, a: f"sine({a[0]}, 0) / sine({a[0]}, 1)",
    "ThresholdedRelu": lambda n, a: f"choose({a[0]} > {_alpha(n, 1.0)}, {a[0]}, splat(0))",
}

_POWERS = {
    0.5: "each_sqrt({0})",
    1.0: "{0}",
    2.0: "{0} * {0}",
    3.0: "{0} * {0} * {0}",
    -0.5: "1.0f / each_sqrt({0})",
    -1.0: "1.0f / {0}",
}


def expression(node: ir.Node, args: list[str], constants: list[float | None]) -> str:
    """Return the C expression of a node.

    Parameters
    ----------
    node : ir.Node
        An operator of `EXPRESSIONS`.
    args : list of str
        The inputs: names of vectors, or constants; empty for an input that is left out.
    constants : list of float or None
        The value of each input that is one number.
    """
    if node.op_type == "Pow" and constants[1] in _POWERS:
        return _POWERS[constants[1]].format(args[0])
    return EXPRESSIONS[node.op_type](node, args)

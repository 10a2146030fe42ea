"""One element of an elementwise operator as a C expression, for every data type that C has."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ...dtypes import c_type
from ...read.contrib_text import REFUSED
from ..one_node import results

if TYPE_CHECKING:
    from collections.abc import Sequence

    import onnx_ir as ir


class Scalar(NamedTuple):
    """An element of a result, and statements before it that return an error."""

    value: str
    checks: str = ""


# Operators of C between two elements, or more for those in _MANY.
_BINARY = {
    "Add": "+",
    "Sub": "-",
    "Mul": "*",
    "And": "&&",
    "Or": "||",
    "Xor": "!=",
    "Equal": "==",
    "Greater": ">",
    "GreaterOrEqual": ">=",
    "Less": "<",
    "LessOrEqual": "<=",
    "BitwiseAnd": "&",
    "BitwiseOr": "|",
    "BitwiseXor": "^",
    "Sum": "+",
}
_MANY = {"Sum", "Max", "Min"}
# Functions of math.h: with an f for float.
_MATH = {
    "Sqrt": "sqrt",
    "Exp": "exp",
    "Log": "log",
    "Floor": "floor",
    "Ceil": "ceil",
    "Sin": "sin",
    "Cos": "cos",
    "Tan": "tan",
    "Tanh": "tanh",
    "Erf": "erf",
    "Round": "rint",
    "Sinh": "sinh",
    "Cosh": "cosh",
    "Asin": "asin",
    "Acos": "acos",
    "Atan": "atan",
    "Asinh": "asinh",
    "Acosh": "acosh",
    "Atanh": "atanh",
}
_FLOATS = ("float", "double", "_Float16")  # functions of the last one compute with double


def scalar_in_c(node: ir.Node, x: Sequence[str]) -> Scalar | None:
    """Return an element of a node's result; None for a node that is not elementwise.

    `x` are the elements of the inputs as C, "" for one that is not given.
    """
    first = next((value for value in node.inputs if value is not None), None)
    if first is None or len(results(node)) != 1:
        return None
    type_, made = c_type(first), c_type(results(node)[0])
    operator = node.op_type
    if operator in _BINARY:
        text = f" {_BINARY[operator]} ".join(f"({each})" for each in x[: len(node.inputs)])
        return Scalar(f"({made})({text})")
    if operator in ("Max", "Min"):
        return Scalar(_extreme(operator, x[: len(node.inputs)]))
    if operator in ("Div", "Mod", "Pow"):
        return _divided(node, type_, made, x)
    if operator in _MATH and type_ in _FLOATS:
        return Scalar(f"{_MATH[operator]}{_suffix(type_)}({x[0]})")
    of_one = _of_one(operator, type_, made, x[0])
    if of_one is not None:
        return Scalar(of_one)
    if operator == "Where":
        return Scalar(f"{x[0]} ? {x[1]} : {x[2]}")
    if operator == "Clip":
        what = node.metadata_props.get(REFUSED, "")
        if what.replace(": ", "").isidentifier():
            outside = f'dso_outside("{what}", {x[1]}, {x[2]}, {x[0]})'
            checks = f"    if ({x[0]} < {x[1]} || {x[0]} > {x[2]}) return {outside};\n"
            return Scalar(x[0], checks)
        low = f"({x[0]} < {x[1]} ? {x[1]} : {x[0]})" if len(x) > 1 and x[1] else x[0]
        is_bounded = len(x) > 2 and x[2] and len(node.inputs) > 2
        return Scalar(f"({low} > {x[2]} ? {x[2]} : {low})" if is_bounded else low)
    return None


def _suffix(type_: str) -> str:
    return "f" if type_ == "float" else ""


def _of_one(operator: str, type_: str, made: str, x: str) -> str | None:
    """Return a function of one element."""
    f, is_float = _suffix(type_), type_ in _FLOATS
    if operator == "Cast":
        return f"({x}) != 0" if made == "bool" else f"({made})({x})"
    if operator == "Neg":
        return f"({type_})(-({x}))"
    if operator == "Abs":
        return f"({x} < 0 ? ({type_})-({x}) : {x})"
    if operator == "Not":
        return f"!({x})"
    if operator == "BitwiseNot":
        return f"({type_})~({x})"
    if operator == "Sign":
        return f"({type_})(({x} > 0) - ({x} < 0))"
    if operator == "Relu":
        return f"({x} > 0 ? {x} : 0)"
    if operator == "IsNaN":
        return f"({x}) != ({x})"
    if operator == "Reciprocal" and is_float:
        return f"1 / ({x})"
    if operator == "Sigmoid" and is_float:
        return f"1 / (1 + exp{f}(-({x})))"
    if operator == "Softplus" and is_float:
        return f"({x} > 0 ? {x} + log1p{f}(exp{f}(-({x}))) : log1p{f}(exp{f}({x})))"
    return None


def _extreme(operator: str, x: Sequence[str]) -> str:
    sign = ">" if operator == "Max" else "<"
    made = x[0]
    for each in x[1:]:  # a NaN is the result
        made = f"(({made}) {sign} ({each}) || ({made}) != ({made}) ? ({made}) : ({each}))"
    return made


def _divided(node: ir.Node, type_: str, made: str, x: Sequence[str]) -> Scalar | None:
    """Return a quotient, a remainder or a power."""
    f, operator = _suffix(type_), node.op_type
    if type_ in _FLOATS:
        is_fmod = node.attributes.get_int("fmod", 0)
        if operator == "Mod" and not is_fmod:
            return None
        function = {"Mod": "fmod", "Pow": "pow"}.get(operator)
        text = f"{function}{f}({x[0]}, {x[1]})" if function else f"({x[0]}) / ({x[1]})"
        return Scalar(f"({made})({text})")
    if operator == "Pow":
        return Scalar(f"({made})pow((double){x[0]}, (double){x[1]})")
    what = f'"{operator}: divisor"'
    checks = f"    if (!({x[1]})) return dso_outside({what}, 1, INT64_MAX, 0);\n"
    if operator == "Div":  # of -1: the least number has no quotient
        quotient = f"({made})(({x[0]}) / ({x[1]}))"
        if not type_.startswith("u"):
            quotient = f"({x[1]}) == ({type_})-1 ? ({made})(0 - (u{type_})({x[0]})) : {quotient}"
        return Scalar(quotient, checks)
    if node.attributes.get_int("fmod", 0) or type_.startswith("u"):
        return Scalar(f"({x[1]}) == ({type_})-1 ? 0 : ({made})(({x[0]}) % ({x[1]}))", checks)
    rest = f"(({x[0]}) % ({x[1]}))"
    return Scalar(
        f"({x[1]}) == ({type_})-1 ? 0 : ({made})({rest} && ({rest} < 0) != (({x[1]}) < 0) "
        f"? {rest} + ({x[1]}) : {rest})",
        checks,
    )

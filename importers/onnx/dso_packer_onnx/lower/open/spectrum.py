"""DFT and STFT of any length: a fast Fourier transform by the factors of the length."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...dtypes import c_type
from ...extent import Extent, in_c, product
from ...operator import Operator, elements, shape_of
from ..code import count_in_c, operator_of
from ..guards import HELPER
from ..one_node import results
from ..refused import refuse
from .parts import attribute, constants, given, input_of, nest, refuse_if

if TYPE_CHECKING:
    from collections.abc import Callable

    import onnx_ir as ir

_FUNCTIONS = """\
/* Numbers are complex: two elements. `turns` has the roots of unity of the first call's length, of
 * which every `turn`th is a root of n. `some` has room for n numbers. */
static void transform(const TYPE *x, int64_t step, TYPE *y, int64_t n, const TYPE *turns,
                      int64_t turn, TYPE *some) {
  if (n == 1) {
    y[0] = x[0];
    y[1] = x[1];
    return;
  }
  int64_t p = n % 4 ? 2 : 4;
  while (n % p) p = p * p > n ? n : p + 1;
  const int64_t m = n / p;
  for (int64_t r = 0; r < p; r++)
    transform(x + 2 * r * step, step * p, y + 2 * r * m, m, turns, turn * p, some);
  for (int64_t k = 0; k < m; k++) {
    for (int64_t r = 0; r < p; r++) {
      const TYPE *of = y + 2 * (r * m + k), *by = turns + 2 * r * k * turn;
      some[2 * r] = of[0] * by[0] - of[1] * by[1];
      some[2 * r + 1] = of[0] * by[1] + of[1] * by[0];
    }
    TYPE *to = y + 2 * k;
    if (p == 4) {
      const TYPE quarter = turns[2 * m * turn + 1]; /* 1 or -1, times the square root of -1 */
      for (int part = 0; part < 2; part++) {
        const TYPE even = some[part] + some[4 + part], odd = some[2 + part] + some[6 + part];
        const TYPE less = some[part] - some[4 + part];
        const TYPE turned = (part ? quarter : -quarter) * (some[3 - part] - some[7 - part]);
        to[part] = even + odd;
        to[2 * m + part] = less + turned;
        to[4 * m + part] = even - odd;
        to[6 * m + part] = less - turned;
      }
      continue;
    }
    for (int64_t q = 0; q < p; q++, to += 2 * m) {
      TYPE re = 0, im = 0;
      for (int64_t r = 0; r < p; r++) {
        const TYPE *by = turns + 2 * (r * q % p) * m * turn;
        re += some[2 * r] * by[0] - some[2 * r + 1] * by[1];
        im += some[2 * r] * by[1] + some[2 * r + 1] * by[0];
      }
      to[0] = re;
      to[1] = im;
    }
  }
}

static void make_turns(TYPE *turns, int64_t n, double sign) {
  for (int64_t i = 0; i < n; i++) {
    const double angle = sign * 6.283185307179586 * (double)i / (double)n;
    turns[2 * i] = (TYPE)cos(angle);
    turns[2 * i + 1] = (TYPE)sin(angle);
  }
  if (n % 4 == 0) turns[n / 2 + 1] = (TYPE)sign;
}
"""


def _dft(node: ir.Node) -> Operator:
    value, (out,) = given(node, 0), results(node)
    shape, made = shape_of(value), shape_of(out)
    axis, length = constants(node, 2), constants(node, 1)
    if axis is None and input_of(node, 2) is not None:
        raise refuse(node, "open", "a computed axis")
    at = (axis[0] if axis else -2) % len(shape)
    is_inverse, is_half = attribute(node, "inverse", 0), attribute(node, "onesided", 0)
    if is_half and (is_inverse or (length is None and input_of(node, 1) is not None)):
        raise refuse(node, "open", "a half of the result")
    n: Extent = length[0] if length else shape[at] if is_half else made[at]
    inner, parts = count_in_c(shape[at + 1 : -1]), in_c(shape[-1])
    body = f"""\
    const {c_type(value)} *x = x0 + (i0 * ({in_c(shape[at])}) * {inner} + i1) * {parts};
    {c_type(value)} *y = y0 + (i0 * ({in_c(made[at])}) * {inner} + i1) * 2;
    for (int64_t i = 0; i < n; i++) {{
      const int is_given = i < {in_c(shape[at])};
      row[2 * i] = is_given ? x[i * {inner} * {parts}] : 0;
      row[2 * i + 1] = is_given && {parts} == 2 ? x[i * {inner} * {parts} + {parts} - 1] : 0;
    }}
    transform(row, 1, found, n, turns, 1, some);
    for (int64_t i = 0; i < {in_c(made[at])}; i++)
      for (int part = 0; part < 2; part++)
        y[i * {inner} * 2 + part] = found[2 * i + part]{" / n" if is_inverse else ""};
"""
    loops = nest((product(shape[:at]), product(shape[at + 1 : -1])), body)
    return _operator(node, loops, [value], n, "1.0" if is_inverse else "-1.0")


def _stft(node: ir.Node) -> Operator:
    signal, window, (out,) = given(node, 0), input_of(node, 2), results(node)
    shape, made, type_ = shape_of(signal), shape_of(out), c_type(signal)
    step, length = constants(node, 1), constants(node, 3)
    if step is None or (length is None and input_of(node, 3) is not None):
        raise refuse(node, "open", "computed steps or lengths")
    n: Extent = length[0] if length else shape_of(given(node, 2))[0]
    frames, half = in_c(made[1]), f"n / 2 + 1 == {in_c(made[2])}"
    needed = f"({frames} - 1) * {step[0]} + n"
    check = refuse_if(node, f"{frames} > 0 && {needed} > {in_c(shape[1])}", "samples", needed,
                      in_c(shape[1]))  # fmt: skip
    check += refuse_if(
        node, f"!({half}) && n != {in_c(made[2])}", "frequencies", "n", in_c(made[2])
    )
    if window is not None:
        of_window = in_c(shape_of(window)[0])
        check += refuse_if(node, f"{of_window} != n", "elements of the window", "n", of_window)
    factor = "" if window is None else " * x1[i]"
    parts, row = in_c(shape[2]) if len(shape) > 2 else "1", f"({in_c(made[2])}) * 2"
    body = f"""\
    const {type_} *x = x0 + (i0 * ({in_c(shape[1])}) + i1 * {step[0]}) * {parts};
    for (int64_t i = 0; i < n; i++) {{
      row[2 * i] = x[i * {parts}]{factor};
      row[2 * i + 1] = {parts} == 2 ? x[i * {parts} + {parts} - 1]{factor} : 0;
    }}
    transform(row, 1, found, n, turns, 1, some);
    memcpy(y0 + (i0 * ({frames}) + i1) * {row}, found, (size_t)({row}) * sizeof *y0);
"""
    inputs = [signal] if window is None else [signal, window]
    return _operator(node, check + nest(made[:2], body), inputs, n, "-1.0")


def _operator(node: ir.Node, body: str, inputs: list[ir.Value], n: Extent, sign: str) -> Operator:
    """Make an operator that transforms `row`, of `n` numbers, to `found`."""
    type_ = c_type(inputs[0])
    if type_ not in ("float", "double"):
        raise refuse(node, "dtype", f"value {inputs[0].name!r}")
    places = "".join(
        f"  {type_} *{name} = ({type_} *)workspace + {2 * i} * n;\n"
        for i, name in enumerate(("turns", "row", "found", "some"))
    )
    start = f"  const int64_t n = {in_c(n)};\n{places}  make_turns(turns, n, {sign});\n"
    outputs = results(node)
    return operator_of(
        node.op_type.lower(),
        f"{start}{body}  return 0;\n",
        inputs,
        outputs,
        workspace=product((64, n)) or 64,
        before=HELPER + _FUNCTIONS.replace("TYPE", type_),
        flops=50 * sum(elements(shape_of(value)) for value in outputs),
        extents=[n],
    )


RULES: dict[str, Callable[[ir.Node], Operator]] = {"DFT": _dft, "STFT": _stft}

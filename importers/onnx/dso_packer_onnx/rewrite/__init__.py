"""Rewrites of a graph: fewer and faster operators with the same results.

Each rewrite is a function ``(ir.Model) -> int`` that returns how many places it changed. A node
that does not match exactly remains a standard one. Fused operators have the domain ``dso``, and
compute in float32; products and convolutions also with 8-bit integers and bfloat16. `rewrite` runs
all in order.

The passes of onnx-ir and onnxscript are used where they exist: `clean` and `constants` name them.
The pattern rewriter of onnxscript is not: for graphs of thousands of nodes it takes many times as
long as these functions.
"""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from .arrange import simplify_views
from .attention import fuse_attention
from .attention_layout import lay_out_attention
from .attention_operator import fuse_attention_operator
from .backwards import gather_backwards
from .bfloat16 import fuse_bfloat16, fuse_bfloat16_bias
from .bits import fuse_bits, unpack_bits
from .caches import attend_to_caches
from .clean import (
    inline_functions,
    name_everything,
    remove_dead_nodes,
    remove_no_ops,
    share_equal_nodes,
    share_joined,
)
from .constants import fix_shapes, fold_constants
from .conv import fuse_conv, fuse_pad
from .doubles import fuse_doubles
from .einsum import expand_einsum
from .elementwise import fuse_elementwise
from .epilogue import fuse_activation, fuse_bias, fuse_residual
from .expand import expand_logarithms, put_steps_first
from .gelu import fuse_gelu
from .graph import DSO
from .halves import widen_halves, widen_weights
from .integer import fuse_integer_scale, fuse_matmul_integer, fuse_qlinear_matmul, fuse_quantize
from .integer_conv import fuse_conv_integer, fuse_qlinear_conv, raise_integer_volumes
from .linear import sink_views, split_products
from .matmul import fuse_gemm, fuse_matmul
from .mixing import mix_channels
from .moments import fuse_group_normalization, fuse_moments, fuse_row_factors
from .normalize import fuse_normalize, turn_softmax
from .pads import fuse_computed_pads
from .pooling import fuse_pooling
from .quantized import fuse_dequantized, fuse_quantized_result, move_integers
from .record import summary
from .recurrent import fuse_recurrent
from .resize import fuse_resize
from .scale import fold_batch_norm, fold_scale
from .sequences import raise_sequences
from .shuffles import expand_shuffles
from .transposed import fuse_transposed_conv, move_activations
from .volumes import raise_volumes

REWRITES: tuple[Callable[[ir.Model], int], ...] = (
    inline_functions,
    fuse_computed_pads,
    raise_sequences,
    fuse_dequantized,
    fuse_bits,
    unpack_bits,
    fold_constants,
    fix_shapes,
    remove_no_ops,
    share_equal_nodes,
    share_joined,
    expand_einsum,
    expand_logarithms,
    put_steps_first,
    expand_shuffles,
    gather_backwards,
    remove_dead_nodes,
    widen_halves,
    mix_channels,
    raise_volumes,
    raise_integer_volumes,
    simplify_views,
    fuse_gelu,
    fuse_moments,
    fuse_attention_operator,
    fuse_attention,
    attend_to_caches,
    fuse_conv,
    fuse_pad,
    fuse_gemm,
    fuse_matmul,
    widen_weights,
    fuse_doubles,
    fuse_recurrent,
    fuse_bfloat16,
    fuse_bfloat16_bias,
    fuse_matmul_integer,
    fuse_qlinear_matmul,
    fuse_conv_integer,
    fuse_qlinear_conv,
    fuse_integer_scale,
    fold_batch_norm,
    fold_scale,
    fuse_transposed_conv,
    fuse_bias,
    split_products,
    lay_out_attention,
    sink_views,
    simplify_views,
    fuse_residual,
    move_activations,
    fuse_activation,
    turn_softmax,
    fuse_normalize,
    fuse_group_normalization,
    fuse_row_factors,
    fuse_pooling,
    fuse_resize,
    simplify_views,
    fuse_quantized_result,
    move_integers,
    fuse_quantize,
    fuse_elementwise,
    remove_dead_nodes,
    name_everything,
)


def rewrite(model: ir.Model) -> dict[str, str]:
    """Rewrite a model in place.

    Parameters
    ----------
    model : ir.Model
        Checked, of opset 23 or later; every value has a type and a shape.

    Returns
    -------
    dict of str to str
        For each weight of the model that is not stored as it was, by its name: where it is now,
        and why.
    """
    weights = list(model.graph.initializers)
    model.graph.opset_imports.setdefault(DSO, 1)
    for change in REWRITES:
        change(model)
    return summary(model, weights)

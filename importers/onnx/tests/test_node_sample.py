"""ONNX's node tests: some of them through a library, and the table of all."""

from __future__ import annotations

import json
import os
from typing import Any

import onnx
import pytest

from dso_packer_onnx.lower.refused import CAUSES

from .node_tests import TABLE, run
from .support.node_data import all_names
from .support.node_exact import REASONS

COMPILERS = {"gcc": 95, "clang": 95}  # percent that pass, at least
# Each kind of operator and data type, a body, and a refusal of each cause.
SAMPLE = [
    "test_abs",
    "test_adam_multiple",
    "test_add_bcast",
    "test_argmax_keepdims_example",
    "test_attention_4d_gqa",
    "test_attention_4d_gqa_with_past_and_present_fp16",
    "test_attention_4d_with_qk_matmul_softcap",
    "test_averagepool_2d_pads",
    "test_batchnorm_epsilon",
    "test_bernoulli",
    "test_cast_FLOAT_to_BFLOAT16",
    "test_cast_FLOAT_to_FLOAT8E4M3FN",
    "test_cast_FLOAT_to_INT4",
    "test_cast_FLOAT_to_UINT2",
    "test_cast_UINT4_to_FLOAT16",
    "test_clip_default_int8_inbounds",
    "test_compress_0",
    "test_concat_2d_axis_0",
    "test_conv_with_strides_padding",
    "test_convtranspose_pads",
    "test_cumsum_2d_axis_1",
    "test_depthtospace_example",
    "test_dequantizelinear_int4",
    "test_det_nd",
    "test_dft_inverse",
    "test_dropout_default",
    "test_einsum_batch_matmul",
    "test_elu_example",
    "test_equal_string",
    "test_flatten_axis2",
    "test_gather_1",
    "test_gathernd_example_int32",
    "test_gelu_tanh_1",
    "test_gemm_all_attributes",
    "test_gridsample_bicubic",
    "test_gru_seq_length",
    "test_hardmax_axis_1",
    "test_identity_opt",
    "test_if",
    "test_image_decoder_decode_png_rgb",
    "test_instancenorm_epsilon",
    "test_isinf_float16",
    "test_layer_normalization_3d_axis1_epsilon",
    "test_less_uint64",
    "test_loop11",
    "test_lrn",
    "test_lstm_with_peepholes",
    "test_matmul_4d",
    "test_maxpool_3d_dilations",
    "test_maxunpool_export_with_output_shape",
    "test_mod_mixed_sign_float16",
    "test_nllloss_NCd1d2_reduction_sum",
    "test_nonmaxsuppression_two_classes",
    "test_nonzero_example",
    "test_not_3d",
    "test_onehot_negative_indices",
    "test_pow_types_int64_float32",
    "test_qlinearconv",
    "test_qlinearmatmul_3D_int8_float32",
    "test_quantizelinear_blocked_asymmetric",
    "test_reduce_log_sum_exp_negative_axes_keepdims_random",
    "test_reshape_zero_dim",
    "test_resize_upsample_sizes_nearest_axes_2_3",
    "test_reversesequence_batch",
    "test_rms_normalization_2d_axis0",
    "test_roialign_aligned_true",
    "test_rotary_embedding_interleaved",
    "test_scan9_sum",
    "test_scatternd_max",
    "test_sequence_insert_at_back",
    "test_slice_neg_steps",
    "test_softmax_axis_1",
    "test_split_variable_parts_2d_opset18",
    "test_stft_with_window",
    "test_sub_uint16",
    "test_tfidfvectorizer_tf_batch_uniandbigrams_skip5",
    "test_tile",
    "test_top_k_smallest",
    "test_transpose_all_permutations_3",
    "test_tril_neg",
    "test_unique_sorted_with_axis_3d",
    "test_where_long_example",
]


def column(compiler: str) -> dict[str, Any]:
    """The table of a compiler."""
    found = json.loads(TABLE.read_text())
    assert isinstance(found[compiler], dict)
    return found[compiler]


def outcomes(compiler: str) -> dict[str, str]:
    """The outcome of each test that does not pass, without why it failed."""
    found = column(compiler)
    refused = {name: f"refused: {why}" for why, names in found["refused"].items() for name in names}
    return refused | {name: kind for kind in ("failed", "right") for name in found[kind]}


def test_the_sample_does_what_the_table_says() -> None:
    """Each test through a library, in a process without onnx."""
    compiler = "clang" if "clang" in os.environ.get("CC", "") else "gcc"
    expected = outcomes(compiler)
    found: dict[str, str] = {}
    for done in run(SAMPLE, min(2, os.cpu_count() or 1)):
        found |= done
    differences = {
        name: outcome
        for name, outcome in found.items()
        if expected.get(name, "passed")
        != (outcome if "refused" in outcome else outcome.partition(":")[0])
    }
    assert differences == {}
    assert len(found) == len(SAMPLE)


@pytest.mark.parametrize("compiler", sorted(COMPILERS.keys() & json.loads(TABLE.read_text())))
def test_the_table_has_every_test_and_every_cause(compiler: str) -> None:
    """So many pass; each refusal is counted by its cause."""
    table, found = json.loads(TABLE.read_text()), column(compiler)
    names = all_names()
    assert table["onnx"] == onnx.__version__
    assert table["tests"] == len(names) == 1678
    assert found["failed"] == {}
    assert found["right"].items() <= REASONS.items()  # another rounding may pass
    others = [*found["right"], *(name for many in found["refused"].values() for name in many)]
    assert found["passed"] + len(others) == len(names)
    assert len(set(others)) == len(others)
    assert set(others) <= set(names)
    assert set(found["refused"]) <= set(CAUSES)
    assert 100 * found["passed"] >= COMPILERS[compiler] * len(names)
    assert set(SAMPLE) <= set(names)

"""Operators in a loaded library: they run on the loader's threads, and no bit depends on them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import packer
import packer.operators

CODE = r"""
#include "dso_operators.h"


/* ReLU of the product plus the first row of b; without a workspace, its size */
int product(const float *a, const float *b, float *out, float *workspace, int64_t rows,
            int64_t inner, int64_t columns) {
  const struct dso_op_matmul product = {
      .rows = rows, .inner = inner, .columns = columns,
      .a = a, .a_row = inner, .a_column = 1,
      .b = b, .b_row = columns, .b_column = 1,
      .out = out, .out_row = columns,
      .after = {.bias = b, .activation = DSO_OP_RELU},
      .workspace = workspace};
  return workspace ? dso_op_matmul(&product) : (int)dso_op_matmul_workspace(&product);
}

/* 3 x 3, from a padded NCHW16c image to another; channels are a multiple of 16 */
int convolution(float *in, const float *weight, float *out, int64_t channels, int64_t side,
                int64_t groups) {
  const int64_t row = (side + 2) * 16, plane = (side + 2) * row;
  struct dso_op_image image = {.data = in + row + 16, .channels = channels, .height = side,
                                   .width = side, .block = 16, .padding = 1, .plane = plane,
                                   .row = row};
  struct dso_op_conv2d conv = {.batch = 1, .in = image, .out = image, .groups = groups,
                               .kernel = {3, 3}, .stride = {1, 1}, .dilation = {1, 1},
                               .pad = {1, 1}, .weight = weight};
  conv.out.data = out + row + 16;
  return dso_op_conv2d(&conv);
}

int attention(const float *q, const float *k, const float *v, float *out, float *workspace,
              int64_t heads, int64_t rows, int64_t size) {
  const int64_t head = rows * size;
  const struct dso_op_attention a = {
      .batch = 1, .heads = heads, .rows = rows, .keys = rows, .size = size,
      .q = q, .k = k, .v = v, .q_head = head, .q_row = size, .k_head = head, .k_row = size,
      .v_head = head, .v_row = size, .out = out, .out_head = head, .out_row = size,
      .workspace = workspace};
  return workspace ? dso_op_attention(&a) : (int)dso_op_attention_workspace(&a);
}

int normalization(const float *x, float *out, int64_t rows, int64_t size, int64_t kind) {
  const struct dso_op_normalize n = {
      .rows = rows, .size = size, .kind = (enum dso_op_normalization)kind, .x = x, .out = out,
      .x_row = size, .out_row = size, .epsilon = 1e-5f};
  return dso_op_normalize(&n);
}

/* Both directions of a layer; without a workspace, its size */
int layer(const float *x, const float *weight, const float *bias, float *out, float *workspace,
          int64_t kind, int64_t steps, int64_t batch, int64_t hidden) {
  const struct dso_op_recurrent l = {
      .kind = (enum dso_op_cell)kind, .directions = 2, .steps = steps, .batch = batch,
      .hidden = hidden, .x = x, .weight = weight, .bias = bias, .y = out, .workspace = workspace};
  return workspace ? dso_op_recurrent(&l) : (int)dso_op_recurrent_workspace(&l);
}

/* Integers with zeros, to float32; without a workspace, its size */
int integers(const uint8_t *a, const int8_t *b, float *out, uint8_t *workspace, int64_t rows,
             int64_t inner, int64_t columns) {
  static const float scale = 0.01f;
  static const uint8_t zero = 7;
  const struct dso_op_lowp_matmul product = {
      .rows = rows, .inner = inner, .columns = columns,
      .a_type = DSO_OP_UINT8, .b_type = DSO_OP_INT8, .out_type = DSO_OP_FLOAT32,
      .a = a, .a_row = inner, .a_column = 1, .a_zero = &zero,
      .b = b, .b_row = columns, .b_column = 1,
      .out = out, .out_row = columns, .after = {.scale = &scale},
      .workspace = workspace};
  return workspace ? dso_op_lowp_matmul(&product)
                   : (int)dso_op_lowp_matmul_workspace(&product);
}

/* 3 x 3 of planar images, with the zeros of `integers`; without a workspace, its size */
int images(uint8_t *in, const int8_t *weight, int32_t *out, uint8_t *workspace,
             int64_t channels, int64_t side, int64_t groups) {
  static const uint8_t zero = 7;
  const struct dso_op_lowp_conv2d conv = {
      .batch = 2, .in = {in, channels, side, side, 1}, .out = {out, channels, side, side, 1},
      .in_type = DSO_OP_UINT8, .weight_type = DSO_OP_INT8, .out_type = DSO_OP_INT32,
      .groups = groups, .kernel = {3, 3}, .stride = {1, 1}, .dilation = {1, 1}, .pad = {1, 1},
      .weight = weight, .a_zero = &zero, .workspace = workspace};
  return workspace ? dso_op_lowp_conv2d(&conv) : (int)dso_op_lowp_conv2d_workspace(&conv);
}

/* 3 x 3 windows of a planar image */
int pooling(float *in, float *out, int64_t channels, int64_t side, int64_t is_average) {
  const struct dso_op_image image = {.data = in, .channels = channels, .height = side,
                                         .width = side, .block = 1, .plane = side * side,
                                         .row = side};
  struct dso_op_pooling p = {.batch = 1, .in = image, .out = image, .kernel = {3, 3},
                          .stride = {1, 1}, .dilation = {1, 1}, .pad = {1, 1},
                          .is_average = (int)is_average};
  p.out.data = out;
  return dso_op_pooling(&p);
}
"""

# Run the operators, and print a digest of their results and how many threads there are.
PROGRAM = """
import hashlib, json, os, sys
import numpy as np
import runtime
from packer.operators import pack_conv2d, pack_lowp_conv2d, pack_matmul

model = runtime.load(sys.argv[1])
random = np.random.default_rng(1)
digest = hashlib.sha256()

def floats(*shape):
    return random.normal(size=shape).astype(np.float32)

def product(rows, inner, columns):
    a, b, out = floats(rows, inner), floats(inner, columns), floats(rows, columns)
    room = model["product"](a, b, out, None, rows, inner, columns)
    model["product"](a, b, out, floats(room), rows, inner, columns)
    expected = np.maximum(a @ b + b[0], 0)
    assert abs(out - expected).max() <= 1e-5 * expected.max()
    digest.update(out)

def convolution(channels, side, groups):
    weight = floats(channels, channels // groups, 3, 3)
    image = np.zeros((channels // 16, side + 2, side + 2, 16), np.float32)
    out = np.full_like(image, np.nan)
    image[:, 1:-1, 1:-1] = floats(channels // 16, side, side, 16)
    packed = pack_conv2d(weight, groups=groups)
    model["convolution"](image, packed, out, channels, side, groups)
    assert not np.isnan(out).any()
    digest.update(out)

def attention(heads, rows, size):
    q, k, v, out = (floats(heads, rows, size) for _ in range(4))
    room = model["attention"](q, k, v, out, None, heads, rows, size)
    model["attention"](q, k, v, out, floats(room), heads, rows, size)
    digest.update(out)

def normalization(rows, size, kind):
    x, out = floats(rows, size), floats(rows, size)
    model["normalization"](x, out, rows, size, kind)
    digest.update(out)

def layer(kind, gates, steps, batch, hidden):
    x, out = floats(steps, batch, 2, gates, hidden), floats(steps, 2, batch, hidden)
    weight = pack_matmul(floats(2, gates, hidden, hidden) / hidden)
    arrays, extents = (x, weight, floats(2, hidden), out), (kind, steps, batch, hidden)
    room = model["layer"](*arrays, None, *extents)
    model["layer"](*arrays, floats(room), *extents)
    digest.update(out)

def pooling(channels, side, is_average):
    image, out = floats(channels, side, side), floats(channels, side, side)
    model["pooling"](image, out, channels, side, is_average)
    digest.update(out)

def integers(rows, inner, columns):
    a = random.integers(0, 256, (rows, inner)).astype(np.uint8)
    b = random.integers(-128, 128, (inner, columns)).astype(np.int8)
    out = np.empty((rows, columns), np.float32)
    room = model["integers"](a, b, out, None, rows, inner, columns)
    model["integers"](a, b, out, np.zeros(room, np.uint8), rows, inner, columns)
    exact = (a.astype(np.int64) - 7) @ b.astype(np.int64)
    assert np.array_equal(out, exact.astype(np.float32) * np.float32(0.01))
    digest.update(out)

def images(channels, side, groups):
    x = random.integers(0, 256, (2, channels, side, side)).astype(np.uint8)
    weight = random.integers(-128, 128, (channels, channels // groups, 3, 3)).astype(np.int8)
    packed, out = pack_lowp_conv2d(weight, groups=groups), np.empty(x.shape, np.int32)
    room = model["images"](x, packed, out, None, channels, side, groups)
    model["images"](x, packed, out, np.zeros(room, np.uint8), channels, side, groups)
    digest.update(out)

integers(150, 333, 250)
images(64, 30, 1)
images(48, 60, 48)
attention(3, 150, 40)
normalization(300, 200, 0)
normalization(300, 200, 2)
layer(0, 4, 5, 1, 256)
layer(0, 4, 5, 20, 128)
layer(1, 3, 5, 1, 256)
layer(2, 3, 5, 20, 128)
layer(3, 1, 5, 40, 128)
pooling(30, 50, 0)
pooling(30, 50, 1)
convolution(64, 30, 1)
convolution(48, 60, 48)
product(150, 333, 250)
product(20, 700, 64)
print(json.dumps([digest.hexdigest(), len(os.listdir("/proc/self/task"))]))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    """A library whose code calls operators."""
    module = packer.CSourceModule(CODE, functions="auto", include=[packer.operators.INCLUDE])
    for part in packer.operators.modules():
        module.import_module(part)
    return packer.export_library(module, tmp_path_factory.mktemp("threads") / "model.so")


def test_threads_change_no_bit(library) -> None:
    """One thread, and more of them than processors."""
    digests, threads = set(), []
    for number in (1, 3, 5):
        environment = {**os.environ, "TVM_NUM_THREADS": str(number), "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, "-c", PROGRAM, library]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        digest, count = json.loads(done.stdout)
        digests.add(digest)
        threads.append(count)
    assert len(digests) == 1
    assert threads == [1, 3, 5]


def test_library_exports_no_operator(library) -> None:
    """Two libraries in a process each call their own."""
    symbols = subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=True)
    assert "dso_op" not in symbols.stdout


def test_unknown_operator_is_refused() -> None:
    """The message lists the names."""
    with pytest.raises(ValueError, match="unknown name, expected some of attention.*found 'gru'"):
        packer.operators.sources("gru")

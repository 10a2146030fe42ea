"""Operators for several CPU levels in one library, over one copy of the packed weights."""

from __future__ import annotations

import platform
from pathlib import Path

import numpy as np
import pytest

import packer
import packer.operators

from ..support import needs
from ..support.process import run_python

LEVELS = ["x86-64-v2", "x86-64-v3"]
INNER, COLUMNS, ROWS = 70, 45, 5
CODE = f"""
#include "dso_operators.h"
int product(const float *a, const float *packed, float *out) {{
  struct dso_op_matmul one = {{
      .rows = {ROWS}, .inner = {INNER}, .columns = {COLUMNS}, .a = a, .a_row = {INNER},
      .a_column = 1, .b = packed, .b_is_packed = 1, .out = out, .out_row = {COLUMNS}}};
  float workspace[1 << 14];
  if (dso_op_matmul_workspace(&one) > 1 << 14) return -1;
  one.workspace = workspace;
  return dso_op_matmul(&one);
}}
"""
# argv: the library, the level, the factors.
CALL = """
import json, os, sys
os.environ["DSO_CPU"] = sys.argv[2]
import numpy as np, runtime
a, packed = (np.load(path) for path in sys.argv[3:])
out = np.empty((5, 45), np.float32)
assert runtime.load(sys.argv[1])["product"](a, packed, out) == 0
print(json.dumps(out.tolist()))
"""


class Counted:
    """Counts the objects that the cache had."""

    cached = 0

    def __call__(self, step: str) -> None:
        """Ignore a step, but refuse one that says that code is of the lowest level only."""
        assert " only: " not in step

    def sources(self, _done: int, _total: int, cached: int) -> None:
        """Keep the largest number."""
        self.cached = max(self.cached, cached)


def export(path: Path) -> int:
    """Export the product; return how many objects the cache had."""
    root = packer.CSourceModule(CODE, functions="auto", include=[packer.operators.INCLUDE])
    for module in packer.operators.modules("matmul"):
        root.import_module(module)
    counted = Counted()
    packer.export_library(root, path, progress=counted, build=packer.Build(cpu=LEVELS))
    return counted.cached


def test_levels_share_packed_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each level gives the product; the library is the same from the cache, and small."""
    needs.hardware(platform.machine() == "x86_64", "x86-64")
    monkeypatch.setenv("PACKER_CACHE", str(tmp_path / "objects"))
    assert export(tmp_path / "a.so") == 0
    num_sources = 1 + len(packer.operators.sources("matmul"))
    assert export(tmp_path / "b.so") == len(LEVELS) * num_sources
    library = (tmp_path / "a.so").read_bytes()
    assert (tmp_path / "b.so").read_bytes() == library
    assert len(library) < len(LEVELS) * 1_500_000
    random = np.random.default_rng(0)
    a, b = (random.random(shape, np.float32) for shape in ((ROWS, INNER), (INNER, COLUMNS)))
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", packer.operators.pack_matmul(b))
    flags = Path("/proc/cpuinfo").read_text().split()
    for level in LEVELS if "avx2" in flags else LEVELS[:1]:
        names = [str(tmp_path / name) for name in ("a.so", "a.npy", "b.npy")]
        out = run_python(CALL, names[0], level, *names[1:])
        np.testing.assert_allclose(out, a @ b, rtol=1e-5)

"""Make a library with real TVM: two nearly empty functions, as in kernels.c.

python benchmarks/tvm_library.py LIBRARY

A separate file, because TVMScript reads its own source.
"""

from __future__ import annotations

import sys

import tvm
from tvm.script import ir as I  # noqa: N812
from tvm.script import tirx as T  # noqa: N812


@I.ir_module
class Host:  # noqa: D101
    @T.prim_func
    def add(a: T.int64, b: T.int64) -> T.int64:  # noqa: N805
        T.func_attr({"global_symbol": "add"})
        return a + b

    @T.prim_func
    def pair(x: T.Buffer((1024,), "float32"), y: T.Buffer((1024,), "float32")):  # noqa: N805
        T.func_attr({"global_symbol": "pair"})
        y[0] = x[0]


tvm.compile(Host, target="llvm").export_library(sys.argv[1])

"""Print which functions real TVM finds in a library: ``run_found.py LIBRARY NAME ...``."""

from __future__ import annotations

import sys

import tvm

module = tvm.runtime.load_module(sys.argv[1])
for name in sys.argv[2:]:
    if module.implements_function(name, query_imports=True):
        print(name)

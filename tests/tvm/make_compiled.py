"""Build a model with exec_mode="compiled" in real TVM: ``make_compiled.py LIBRARY``."""

from __future__ import annotations

import sys

from models import MODELS
from tvm import relax

relax.build(MODELS["branches"](), target="llvm", exec_mode="compiled").export_library(sys.argv[1])

"""Export bytecode with names that are not UTF-8, by real TVM: ``... PAYLOAD LIBRARY``."""

from __future__ import annotations

import sys
from pathlib import Path

import tvm
import tvm_ffi
from models import MODELS
from tvm import relax

load = tvm_ffi.get_global_func("ffi.Module.load_from_bytes.relax.VMExecutable")
model = load(Path(sys.argv[1]).read_bytes())
machine = relax.VirtualMachine(model, tvm.cpu())
print(machine["main"](7))
model.import_module(tvm.compile(MODELS["branches"](), target="llvm").mod.imports[0])
relax.VMExecutable(model).export_library(sys.argv[2])

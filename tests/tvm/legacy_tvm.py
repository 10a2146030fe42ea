"""TVM 0.17, of the wheel of bitblas, which contains all of it. Read by its Python only.

The wheel was built with CUDA. Where that is missing, a library without its functions stands for it:
nothing here uses a device.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

_CUDA = ("libcuda.so.1", "libcudart.so.12", "libnvrtc.so.12")


def import_tvm(*, compiles: bool) -> Any:
    """Import it: its runtime library alone, or its compiler, which takes longer."""
    folder = Path(sysconfig.get_path("purelib"), "bitblas/3rdparty/tvm")
    library = folder / "build" / ("libtvm.so" if compiles else "libtvm_runtime.so")
    os.environ["TVM_LIBRARY_PATH"] = str(library.parent)
    os.environ["TOPHUB_LOCATION"] = "NONE"  # a compilation downloads nothing
    if not compiles:
        os.environ["TVM_USE_RUNTIME_LIB"] = "1"
    _replace_cuda(library)
    sys.path.insert(0, str(folder / "python"))
    import tvm

    assert tvm.__version__ == "0.17.dev0"
    return tvm


def _replace_cuda(library: Path) -> None:
    """Load a library by the name of each one of CUDA: all functions fail."""
    made = subprocess.run(["nm", "-D", "-u", library], capture_output=True, text=True, check=True)
    names = re.findall(r"U ((?:cu[A-Z]|cuda[A-Z]|nvrtc|__cuda)\w+)", made.stdout)
    source = "".join(f"int {name}(void) {{ return 100; }}\n" for name in sorted(set(names)))
    with tempfile.TemporaryDirectory() as folder:
        for name in _CUDA:
            command = ["cc", "-w", "-shared", "-fPIC", "-xc", "-", f"-Wl,-soname,{name}"]
            path = Path(folder, name)
            subprocess.run([*command, "-o", path], input=source, text=True, check=True)
            ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)

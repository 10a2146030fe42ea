"""The C files as a library of visible functions, and Numba's functions of the same names."""

from __future__ import annotations

import ctypes
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from numba import _helperlib
from numba.core.runtime import _nrt_python

import runtime
from dso_packer_numba.symbols import SUPPORT

INCLUDE = Path(runtime.__file__).parent / "include"
FLAGS = ("-std=c11", "-O2", "-fPIC", "-pthread", "-ffp-contract=off", "-DNB_VISIBLE")


@cache
def compile_support(folder: Path, *names: str, options: tuple[str, ...] = ()) -> ctypes.CDLL:
    """Compile files of the folder ``support``, and C text with the name ``*.c`` in `folder`."""
    output = folder / f"lib{'_'.join(Path(name).stem for name in names)}.so"
    sources = [
        str(SUPPORT / name if not (folder / name).exists() else folder / name) for name in names
    ]
    command = ["cc", *FLAGS, "-shared", f"-I{INCLUDE}", f"-I{SUPPORT}", *sources, "-o", str(output)]
    subprocess.run([*command, *options, "-lm"], check=True)
    return ctypes.CDLL(str(output))


def theirs(name: str, result: Any, *arguments: Any) -> Any:
    """Numba's function by its symbol."""
    table = _nrt_python.c_helpers if name.startswith("NRT_") else _helperlib.c_helpers
    address = table[name.removeprefix("NRT_").removeprefix("numba_")]
    return ctypes.CFUNCTYPE(result, *arguments)(address)


def ours(library: ctypes.CDLL, name: str, result: Any, *arguments: Any) -> Any:
    """Our function by the same symbol."""
    address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    assert address is not None
    return ctypes.CFUNCTYPE(result, *arguments)(address)

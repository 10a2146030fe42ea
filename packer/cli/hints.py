"""The command for a source or a lone file that is given in place of a library, by its suffix."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from runtime.lone_files import DEVICE_CODE, LOADERS

from ..project.sources import COMPILED, kind_of


def hint_of(path: str) -> str:
    """Return what to run for a file that a command expected to be a library; "" if unknown.

    The error of an object, archive or tar has its command already.
    """
    suffix = os.path.splitext(path)[1][1:]
    file = shlex.quote(path)
    export = f"packer export model.so {file}"
    if kind_of(Path(path)) in (*COMPILED, "llvm") or suffix in DEVICE_CODE:
        text = f"; `{export}` makes a library of it"
    elif suffix == "safetensors":
        text = f"; `packer export model.so --weights {file}` makes a library of it"
    else:
        text = ""
    return f"{text}; `packer inspect {file}` shows it" if suffix in LOADERS else text

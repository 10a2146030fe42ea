"""Hints at the end of an error: the command for a file, the option that a compiler lacks."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

from runtime.device.standalone_files import DEVICE_CODE, LOADERS

from ..project.sources import COMPILED, kind_of

# The messages of gcc, clang, bfd, lld and gold, and the solution of each.
_TOOL_HINTS = {
    r"fatal error: '?([^\s':]+)'?(?:: No such file| file not found)": (
        "add the folder of {0} with -IFOLDER, or with include in packer.toml"
    ),
    r"(?:cannot find|unable to find library) (-l[^\s:]+)": (
        "install the library {0}, or add its folder with -LFOLDER"
    ),
    r"undefined (?:reference to|symbol:)\W+(\w+)": (
        "add the source or library that defines {0}: -lNAME, or libraries in packer.toml"
    ),
}


def hint_of_output(output: str) -> str:
    """Return what solves the first error in the output of a compiler or linker; "" if unknown."""
    for wording, advice in _TOOL_HINTS.items():
        if found := re.search(wording, output):
            return f"; {advice.format(found[1])}"
    return ""


def hint_of(path: str) -> str:
    """Return what to run for a file that a command expected to be a library; "" if unknown.

    The error of an object, archive or tar has its command already.
    """
    suffix = os.path.splitext(path)[1][1:]
    file = shlex.quote(path)
    export = f"packer export model.so {file}"
    if kind_of(Path(path)) == "llvm":  # its functions have no C types
        text = f"; `{export} --function 'NAME=TYPE'` makes a library of it"
    elif kind_of(Path(path)) in COMPILED or suffix in DEVICE_CODE:
        text = f"; `{export}` makes a library of it"
    elif suffix == "safetensors":
        text = f"; `packer export model.so --weights {file}` makes a library of it"
    else:
        text = ""
    return f"{text}; `packer inspect {file}` shows it" if suffix in LOADERS else text

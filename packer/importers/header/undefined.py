"""Functions that a header declares and no library defines, found by a link of references alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from ...toolchain.compiler import find_compiler
from ...toolchain.process import run

_UNDEFINED = re.compile(r"undefined (?:reference to|symbol:?)\W+(\w+)")


def undefined_functions(names: Sequence[str], words: Sequence[str]) -> set[str]:
    """Return the functions that libraries do not define.

    Parameters
    ----------
    names : sequence of str
        The functions.
    words : sequence of str
        Options for the linker driver: ``-lfoo``, ``-Llib``.

    Returns
    -------
    set of str
        Empty if the libraries define none of them: then the link of the export reports it.
    """
    with TemporaryDirectory(prefix="packer-") as folder:
        source = Path(folder, "references.c")
        references = "".join(
            f"extern char {name}[]; char *packer_{name} = {name};" for name in names
        )
        source.write_text(references)
        command = [*find_compiler("c"), "-w", "-fPIC", "-fno-builtin", "-shared", str(source)]
        command += ["-Wl,-z,defs", *words, "-o", str(Path(folder, "references.so"))]
        completed = run(command, cwd=Path.cwd())
    missing = set(_UNDEFINED.findall(completed.output)).intersection(names)
    return missing if len(missing) < len(names) else set()

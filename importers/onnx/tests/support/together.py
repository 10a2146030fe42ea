"""Many models in one library: one process of the compiler for the code of all.

The compiler takes longer to start, and to read headers, than to compile one operator.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import packer
import runtime
from packer import CSourceModule

_INCLUDE = re.compile(r"^#include .*\n", re.M)
# Functions and tables, structures, and macros that a source defines.
_NAME = re.compile(
    r"^(?:(?:static|INLINE) [^;={\n]*?(\w+)(?:\[\w*\])*(?=\(| =|;)|struct (\w+) \{|#define (\w+))",
    re.M,
)


def mains_of(models: Mapping[int, runtime.Module], folder: Path) -> dict[int, Any]:
    """Export and load models in one library; returns the function ``main`` of each."""
    (number, root), *others = models.items()
    sources = [one for model in models.values() for one in model.imported_modules if _is_own(one)]
    merged = _merged([*dict.fromkeys(sources)])
    for model in models.values():
        left = [one for one in model.imported_modules if not _is_own(one)]
        model.set_imports([*left, merged])
    for _, other in others:
        root.import_module(other)
    library = packer.export_library(root, folder / "m.so", build=packer.Build(cpu=()))
    loaded = runtime.load(library)
    programs = [one for one in loaded.imported_modules if one.type_key == root.type_key]
    numbers = [one for one, _ in others]
    return {number: loaded["main"]} | {
        one: program["main"] for one, program in zip(numbers, programs, strict=True)
    }


def _is_own(module: runtime.Module) -> bool:
    """Return True for code of a model; the kernels of `packer.operators` are files."""
    return isinstance(module, CSourceModule) and module.path is None


def _merged(modules: Sequence[CSourceModule]) -> CSourceModule:
    """Join sources: what each defines for itself gets a name that no other one has."""
    includes: dict[str, None] = {}
    texts: list[str] = []
    for number, module in enumerate(modules):
        text = module.code.decode()
        includes |= dict.fromkeys(_INCLUDE.findall(text))
        found = _NAME.findall(text)
        names = {function or structure for function, structure, _ in found} - {""}
        macros = {macro for *_, macro in found if macro}
        new = {name: f"#define {name} of_{number}_{name}\n" for name in sorted(names)}
        for name in names & macros:  # after its #undef it is the function again
            text = text.replace(f"#undef {name}\n", f"#undef {name}\n{new[name]}")
        ends = "".join(f"#undef {name}\n" for name in sorted(names | macros))
        texts.append("".join(new.values()) + _INCLUDE.sub("", text) + ends)
    made = CSourceModule("".join([*includes, *texts]))
    made.functions = tuple(one for module in modules for one in module.functions)
    made.options = [*dict.fromkeys(word for module in modules for word in module.options)]
    return made

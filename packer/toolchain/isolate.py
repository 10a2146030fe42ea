"""Give all that an object defines names of its own, so that two models go into one program."""

from __future__ import annotations

from pathlib import Path

from runtime.abi import CONTEXT_SYMBOLS, FACT_PREFIX, FUNCTION_PREFIX

from ..elf.object_file import rename_symbols


def isolate(path: Path, prefix: str) -> None:
    """Put a prefix before every global symbol that an object defines, but for those of an export.

    Parameters
    ----------
    path : Path
        The object; changed in place.
    prefix : str
        The model's.

    Raises
    ------
    ExportError
        It is no object.

    Notes
    -----
    What C++ defines in every object that uses it goes the same way: no model ever runs another's
    copy. What is only used keeps its name, context symbols aside: a program may have others'.
    """
    own = (prefix + "__", FUNCTION_PREFIX + prefix, FACT_PREFIX + prefix)

    def rename(name: str, is_defined: bool) -> str:
        is_renamed = is_defined or name in CONTEXT_SYMBOLS
        return prefix + name if is_renamed and not name.startswith(own) else name

    rename_symbols(path, rename)

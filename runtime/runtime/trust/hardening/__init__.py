"""harden: a process refuses libraries with constructors, and what else runs while they open.

The rules are in `rules`; `forms` compares start-up code with that of compilers, which
`forms_x86_64`, `forms_aarch64` and `forms_riscv` list; `image` reads the file. Nothing of it is
imported before `harden` is called.
"""

from __future__ import annotations

from ..._core import ElfFile
from ...error import LibraryLoadError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .rules import Rules

_rules: Rules | None = None


def harden(*, needed: Iterable[str] = (), origin: bool = False) -> None:
    """Refuse libraries whose code would run while they are opened.

    Every later `load` of this process, and of bytes, base64, JSON, pickle and libraries inside a
    library, copies the library to sealed memory, checks the copy, and opens the copy. These are
    refused: constructors, destructors and IFUNC resolvers, except the functions that compilers add
    to every library; an executable stack, segments that are writable and executable, relocations
    that write to code; RPATH and RUNPATH; needed libraries, except libraries of C and of compilers
    (libc, libm, libpthread, libstdc++, libgcc_s, libgomp, libomp, ...); functions with the names
    that start-up code of other libraries calls.

    Parameters
    ----------
    needed : iterable of str
        Further libraries that may be needed, by name: ``["libopenblas.so.0"]``. ``*`` stands for
        any text.
    origin : bool
        True to accept RPATH and RUNPATH that begin with ``$ORIGIN``. Libraries that are found in
        such a folder are checked like the first one.

    Raises
    ------
    TypeError
        `needed` is one text, or contains something else than texts.

    Notes
    -----
    A refused load raises LibraryLoadError with reason ``"policy"``. A later call replaces both
    arguments; nothing ends the check. Libraries that are loaded already stay. The rules are about
    opening a library; they say nothing about its functions. The functions of compilers are
    recognised by their bytes, stripped or not, on x86-64, AArch64 and RISC-V; every other function
    that the loader would call is refused. `packer check --policy strict` lists all that is refused.

    Examples
    --------
    >>> runtime.harden(needed=["libopenblas.so.0"])  # doctest: +SKIP
    >>> model = runtime.load("model.so")  # doctest: +SKIP
    """
    from .rules import Rules

    names = () if isinstance(needed, str) else tuple(needed)
    if isinstance(needed, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"needed: expected names of libraries, found {needed!r}")
    global _rules
    _rules = Rules(names, origin)


def is_active() -> bool:
    """Return True if `harden` was called."""
    return _rules is not None


def check_hardened(name: str, data: memoryview, path: str) -> None:
    """Refuse a library that breaks a rule of `harden`, if it was called.

    `name` opens the bytes `data`, which cannot change any more; messages show `path`. Raises
    LibraryLoadError with reason ``"policy"``, or for a damaged file.
    """
    if _rules is None:
        return
    from .rules import violations

    ElfFile(name, name=path)  # from here on all tables are inside the file
    try:
        found = [*violations(data, _rules)]
    except ValueError as error:
        raise LibraryLoadError(f"{path}: {error}", path=path, reason="malformed") from None
    if found:
        text = f"{path}: {found[0].text}; {found[0].hint}, or load it without runtime.harden"
        if len(found) > 1:
            text += f" ({len(found) - 1} more: packer check --policy strict)"
        raise LibraryLoadError(text, path=path, reason="policy")

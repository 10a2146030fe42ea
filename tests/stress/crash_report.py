"""The report of crash.c: the code in which a process crashed, and its callers."""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from signal import SIGALRM
from typing import Literal, NamedTuple

Code = Literal["as before", "other", "elsewhere"]
_OTHERS = ("libc.so", "libm.so", "libgcc", "linux-vdso", "crash.so")


class Crash(NamedTuple):
    """One crash. `cause` is its category; a finding must be repaired in this project."""

    cause: str
    is_finding: bool
    places: list[str]  # the innermost first


class _Mapping(NamedTuple):
    start: int
    end: int
    name: str


def read_crash(text: str, library: str, code: Code) -> Crash:
    """Tell whose crash it was.

    Parameters
    ----------
    text : str
        The report.
    library : str
        The path of the library that was loaded: its constructors, resolvers and destructors may
        crash, since code that is called at another place does.
    code : {"as before", "other", "elsewhere"}
        Where the functions are that the loader calls by itself, compared with the good library:
        elsewhere is outside of code. Other code may return with any registers and stack. So may
        code whose thread-local variables are at other places.
    """
    values: dict[str, list[int]] = {}
    mappings = []
    for line in text.splitlines():
        words = line.split()
        if len(words) == 2 and "-" not in words[0]:
            values.setdefault(words[0], []).append(int(words[1], 16))
        elif len(words) >= 5:
            start, _, end = words[0].partition("-")
            mappings.append(_Mapping(int(start, 16), int(end, 16), " ".join(words[5:])))
    pc, number = values["pc"][0], values["signal"][0]
    frames, stack = values.get("frame", []), values.get("stack", [0])
    calls = frames[frames.index(pc) + 1 :] if pc in frames else stack
    if not _name_at(mappings, pc):
        calls = stack  # there is nothing to unwind: the caller's address is on top
    names = [_name_at(mappings, address) for address in (pc, *calls)]
    kinds = [_kind_of(name, library) for name in names]
    places = [f"{name}+{address:x}" for name, address in zip(names, (pc, *calls), strict=True)]
    judged = _judge(kinds, number, code)
    return Crash(*judged, places[:24])


def _judge(kinds: list[str], number: int, code: Code) -> tuple[str, bool]:
    inner = next((kind for kind in kinds if kind != "other"), "other")
    if number == SIGALRM:
        return ("no end in the library's code", False) if inner == "library" else ("no end", True)
    if inner == "ours":
        if code != "as before":
            return f"signal {number} in the core, after other code of the library ran", False
        return f"signal {number} in the core", True
    if inner == "ld.so":
        if "library" in kinds:
            return f"signal {number} in ld.so, called by the library's code", False
        if code != "as before":
            return f"signal {number} in ld.so, after it called other code of the library", False
        return f"signal {number} in ld.so", True
    if inner == "library":
        return f"signal {number} in the library's code", False
    if inner == "nowhere":
        # The code that the loader calls may return to anywhere; it calls nothing but code itself.
        caller = kinds[1] if len(kinds) > 1 else "nowhere"
        if caller == "ours" or (caller == "ld.so" and code == "elsewhere"):
            return f"signal {number} at no code, called by {caller}", True
        return f"signal {number} at no code, where the library's code went", False
    return f"signal {number} elsewhere, after the library's code ran", False


def _name_at(mappings: Iterable[_Mapping], address: int) -> str:
    rows = list(mappings)
    index = bisect.bisect_right([row.start for row in rows], address) - 1
    if index < 0 or address >= rows[index].end:
        return ""
    return rows[index].name


def _kind_of(name: str, library: str) -> str:
    base = name.rpartition("/")[2]
    if name == library or name.startswith(library):
        return "library"
    if base.startswith(("_core.", "bridge")):
        return "ours"
    if base.startswith("ld-"):
        return "ld.so"
    if not base or base.startswith("["):
        return "nowhere"
    return "other" if base.startswith(_OTHERS) else "python"

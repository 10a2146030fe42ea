"""Search the libraries of a link for symbols without a version, and say who lacks which."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from runtime.error import ToolchainError

from ..elf.dependencies import Dependencies, resolve_dependencies
from ..elf.dynamic import read_dynamic
from ..elf.library_search import Requester, find_library
from ..elf.references import references
from ..files.text import shown_path, some_of
from .cuda import run_time_of
from .linkage import advice, mangled
from .search_path import SearchPath
from .undefined import ALLOW, STANDARD, note

if TYPE_CHECKING:
    from .undefined import Linked

_MOST_NAMES = 5


class Unbound:
    """The symbols of one new library that no version binds to a library."""

    def __init__(self, made: str, linked: Linked) -> None:
        self._linked = linked
        self._made = read_dynamic(made)
        self._linkage = self._made.linkage()
        self._search = SearchPath(linked.target, linked.options)

    def check(self, names: Collection[str]) -> None:
        """Note what no loader finds, and what the process must provide; refuse other symbols."""
        self._note_unfound()
        libraries = self._libraries()
        lost = sorted(set(names) - libraries.defined_among(set(names)))
        allowed = [n for n in lost if any(fnmatchcase(n, p) for p in self._linked.allowed)]
        if allowed:
            note(f"the process that loads it must provide {some_of(allowed)}, as {ALLOW} says")
        lost = [name for name in lost if name not in allowed]
        if lost and libraries.missing:
            where = f"{some_of(list(libraries.missing))}, of the target, cannot be read here"
            note(f"cannot tell whether a library defines {some_of(lost)}: {where}")
        elif lost:
            raise ToolchainError(self._refusal(lost, libraries))

    def _libraries(self) -> Dependencies:
        """Read the needed libraries, and the C library, which each process has."""
        needed = self._linkage.needed
        if not any(map(STANDARD.fullmatch, needed)):
            gnu = self._linked.target.environment == "gnu"
            needed = (*needed, "libc.so.6" if gnu else "libc.so")
        wanted = replace(self._linkage, needed=needed)
        return resolve_dependencies(self._linked.output.absolute(), wanted, self._search.find)

    def _note_unfound(self) -> None:
        if not self._search.is_native:
            return
        folder = os.path.dirname(self._linked.output.absolute())
        asking = Requester(folder, self._linkage.rpath, self._linkage.runpath)
        for name in self._linkage.needed:
            if STANDARD.fullmatch(name) or find_library(name, asking) is not None:
                continue
            path = self._search.find_at_link(name)
            if path is None:
                note(f"needed library {name}: not found; install it before a load")
                continue
            place = os.path.dirname(path)
            remedy = f"add --option=-Wl,-rpath,{place}; or put it beside the library, and add "
            remedy += "--option='-Wl,-rpath,$ORIGIN'"
            note(f"needed library {name}: no loader searches {place}; {remedy}")

    def _refusal(self, lost: Sequence[str], libraries: Dependencies) -> str:
        shown = lost[:_MOST_NAMES]
        users = self._users(shown)
        texts = [f"{name}{users.get(name, '')}" for name in shown]
        if more := len(lost) - len(shown):
            texts.append(f"and {more} more")
        text = f"{shown_path(self._linked.output)}: undefined symbols: {', '.join(texts)}"
        text += ", expected a library of the link that defines them"
        return "; ".join([text, *self._remedies(shown, libraries)])

    def _users(self, names: Sequence[str]) -> dict[str, str]:
        """Return which function of which file needs each symbol, in parentheses."""
        users: dict[str, str] = {}
        archives = ((path, path.name) for path in self._search.archives())
        for path, shown in (*self._linked.objects.items(), *archives):
            for name, place in references(path, set(names)).items():
                words = " in ".join(filter(None, (place, shown)))
                users.setdefault(name, f" (needed by {words})" if words else "")
        return users

    def _remedies(self, names: Sequence[str], libraries: Dependencies) -> Iterator[str]:
        options = self._search.defining(names)
        for option in dict.fromkeys(options.values()):
            defined = [name for name in names if options.get(name) == option]
            yield f"add {option}, which defines {some_of(defined)}"
        left = [name for name in names if name not in options]
        run_times = {name: where for name in left if (where := run_time_of(name))}
        for where in dict.fromkeys(run_times.values()):
            defined = [name for name in left if run_times.get(name) == where]
            yield f"add {where}, which defines {some_of(defined)}"
        for row in mangled(left, self._linked.objects):
            yield advice(*row)
        own = [symbol.name for symbol in self._made.symbols if symbol.defined]
        known = {*own, *libraries.symbol_names()} if left else set()
        for name in left:
            if close := get_close_matches(name, known, n=3, cutoff=0.8):
                yield f"near names of {name}: {', '.join(map(repr, close))}"
        yield f"add {ALLOW}={names[0]} if the process that loads it provides {names[0]}"

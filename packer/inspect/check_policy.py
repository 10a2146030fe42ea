"""check_strict(path): whether `runtime.harden` would refuse a library, with all reasons."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from runtime.serial.mapped_file import read_file
from runtime.trust.hardening.rules import RULES, Rules, violations

from .findings import Finding

_PASSED = {
    "segments": "none is both writable and executable",
    "stack": "not executable",
    "text relocations": "none",
    "search paths": "none that is not allowed",
    "needed libraries": "all are allowed",
    "resolvers": "none",
    "start-up names": "none is defined",
    "constructors": "only the compiler's",
    "destructors": "only the compiler's",
}


def check_strict(
    path: str | os.PathLike[str], *, needed: Iterable[str] = (), origin: bool = False
) -> list[Finding]:
    """Check a library of any machine by the rules of `runtime.harden`; it is read, never loaded.

    Return a finding for each violation, named ``"policy: <rule>"``, and one for each rule that
    holds. Raises LibraryLoadError if the file cannot be read.
    """
    return [*_findings(read_file(os.fspath(path)), Rules(tuple(needed), origin))]


def _findings(data: memoryview, rules: Rules) -> Iterator[Finding]:
    try:
        found = list(violations(data, rules))
    except ValueError as error:
        yield Finding("policy", "fail", str(error), "export it again, or copy it again")
        return
    for rule in RULES:
        broken = [violation for violation in found if violation.rule == rule]
        for violation in broken:
            yield Finding(f"policy: {rule}", "fail", violation.text, violation.hint)
        if not broken:
            yield Finding(f"policy: {rule}", "pass", _PASSED[rule])

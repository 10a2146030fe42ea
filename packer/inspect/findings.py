"""Findings: what was looked at, whether it is as it should be, and what to do where it is not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from .drawing import Line, Role, Span, line

Status = Literal["pass", "warn", "fail"]
_ROLES: dict[Status, Role] = {"pass": "good", "warn": "warn", "fail": "bad"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes
    ----------
    name : str
        What: ``"machine"``, ``"needed libfoo.so.1"``.
    status : {"pass", "warn", "fail"}
        A warning does not keep anybody from going on.
    detail : str
        What was found.
    remedy : str
        What to do; empty where nothing is to be done.
    """

    name: str
    status: Status
    detail: str
    remedy: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return it ready for `json.dumps`."""
        return asdict(self)


def has_failed(findings: Iterable[Finding]) -> bool:
    """Whether one of them failed."""
    return any(finding.status == "fail" for finding in findings)


def list_findings(findings: Iterable[Finding]) -> Iterator[Line]:
    """Draw findings, a line for each, and its remedy below it."""
    for finding in findings:
        mark: Span = (f"{finding.status}  ", _ROLES[finding.status])
        yield line(mark, (finding.name, "title"), f": {finding.detail}", hang=8)
        if finding.remedy:
            yield line(f"      -> {finding.remedy}", hang=9)

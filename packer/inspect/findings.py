"""Findings: what was checked, the result, and a remedy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from .drawing import Line, Role, Span, line

Status = Literal["pass", "warn", "fail"]
_ROLES: dict[Status, Role] = {"pass": "good", "warn": "warn", "fail": "bad"}


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check.

    Attributes
    ----------
    name : str
        What was checked: ``"machine"``, ``"needed libfoo.so.1"``.
    status : {"pass", "warn", "fail"}
        A warning affects some uses only.
    detail : str
        What was found.
    remedy : str
        What to do; empty if nothing.
    """

    name: str
    status: Status
    detail: str
    remedy: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, ready for `json.dumps`."""
        return asdict(self)


def has_failed(findings: Iterable[Finding]) -> bool:
    """Return True if one of the checks failed."""
    return any(finding.status == "fail" for finding in findings)


def list_findings(findings: Iterable[Finding]) -> Iterator[Line]:
    """Draw a line for each finding, followed by its remedy."""
    for finding in findings:
        mark: Span = (f"{finding.status}  ", _ROLES[finding.status])
        yield line(mark, (finding.name, "title"), f": {finding.detail}", hang=8)
        if finding.remedy:
            yield line(f"      -> {finding.remedy}", hang=9)

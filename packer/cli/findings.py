"""Print the findings of ``packer check`` and ``packer doctor``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from .terminal import show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..inspect.findings import Finding

_SCHEMA = 1


def report(findings: Sequence[Finding], as_json: bool, **fields: str) -> None:
    """Print findings as text, or with further fields as JSON; exit status 1 if one failed."""
    from ..inspect.findings import has_failed, list_findings

    failed = has_failed(findings)
    if as_json:
        from .json_text import write_json

        plain = [finding.to_dict() for finding in findings]
        write_json({"schema": _SCHEMA, **fields, "ok": not failed, "findings": plain})
    else:
        show(list_findings(findings))
    if failed:
        sys.exit(1)

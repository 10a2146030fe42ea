"""The page: one file made of ``templates/report.*`` and the data, which the script draws.

What a library says reaches the page only as JSON in a data block, and the document only as text
nodes. Should that ever be wrong, the policy lets nothing run but the script below, by its hash,
and nothing be fetched from anywhere.
"""

from __future__ import annotations

import html
import json
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from string import Template
from typing import Any

_TEMPLATES = Path(__file__).parents[2] / "templates"
_SCRIPTS = ("dom", "map", "tree", "lists", "page")  # in this order: each uses the ones before


def render_page(content: dict[str, Any]) -> str:
    """Make the page, in ASCII, of what `describe` gives."""
    style = _read("report.css")
    script = "".join(_read(f"report.{name}.js") for name in _SCRIPTS)
    return Template(_read("report.html")).substitute(
        title=_ascii(html.escape(content["name"])),
        policy=f"default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"style-src {_source(style)}; script-src {_source(script)}",
        style=style,
        script=script,
        data=_data_block(content),
    )


def _read(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="ascii")


def _data_block(content: dict[str, Any]) -> str:
    """JSON that cannot end its element (HTML, script data state): no ``<`` is left in it."""
    return json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")


def _source(text: str) -> str:
    """A hash source (CSP Level 3): exactly this text may be run, or applied."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _ascii(text: str) -> str:
    return text.encode("ascii", "xmlcharrefreplace").decode()

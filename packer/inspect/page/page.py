"""The page: one file that consists of ``templates/report.*`` and the data, which the script draws.

Text of a library enters the page only as JSON in a data block, and the document only as text
nodes. As a second barrier the page's policy allows only this script, by its hash, and no fetches.
"""

from __future__ import annotations

import html
import json
from base64 import b64encode
from hashlib import sha256
from string import Template
from typing import Any

from ...files.shipped import templates

_TEMPLATES = templates()
_SCRIPTS = (
    "dom",
    "map",
    "tree",
    "lists",
    "graph",
    "page",
)  # in this order: each uses the previous ones


def render_page(content: dict[str, Any]) -> str:
    """Return the page, in ASCII, for the result of `describe`."""
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
    """Return JSON without ``<``, so that it cannot end its element (HTML, script data state)."""
    return json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")


def _source(text: str) -> str:
    """Return a hash source (CSP Level 3), which allows exactly this script or style."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _ascii(text: str) -> str:
    return text.encode("ascii", "xmlcharrefreplace").decode()

"""A real browser for the tests of the page: Debian's chromium, driven by playwright."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...support import needs

# It starts as root in a container, and asks no questions.
_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

OpenPage = Callable[..., Any]


@contextmanager
def running_browser() -> Iterator[Any]:
    """A headless browser with a new, empty profile."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=needs.browser(), args=_FLAGS)
        yield browser
        browser.close()


@contextmanager
def opened(browser: Any, path: Path, **options: Any) -> Iterator[Any]:
    """A page, shown; in the end it must have been silent, and have asked for no other file."""
    context = browser.new_context(**{"reduced_motion": "reduce", **options})
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: said.append(dialog.message))
    page.on("request", lambda request: said.append(f"asked for {request.url}"))
    page.goto(path.as_uri())
    yield page
    context.close()
    assert said == [f"asked for {path.as_uri()}"]

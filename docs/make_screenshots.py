"""Photograph `packer inspect` of examples/photo: the terminal, and the page, light and dark.

    python examples/photo/demo.py && python docs/make_screenshots.py

Needs playwright and chromium. The pictures go to docs/images.
"""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
EXAMPLE = HERE.parent / "examples" / "photo"
LIBRARY = "out/photo.so"
COLUMNS = 104
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]

# The colours that packer writes (ECMA-48, SGR), in a dark terminal.
COLOURS = {
    "1": "font-weight: 700; color: #fff",
    "2": "color: #999",
    "31": "color: #ff7b72",
    "32": "color: #7ee787",
    "33": "color: #e3b341",
    "36": "color: #56d4dd",
}
TERMINAL = (
    "<body style='margin: 16px; background: #16181d; color: #d8dadf; "
    'font: 15px/1.4 "DejaVu Sans Mono", monospace; white-space: pre\'>{}</body>'
)


def terminal_page() -> str:
    """Return the output of a terminal as a page."""
    import pty

    command = [sys.executable, "-m", "packer", "inspect", LIBRARY]
    main, other = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    environment["PYTHONPATH"] = str(HERE.parent)
    with subprocess.Popen(command, cwd=EXAMPLE, stdout=other, env=environment):
        os.close(other)
        data = b"".join(iter(lambda: read(main), b""))
    os.close(main)
    text = html.escape(f"\x1b[1m$ packer inspect {LIBRARY}\x1b[0m\n" + data.decode())
    return TERMINAL.format(re.sub(r"\x1b\[([\d;]*)m", span, text.replace("\r", "")))


def read(descriptor: int) -> bytes:
    """Return the next bytes of a pseudo-terminal; none if the other side is closed."""
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:
        return b""


def span(match: re.Match[str]) -> str:
    """Return an escape sequence as markup."""
    codes = [code for code in match[1].split(";") if code in COLOURS]
    return f"<span style='{'; '.join(COLOURS[code] for code in codes)}'>" if codes else "</span>"


def photograph(browser: Any, path: Path, name: str, height: int, scheme: str, width: int) -> None:
    """Save the visible part of a page."""
    size = {"width": width, "height": height}
    page = browser.new_page(viewport=size, color_scheme=scheme)
    page.goto(path.as_uri())
    blob = page.locator(".block[aria-label^='LOAD R']")
    if blob.count():
        blob.last.click()
        page.locator(".bar").last.locator(".block").first.click()
        page.click(".block[aria-label^='__tvm_dev_mblob']")
    page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=HERE / "images" / name)
    page.close()


def main() -> None:
    """Make all pictures."""
    from playwright.sync_api import sync_playwright

    folder = Path(tempfile.mkdtemp())
    (folder / "terminal.html").write_text(terminal_page(), encoding="utf-8")
    inspect = [sys.executable, "-m", "packer", "inspect", LIBRARY, "--html", folder / "report.html"]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    subprocess.run(inspect, cwd=EXAMPLE, stdout=subprocess.DEVNULL, env=environment, check=True)
    with sync_playwright() as playwright:
        chromium = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        photograph(browser, folder / "terminal.html", "inspect.png", 600, "dark", 1000)
        photograph(browser, folder / "report.html", "report.png", 1180, "light", 1280)
        photograph(browser, folder / "report.html", "report-dark.png", 1180, "dark", 1280)
        browser.close()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()

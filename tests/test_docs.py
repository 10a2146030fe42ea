"""The documents are complete, current and linked, and their code runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

import packer

from .support import needs
from .support.type_checker import errors_of

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = sorted(
    page
    for pattern in (
        "*.md",
        "benchmarks/*.md",
        "docs/**/*.md",
        "examples/**/*.md",
        "importers/*/*.md",
        "importers/*/docs/*.md",
        "runtime/*.md",
        "runtime/native/*.md",
    )
    for page in ROOT.glob(pattern)
)
CODE = re.compile(r"^```.*?^```|^    .*?$|`[^`]*`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:]*)#?([^)]*)\)")  # to a file of this repository
TIME = re.compile(r"\b\d[\d,.]* (?:ns|us|ms|MiB/s)\b")
# Times that the code sets, not measurements.
TIMES_SET = {"0.2 ms", "50 ms"}


def run(command: list[str | Path], folder: Path) -> str:
    """Run a program as a user does, with the tested packages; return its output."""
    environment = {**os.environ, "PYTHONPATH": str(Path(packer.__file__).parents[1])}
    environment.pop("PYTHONSAFEPATH", None)
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    done = subprocess.run(
        [*map(str, command)], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def code_blocks(page: Path, language: str) -> list[str]:
    """The blocks of code in one language on a page."""
    parts = page.read_text().split(f"```{language}\n")[1:]
    return [part.split("```")[0] for part in parts]


def links(page: Path) -> list[tuple[str, str]]:
    """The (path, anchor) of each relative link on a page; either may be empty."""
    return LINK.findall(CODE.sub("", page.read_text()))


def anchors(page: Path) -> set[str]:
    """The anchors that a page's headings make."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_reference_pages_are_current(tmp_path: Path) -> None:
    """`make docs` changes no page."""
    run([sys.executable, DOCS / "generate.py", "--check"], tmp_path)


def test_every_page_is_reachable_from_the_index() -> None:
    """docs/README.md links to every page of a folder docs/, directly or by another page."""
    pages = {page for page in PAGES if "docs" in page.relative_to(ROOT).parts}
    reached, pending = set(), [DOCS / "README.md"]
    while pending:
        page = pending.pop()
        if page in reached:
            continue
        reached.add(page)
        for target, _ in links(page):
            linked = (page.parent / target).resolve()
            if linked in pages:
                pending.append(linked)
    assert pages - reached == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link names a file, and a heading of it."""
    for target, anchor in links(page):
        linked = page.parent / target if target else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), f"{target}#{anchor}"


def test_measured_times_are_in_one_document() -> None:
    """A time that was measured is quoted by docs/benchmarks.md alone."""
    for page in PAGES:
        if page != DOCS / "benchmarks.md":
            found = set(TIME.findall(page.read_text())) - TIMES_SET
            assert found == set(), f"{page.relative_to(ROOT)}: link to docs/benchmarks.md instead"


def test_the_first_pages_are_short() -> None:
    """README fits on two screens, and the architecture on three."""
    assert len(README.read_text().splitlines()) <= 120
    assert len((DOCS / "architecture.md").read_text().splitlines()) <= 150


def test_readme_commands_run(tmp_path: Path) -> None:
    """README's C file and its shell commands work in this order."""
    (tmp_path / "a.c").write_text(code_blocks(README, "c")[0])
    output = run(["sh", "-e", "-c", code_blocks(README, "sh")[0]], tmp_path)
    assert output.startswith("a.so: ")
    assert 'add = "int(int a, int b)"\n42\n' in output
    assert "add(40, 2) -> 42\n" in output


@pytest.mark.parametrize(
    "page",
    [
        "coming-from-cffi.md",
        "coming-from-ctypes.md",
        "coming-from-swig.md",
        "compiling.md",
        "constants.md",
        "functions.md",
        "operators.md",
        "scale.md",
        "weights.md",
        "who-owns-what.md",
    ],
)
def test_python_of_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python code on a page runs from its top to its end."""
    if page == "coming-from-cffi.md":
        needs.module("cffi", "test")
    if page == "coming-from-swig.md":
        needs.program("swig")
    monkeypatch.setenv("DSO_CACHE", str(tmp_path / "store"))
    script = tmp_path / "page.py"
    script.write_text("".join(code_blocks(DOCS / page, "python")))
    run([sys.executable, "-W", "error", script], tmp_path)


def test_program_of_the_page_about_stubs_is_checked(tmp_path: Path) -> None:
    """The page's commands make the stub; mypy finds in the program what its comments say."""
    page = (DOCS / "stubs.md").read_text()
    shown = re.search(r"\$ cat geo.c\n(.*?)\n    \$ (.*?)\n    \$ (.*?)\n", page, re.DOTALL)
    assert shown is not None
    (tmp_path / "geo.c").write_text(shown[1])
    for command in shown.group(2, 3):
        run(["sh", "-c", command], tmp_path)
    (program,) = code_blocks(DOCS / "stubs.md", "python")
    (tmp_path / "program.py").write_text(program)
    expected = {
        number: line.split("# error: ")[1]
        for number, line in enumerate(program.splitlines(), 1)
        if "# error: " in line
    }
    errors = errors_of(tmp_path, "geo.pyi", "program.py")
    assert list(errors) == ["program.py"]
    assert list(errors["program.py"]) == list(expected)
    assert all(text in errors["program.py"][number] for number, text in expected.items())


def test_programs_of_the_page_about_libdso_run(tmp_path: Path) -> None:
    """Its files, each of which begins with its name, and its commands in their order."""
    for tool in ("cmake", "c++", "openssl"):
        needs.program(tool)
    needs.header("openssl/evp.h", "libssl-dev")
    page = DOCS / "libdso.md"
    for language in ("c", "cpp", "cmake"):
        for block in code_blocks(page, language):
            name = re.match(r"(?:/\*|//|#) (\S+)", block)
            assert name is not None
            (tmp_path / name[1]).write_text(block)
    save_file({"bias": np.zeros(4, dtype="float32")}, tmp_path / "weights.safetensors")
    c, trusting, whole, cpp, typed, cmake = (
        run(["sh", "-e", "-c", block], tmp_path).splitlines() for block in code_blocks(page, "sh")
    )
    assert c[-2:] == ["0.5 1 1.5", "bias: 4 elements"]
    assert trusting[-1] == "verified"
    (tmp_path / "model.so.sig").write_bytes(bytes(64))
    refused = subprocess.run(["./trusting"], cwd=tmp_path, capture_output=True, text=True)
    text = f"VerifyError: {tmp_path}/model.so: no signature of this key\n"
    assert (refused.returncode, refused.stdout) == (1, text)
    assert whole[-1] == "1 library"
    assert cpp == ["6 4", "42", "FunctionNotFoundError"]
    assert typed == ["12 1"]
    assert cmake[-2:] == c[-2:]

"""Fixtures and parameters that the tests of both packages share."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

# Before the first import of a helper: pytest then rewrites its assertions, as it does in tests.
pytest.register_assert_rewrite(
    *(f"tests.{n}" for n in ("support", "levels", "native", "packer", "runtime"))
)

from .support import distributions as dist  # noqa: E402
from .support import needs  # noqa: E402
from .support.compile import compile_c  # noqa: E402
from .support.paths import GOLDEN  # noqa: E402

# Processes that tests start import the installed packages, not the source tree in the current
# folder.
os.environ["PYTHONSAFEPATH"] = "1"
# Tests of exports see the compiler run; tests of the object cache name a folder.
os.environ.setdefault("PACKER_CACHE", "off")
# nohup, or a shell's &, ignores some signals. They stay ignored here, but not in processes that
# tests start: execve(2) resets a handler.
for number in (signal.SIGHUP, signal.SIGINT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, lambda number, frame: None)

CompileLibrary = Callable[..., Path]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add options: other folders of golden and malformed files; a list of what was skipped."""
    parser.addoption("--golden-dir", type=Path, default=GOLDEN, help="golden files")
    parser.addoption("--malformed-dir", type=Path, help="malformed blobs, with an index.json")
    parser.addoption("--skipped", type=Path, help="a file for the names of the skipped tests")


@pytest.fixture(scope="session")
def opencl_device() -> None:
    """Require an OpenCL device: `pytestmark = pytest.mark.usefixtures("opencl_device")`."""
    needs.opencl_device()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[Any]:
    """Skip a test that failed because this machine has no C++ compiler: only C is required."""
    report = yield
    if report.failed and (reason := needs.cxx_missing(report.longreprtext)):
        report.outcome, report.longrepr = "skipped", (report.fspath, None, f"Skipped: {reason}")
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Count the skipped tests by reason: how much of the suite this machine did not run."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"skipped {count:4}: {reason}")
    listed: Path | None = terminalreporter.config.getoption("skipped")
    if listed is not None:
        listed.write_text("".join(f"{report.nodeid}\n" for report in skipped), encoding="utf-8")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test per file: the name of a parameter selects the files."""
    folder: Path = metafunc.config.getoption("golden_dir")
    sources = {
        "accepted_blob": lambda: _goldens(folder, _is_accepted_blob),
        "reloaded_blob": lambda: _goldens(folder, _is_reloaded_blob),
        "refused_blob": lambda: _goldens(folder, lambda g, p: g["expect"] == "refuse"),
        "params_file": lambda: _goldens(folder, lambda g, p: "modules" not in g),
        "golden_tree": lambda: _goldens(folder, lambda g, p: "modules" in g),
        "cc_text": lambda: [pytest.param(p, id=p.name) for p in sorted(folder.glob("*.cc.txt"))],
        "random_tree": lambda: _random_trees(folder),
        "malformed_case": lambda: _malformed(
            metafunc.config.getoption("malformed_dir") or folder / "malformed"
        ),
    }
    for name in sources.keys() & set(metafunc.fixturenames):
        metafunc.parametrize(name, list(sources[name]()))


def _goldens(folder: Path, wanted: Callable[[dict[str, Any], Path], bool]) -> Iterator[Any]:
    for path in sorted(folder.glob("*.json")):
        golden = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(golden, dict) and wanted(golden, path):
            yield pytest.param((golden, path), id=path.stem)


def _is_accepted_blob(golden: dict[str, Any], path: Path) -> bool:
    return (
        golden["expect"] == "accept" and "modules" in golden and path.with_suffix(".bin").exists()
    )


def _is_reloaded_blob(golden: dict[str, Any], path: Path) -> bool:
    return _is_accepted_blob(golden, path) and golden.get("legacy_load", {}).get("ok", False)


def _random_trees(folder: Path) -> Iterator[Any]:
    path = folder / "random_trees.json"
    for graph in json.loads(path.read_text()) if path.exists() else []:
        yield pytest.param(graph, id=graph["id"])


def _malformed(folder: Path) -> Iterator[Any]:
    for name, case in json.loads((folder / "index.json").read_text()).items():
        yield pytest.param((name, case, (folder / f"{name}.bin").read_bytes()), id=name)


@pytest.fixture
def golden_dir(request: pytest.FixtureRequest) -> Path:
    """The folder of the golden files."""
    folder: Path = request.config.getoption("golden_dir")
    return folder


@pytest.fixture(scope="session")
def compile_library(tmp_path_factory: pytest.TempPathFactory) -> CompileLibrary:
    """``compile_library(source, *options)``: a separate library; equal calls share the file."""
    made: dict[tuple[str, ...], Path] = {}

    def compile_library(source: str, *options: str) -> Path:
        key = (source, *options)
        if key not in made:
            folder = tmp_path_factory.mktemp("compiled")
            made[key] = compile_c(source, folder / f"lib{len(made)}.so", *options)
        return made[key]

    return compile_library


@pytest.fixture
def compile_object(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """``compile_object(source)``: a position-independent object file."""

    def compile_object(source: str) -> Path:
        return compile_c(source, tmp_path_factory.mktemp("object") / "made.o", "-c")

    return compile_object


@pytest.fixture(scope="session")
def empty_object(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An object file that defines nothing."""
    return compile_c("static int nothing;", tmp_path_factory.mktemp("empty") / "empty.o", "-c")


@pytest.fixture
def pack_blob(tmp_path: Path) -> Callable[..., Path]:
    """``pack_blob(data)``: a library that has these bytes at ``__tvm_dev_mblob``."""

    def pack(data: bytes, nbytes: int | None = None, symbol: str = "__tvm_dev_mblob") -> Path:
        header = (len(data) if nbytes is None else nbytes).to_bytes(8, "little")
        (tmp_path / "blob.bin").write_bytes(header + data)
        source = (
            f'__asm__(".section .rodata\\n.globl {symbol}\\n"\n'
            f'".type {symbol}, %object\\n.balign 64\\n{symbol}:\\n"\n'
            f'".incbin \\"{tmp_path}/blob.bin\\"\\n'
            f'.size {symbol}, .-{symbol}\\n.text\\n");\n'
        )
        return compile_c(source, tmp_path / "packed.so")

    return pack


@pytest.fixture(scope="session")
def build_environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with setuptools and pip, and every package of this one but for ours."""
    return dist.make_environment(tmp_path_factory.mktemp("environment") / "venv")


@pytest.fixture(scope="session")
def sdists(tmp_path_factory: pytest.TempPathFactory, build_environment: Path) -> dict[str, Path]:
    """The source distribution of each project, built from a copy of the tracked files."""
    source = dist.copy_checkout(tmp_path_factory.mktemp("source") / "tree")
    made = source.parent / "dist"
    return {
        name: dist.build("sdist", source / folder, build_environment, made)
        for name, folder in dist.PROJECTS.items()
    }


@pytest.fixture(scope="session")
def wheels(
    sdists: dict[str, Path], build_environment: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """The wheel of each project, built from its source distribution; both in one folder."""
    folder = tmp_path_factory.mktemp("wheels")
    return {
        name: dist.build("wheel", dist.unpacked(sdist), build_environment, folder)
        for name, sdist in sdists.items()
    }

"""C programs over libdso, without Python, under ASan, UBSan, LeakSanitizer, TSan and memcheck."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from core import ROOT, compile_c, pure_sources
from row import Row

HERE = Path(__file__).parent
SUPPORT = ROOT / "tests" / "support"
MODELS = ("graph", "vm", "weights")
VERSION = '-DDSO_VERSION="sanitize"'
ASAN = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")
ROUNDS = 100
TIMEOUT = 600


def run_libdso(folder: Path) -> list[Row]:
    """Make the files with the packages that are installed; then run the programs."""
    command = [sys.executable, ROOT / "tests/native/dso/dso_models.py", folder]
    subprocess.run(command, env={**os.environ, "PYTHONSAFEPATH": "1"}, check=True)
    return [_run_asan(folder), _run_tsan(folder), _run_memcheck(folder)]


def _program(name: str, folder: Path, *options: str) -> Path:
    source = HERE / f"{name}.c" if name.startswith("threads") else SUPPORT / "c" / f"{name}.c"
    return compile_c([*pure_sources(), source], folder / name, VERSION, *options)


def _run(name: str, tasks: list[tuple[list[str | Path], str]], **environment: str) -> Row:
    """Run some commands; a finding is a status other than 0."""
    found = []
    for command, text in tasks:
        try:
            done = subprocess.run(
                command, input=text, capture_output=True, text=True, check=False, timeout=TIMEOUT,
                env={**os.environ, **environment},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Row(name, False, f"not over in {TIMEOUT} s")
        if done.returncode != 0:
            found.append(done.stderr or done.stdout)
    files = max(len(command) for command, _ in tasks) - 1
    return Row(name, not found, f"{len(tasks)} processes, {files} files", "\n".join(found))


def _run_asan(folder: Path) -> Row:
    own = folder / "asan"
    tasks = _tasks_in(own, folder, *ASAN)
    threads = _program("threads_dso", own, *ASAN)
    tasks.append(([threads, "10", *(folder / f"model_{name}.so" for name in MODELS)], ""))
    return _run("asan, ubsan, leaks: libdso", tasks, ASAN_OPTIONS="detect_leaks=1")


def _run_tsan(folder: Path) -> Row:
    own = folder / "tsan"
    own.mkdir()
    program = _program("threads_dso", own, "-fsanitize=thread", "-Wno-tsan")
    models = [folder / f"model_{name}.so" for name in MODELS]
    tasks: list[tuple[list[str | Path], str]] = [([program, str(ROUNDS), *models], "")]
    return _run("tsan: libdso", tasks, TSAN_OPTIONS="exitcode=66")


def _run_memcheck(folder: Path) -> Row:
    name = "valgrind: libdso"
    if shutil.which("valgrind") is None:
        return Row(name, None, "no valgrind here")
    checked = ["valgrind", "-q", "--error-exitcode=66", "--leak-check=full"]
    checked += ["--show-leak-kinds=definite", "--num-callers=30"]
    tasks = _tasks_in(folder / "memcheck", folder)
    return _run(name, [([*checked, *command], text) for command, text in tasks])


def _tasks_in(own: Path, folder: Path, *options: str) -> list[tuple[list[str | Path], str]]:
    """The programs in a separate folder, the files in the common one."""
    own.mkdir()
    driver, script = (_program(name, own, *options) for name in ("dso_driver", "dso_script"))
    files: list[str | Path] = [driver, *sorted(folder.glob("*.so"))]
    scripts = [folder / f"{name}.txt" for name in MODELS]
    return [(files, ""), *(([script], path.read_text()) for path in scripts)]

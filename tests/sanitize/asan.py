"""The tests of the core under AddressSanitizer and UndefinedBehaviorSanitizer, and its leaks."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path

from core import ROOT, build_packages
from row import Row

FLAGS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")
TESTS = (
    "native/*/test_*.py",
    *("runtime/graph/test_*.py", "runtime/relax/test_*.py"),
    *("runtime/test_checksum_symbols.py", "runtime/test_load.py"),
    "runtime/device/test_standalone_files.py",
    *("runtime/test_load_functions.py", "packer/declare/test_wrapper_*.py"),
)
# They load other runtimes globally, start interpreters, or are run under TSan instead (pool.py).
# Programs of native/dso contain another core, which libdso.py checks.
LEFT_OUT = {
    "dso",
    *("test_abi.py", "test_bridge.py", "test_interpreters.py", "test_legacy.py"),
    *("test_opencl_driver.py", "test_opencl_two_devices.py", "test_launch.py", "test_workspace.py"),
}
# Compilers that the tests start leak too: exitcode 0 allows them, and the logs name the owner of a
# leak. Tests look at the memory of the process, and ask for too much of it.
OPTIONS = (
    "detect_leaks=1:exitcode=0:quarantine_size_mb=16:allocator_may_return_null=1:log_path={}/asan"
)
# Python ends threads in the middle of calls, which then leak: this cannot be avoided. Two libraries
# crash a child, as their tests say. With a global tvm_ffi a bridge is opened with RTLD_DEEPBIND,
# for which AddressSanitizer ends the process.
EXCEPT = (
    "not test_end_while_tasks_call_python and not test_initialiser_at_other_code_is_not_detected "
    "and not test_a_host_function_with_another_n_runs_in_a_child "
    "and not test_function_of_a_library_of_tvm_is_packed"
)
ERROR = re.compile("ERROR: AddressSanitizer|runtime error: ")
LEAK = re.compile(r"^(?:Direct|Indirect) leak of .*?(?:\n\n|\Z)", re.MULTILINE | re.DOTALL)


def run_tests(folder: Path) -> list[Row]:
    """Run them; one row for the tests and the sanitizers, one for leaks."""
    environment = build_packages(folder, *FLAGS)
    logs = folder / "logs"
    logs.mkdir()
    _add_compilers(folder / "bin")
    environment |= {
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        # libstdc++, which tvm_ffi loads later, must be loaded when libasan looks for __cxa_throw.
        "LD_PRELOAD": f"{_runtime('libasan.so')} {_runtime('libstdc++.so.6')}",
        "ASAN_OPTIONS": OPTIONS.format(logs),
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    found = {pattern: list((ROOT / "tests").glob(pattern)) for pattern in TESTS}
    assert all(found.values()), f"no file for a pattern: {found}"
    files = sorted(
        path
        for paths in found.values()
        for path in paths
        if LEFT_OUT.isdisjoint((path.name, path.parent.name))
    )
    rooms = [list(room) for _, room in groupby(files, lambda path: path.parent)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        done = list(pool.map(lambda room: _run(room, environment), rooms))
    texts = [path.read_text() for path in logs.iterdir()]
    return [_errors(done, texts), _leaks(texts)]


def _add_compilers(folder: Path) -> None:
    """Write compilers that are not preloaded: a compilation would take ten times as long."""
    folder.mkdir()
    for name in ("cc", "c++", "gcc", "g++", "clang", "clang++"):
        if found := shutil.which(name):
            (folder / name).write_text(f'#!/bin/sh\nunset LD_PRELOAD\nexec {found} "$@"\n')
            (folder / name).chmod(0o755)


def _run(files: list[Path], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the tests of one folder, and print how long it took."""
    start = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", EXCEPT, *files]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    room = files[0].parent.relative_to(ROOT)
    print(f"  {room}: {time.monotonic() - start:.0f} s, {_last_line(done)}", flush=True)
    return done


def _last_line(done: subprocess.CompletedProcess[str]) -> str:
    return "".join(done.stdout.strip().splitlines()[-1:])


def _runtime(name: str) -> str:
    command = ["cc", f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _errors(done: list[subprocess.CompletedProcess[str]], texts: list[str]) -> Row:
    errors = [text for text in texts if ERROR.search(text)]
    # A sanitizer ends the process with status 0, too: the last line shows that all tests ran.
    cut = [run for run in done if run.returncode != 0 or " passed" not in _last_line(run)]
    output = "\n".join([*errors, *(run.stdout + run.stderr for run in cut)])
    num_tests = sum(int(n) for run in done for n in re.findall(r"(\d+) passed", _last_line(run)))
    return Row("asan, ubsan: tests of the core", not output, f"{num_tests} tests passed", output)


def _leaks(texts: list[str]) -> Row:
    """Blocks that the core allocated and that are unreachable when a process ends."""
    leaks = [leak[0] for text in texts for leak in LEAK.finditer(text)]
    ours = [leak for leak in leaks if "/runtime/native/" in leak]
    detail = f"{len(ours)} stacks of the core in {len(texts)} reports"
    return Row("leaks of the core", not ours, detail, "\n".join(ours))

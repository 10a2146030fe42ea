"""The imports of a fresh process until a library answers; benchmarks/cold_start.py has the time.

Each heavy module costs from one to a hundred milliseconds, so a list is enough to keep the 5 ms.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import packer
import runtime

HEAVY = {
    *("argparse", "ast", "asyncio", "base64", "collections", "contextlib", "copy", "ctypes"),
    *("dataclasses", "datetime", "enum", "functools", "hashlib", "importlib.metadata", "inspect"),
    *("json", "logging", "numpy", "pathlib", "pickle", "random", "re", "shutil"),
    *("subprocess", "tempfile", "threading", "traceback", "typing", "warnings", "weakref"),
    *("packer", "cffi", "cryptography", "cyclonedx", "elftools", "llvmlite", "pycparser", "rich"),
}
IMPORT = "import runtime"
LOAD = "module = runtime.load(sys.argv[1])"
CALL = "assert module['add'](40, 2) == 42"
NEW = "print(*(set(sys.modules) - before))"


def imported(folder: Path, *lines: str) -> set[str]:
    """The modules that a process without site packages has imported after these lines."""
    start = ("import sys", f"sys.path.insert(0, {str(Path(runtime.__file__).parent.parent)!r})")
    code = "\n".join((*start, "before = set(sys.modules)", IMPORT, *lines, NEW))
    command = [sys.executable, "-I", "-S", "-c", code, str(folder / "lib.so")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def host() -> packer.CSourceModule:
    """Host code with one function."""
    return packer.CSourceModule(
        "long add(long a, long b) { return a + b; }", functions={"add": "long(long a, long b)"}
    )


def test_import_is_light(tmp_path) -> None:
    """Importing the runtime brings the native core and little else."""
    new = imported(tmp_path)
    assert "runtime._core" in new
    assert not HEAVY & new


def test_loading_a_plain_library_is_light(tmp_path) -> None:
    """So does loading a library without a tree, and a call."""
    packer.export_library(host(), tmp_path / "lib.so")
    new = imported(tmp_path, LOAD, CALL)
    assert "runtime.library" in new
    late = {f"runtime.{name}" for name in ("blob", "error", "payloads", "registry")}
    assert not (HEAVY | late) & new


def test_loading_a_tree_is_light(tmp_path) -> None:
    """Unused modules are not imported, and neither is what would make them."""
    root = host()
    root.import_module(runtime.DeviceModule("cuda", b"payload", "cubin", []))
    root.import_module(runtime.ConstLoaderModule({"w": b"1234"}, {}))
    packer.export_library(root, tmp_path / "lib.so")
    assert imported(tmp_path, LOAD, CALL) == imported(tmp_path)
    new = imported(tmp_path, LOAD, "assert len(module.imported_modules) == 2", CALL)
    assert {"runtime.modules.device", "runtime.modules.const_loader"} <= new
    assert not HEAVY & new


def test_a_heavy_import_would_be_seen(tmp_path) -> None:
    """An import during a later call counts too."""
    assert "json" in HEAVY & imported(tmp_path, "import json")

"""packer doctor: the tools of this machine, compared with their own output."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import llvmlite
import pytest

import runtime
from packer.elf.library_search import find_system_library
from packer.inspect.device_query import query_devices
from packer.inspect.doctor import examine_machine
from runtime.registry import known_type_keys


def doctor(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    command = [sys.executable, "-m", "packer", "doctor", *arguments]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "PYTHONSAFEPATH": "1", **env},
    )


def test_tools_are_found_with_their_versions() -> None:
    """The tools print the same versions."""
    findings = {finding.name: finding for finding in examine_machine()}
    assert findings["runtime core"].detail.startswith(runtime.__version__)
    assert findings["llvmlite"].detail.startswith(llvmlite.__version__)
    assert "x86_64" in findings["LLVM targets"].detail
    assert findings["loaders"].detail == ", ".join(known_type_keys())
    linker = shutil.which("ld")
    assert linker is not None
    version = subprocess.run([linker, "--version"], capture_output=True, text=True, check=True)
    assert findings["linker ld"].detail == f"{linker}: {version.stdout.splitlines()[0]}"
    assert findings["C compiler"].status == "pass"


def test_targets_and_kernels_are_reported() -> None:
    """The compilers that --target would take, and whose kernels are launched."""
    findings = {finding.name: finding for finding in examine_machine()}
    for machine in ("aarch64", "riscv64"):
        compiler = f"{machine}-linux-gnu-gcc"
        if shutil.which(compiler) is not None:
            assert f"{machine}-linux-gnu: {shutil.which(compiler)}" in findings["targets"].detail
    state = "found" if find_system_library("libOpenCL.so.1") else "missing"
    assert f"opencl (driver {state})" in findings["kernels"].detail
    run = doctor(PATH="/none")
    if find_spec("ziglang") is not None:  # a package, so that it is found without PATH
        assert "zig cc -target aarch64-linux-gnu" in run.stdout
        return
    assert "warn  targets: none" in run.stdout
    assert "Debian: gcc-aarch64-linux-gnu" in run.stdout


def test_missing_driver_has_a_remedy() -> None:
    """A missing driver is a warning, since only some users need it."""
    findings = {finding.name: finding for finding in examine_machine()}
    for kind, library in (("cuda", "libcuda.so.1"), ("opencl", "libOpenCL.so.1")):
        finding = findings[f"{kind} driver"]
        if find_system_library(library) is None:
            assert (finding.status, finding.detail) == ("warn", f"{library} not found")
            assert finding.remedy


DRIVER = """
#include <stdint.h>
#include <string.h>
int cuInit(unsigned flags) { return BROKEN; }
int cuDriverGetVersion(int *version) { *version = 12040; return 0; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
int cuDeviceGetName(char *name, int n, int device) { strcpy(name, "GPU \\033[31m"); return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  *value = attribute == 75 ? 8 : 6;
  return 0;
}
int clGetPlatformIDs(uint32_t n, void **ids, uint32_t *count) {
  *count = 1;
  ids[0] = ids;
  return 0;
}
int clGetPlatformInfo(void *id, uint32_t key, size_t n, char *text, size_t *size) {
  strcpy(text, key == 0x0902 ? "Platform" : "OpenCL 3.0");
  return 0;
}
int clGetDeviceIDs(void *id, uint64_t kind, uint32_t n, void **ids, uint32_t *count) {
  *count = 1;
  ids[0] = ids;
  return 0;
}
int clGetDeviceInfo(void *id, uint32_t key, size_t n, char *text, size_t *size) {
  strcpy(text, key == 0x102B ? "CPU" : "OpenCL 3.0 CPU");
  return 0;
}
"""


@pytest.fixture
def driver(tmp_path, compile_library, monkeypatch):
    """``driver(code)``: false libcuda.so.1 and libOpenCL.so.1 whose cuInit runs the code."""

    def install(broken: str) -> None:
        made = compile_library(DRIVER.replace("BROKEN", broken)).read_bytes()
        for name in ("libcuda.so.1", "libOpenCL.so.1"):
            (tmp_path / name).write_bytes(made)
        monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))

    return install


def test_drivers_are_queried_for_their_devices(driver) -> None:
    """Version, names and architectures."""
    driver("0")
    device = {"name": "GPU \x1b[31m", "architecture": "sm_86"}
    assert query_devices("cuda") == {"version": "12.4", "devices": [device]}
    device = {"name": "CPU", "architecture": "OpenCL 3.0 CPU"}
    assert query_devices("opencl") == {"version": "Platform OpenCL 3.0", "devices": [device]}
    details = [finding.detail for finding in examine_machine()]
    assert "GPU \x1b[31m, sm_86" in details
    assert "CPU, OpenCL 3.0 CPU" in details


@pytest.mark.parametrize(
    ("broken", "match"),
    [("100", "cuInit returns 100"), ("*(volatile int *)0", "the driver ended the query with -11")],
)
def test_broken_driver_is_a_warning(broken, match, driver) -> None:
    """One that reports an error, and one that crashes."""
    driver(broken)
    findings = {finding.name: finding for finding in examine_machine()}
    assert findings["cuda driver"].status == "warn"
    assert match in findings["cuda driver"].detail


def test_missing_compiler_fails(tmp_path: Path) -> None:
    """Without a compiler no host code can be packed; the remedy names the package to install."""
    run = doctor(PATH=str(tmp_path))
    assert (run.returncode, run.stderr) == (1, "")
    assert "fail  C compiler: no compiler for 'c'" in run.stdout
    assert "      -> install one (Debian: gcc), or name it in CC" in run.stdout
    assert "fail  linker: not found" in run.stdout


def test_json_has_each_finding() -> None:
    """For programs."""
    run = doctor("--json", PATH=os.environ["PATH"])
    content = json.loads(run.stdout)
    assert (run.returncode, run.stderr, content["schema"], content["ok"]) == (0, "", 1, True)
    names = [finding["name"] for finding in content["findings"]]
    machine = [finding.name for finding in examine_machine()]
    assert names[: len(machine)] == machine
    assert all(name.startswith("importer ") for name in names[len(machine) :])

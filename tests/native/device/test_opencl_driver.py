"""A missing OpenCL driver blocks only its kernels, and the error states the remedy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from ...support import needs
from ...support.compile import compile_c

# Launch a kernel, report the outcome, and continue without the driver.
LAUNCH = """
import runtime
module = runtime.DeviceModule("opencl", "__kernel void f() {}", "cl", [runtime.FunctionInfo("f")])
print(module.property_mask)
try:
    module["f"]()
except runtime.DeviceError as error:
    print(error, error.device, error.code, sep="|")
print(runtime.tensor(b"ab").nbytes)
"""
NO_DRIVER = "install one (Debian: ocl-icd-libopencl1 and the device's driver"


def launch(**environment: Any) -> list[str]:
    """Return the lines that the process prints with these variables set."""
    command = [sys.executable, "-W", "error", "-c", LAUNCH]
    variables = {**os.environ, **{name: str(value) for name, value in environment.items()}}
    run = subprocess.run(
        command, env=variables, capture_output=True, text=True, timeout=60, check=True
    )
    assert run.stderr == ""
    return run.stdout.splitlines()


def test_library_that_does_not_open(tmp_path: Path) -> None:
    """A file that is not a library is not a driver; the module is carried, and the rest works."""
    (tmp_path / "libOpenCL.so.1").write_text("not a library")
    mask, error, rest = launch(LD_LIBRARY_PATH=tmp_path)
    assert (mask, rest) == ("1", "2")
    assert error.startswith("opencl:0: no OpenCL found: ")
    assert NO_DRIVER in error
    assert error.endswith("|opencl:0|None")


def test_library_that_is_too_old(tmp_path: Path) -> None:
    """A driver library without a function that is needed is refused by that name."""
    compile_c("int clGetPlatformIDs(void) { return 0; }", tmp_path / "libOpenCL.so.1")
    mask, error, rest = launch(LD_LIBRARY_PATH=tmp_path)
    assert (mask, rest) == ("1", "2")
    assert "is too old, expected OpenCL 1.2 or newer: it does not define clGetDeviceIDs" in error


def test_library_without_a_platform(tmp_path: Path) -> None:
    """A driver library without a platform, hence without a device, advises what to install."""
    needs.opencl_library()
    mask, error, rest = launch(OCL_ICD_VENDORS=tmp_path)
    assert (mask, rest) == ("3", "2")
    assert error.startswith("opencl:0: no OpenCL device found on 0 platforms; install one")
    assert error.endswith("|opencl:0|-1001")


def test_driver_that_was_installed_later_is_found(tmp_path: Path) -> None:
    """A driver that was installed after a first look is found, without a new process."""
    needs.opencl_library()
    code = LAUNCH.replace(
        'print(runtime.tensor(b"ab").nbytes)',
        f"import os; os.unlink({str(tmp_path / 'libOpenCL.so.1')!r}); print(module.property_mask)",
    )
    (tmp_path / "libOpenCL.so.1").write_text("not a library")
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert run.stdout.splitlines()[-1] == "3"

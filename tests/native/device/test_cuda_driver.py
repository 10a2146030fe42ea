"""CUDA modules with a FAKE driver: its errors, and drivers that are missing or too old."""

from __future__ import annotations

from pathlib import Path

import pytest

from ...support.cuda import run_with_fake
from .cuda_launch import LAUNCH, PARAMS, PTX, TAGS, Fake


def test_no_device_is_reported(launch: Fake) -> None:
    """A driver without a device."""
    (printed,), _ = launch(PTX, devices="")
    assert (
        "|cuda:0: no CUDA device found, but the driver is installed; check CUDA_VISIBLE_DEVICES"
        in printed
    )


def test_wrong_index_is_reported(fake_driver: Path) -> None:
    """An index beyond the devices lists the devices that are there."""
    code = LAUNCH.replace('Device("cuda", 0)', 'Device("cuda", 2)')
    (printed,), _ = run_with_fake(fake_driver, code, PTX, TAGS, 1, 1, devices="80 90")
    assert "cuda:2: no such device, found 2: cuda:0 'FAKE 0', cuda:1 'FAKE 1'" in printed


@pytest.mark.parametrize(
    ("fail", "message"),
    [
        ("cuInit 999", "|999|cuda:0: starting the CUDA driver: an unknown code, FAKE (code 999)"),
        ("cuDevicePrimaryCtxRetain 2", "the primary context of 'FAKE 0': CUDA_ERROR_OUT_OF_MEMORY"),
        (
            "cuMemAlloc_v2 2",
            "32 bytes on 'FAKE 0': CUDA_ERROR_OUT_OF_MEMORY, FAKE; free other memory, or",
        ),
        ("cuMemcpyHtoD_v2 700", "copying 32 bytes: CUDA_ERROR_ILLEGAL_ADDRESS, FAKE; the data on"),
        ("cuModuleLoadDataEx 222", "CUDA_ERROR_UNSUPPORTED_PTX_VERSION, FAKE; update the driver"),
        (
            "cuLaunchKernel 700",
            "'scale': launching 2 x 1 x 1 blocks of 4 x 1 x 1 threads: CUDA_ERR",
        ),
    ],
)
def test_codes_of_the_driver_are_reported(launch: Fake, fail: str, message: str) -> None:
    """Every code becomes a DeviceError with its name, its meaning, and a remedy."""
    printed, _ = launch(PTX, fail=fail)
    assert message in "\n".join(printed)


def test_memory_that_outlives_the_driver_is_released(launch: Fake) -> None:
    """At exit the driver may be unloaded first: nothing is printed then."""
    printed, _ = launch(PTX, fail="cuMemFree_v2 4")
    assert printed == ["launched"]


def test_process_forked_after_use_is_refused(fake_driver: Path) -> None:
    """A process forked from one that used CUDA fails, and the error recommends spawning."""
    code = LAUNCH + (
        "import os\n"
        "sys.stdout.flush()\n"
        "if os.fork() == 0:\n"
        "    try:\n"
        '        module["scale"](x, 2.5, 8, *map(int, extents))\n'
        "    except runtime.DeviceError as error:\n"
        "        print(error, flush=True)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
    )
    printed, _ = run_with_fake(fake_driver, code, PTX, TAGS, 1, 1, devices="80", params=PARAMS)
    assert printed[0] == "launched"
    assert "cuda:0: CUDA does not work after a fork of a process that used it" in printed[1]


def test_driver_that_is_too_old_is_reported(tmp_path: Path) -> None:
    """A driver library without a function that is needed is refused by that name."""
    from ...support.compile import compile_c

    compile_c("int cuInit(unsigned flags) { return 0; }", tmp_path / "libcuda.so.1")
    (printed,), _ = run_with_fake(tmp_path, LAUNCH, PTX, TAGS, 1, 1)
    assert (
        "libcuda.so.1 is too old, expected the driver of CUDA 11 or newer: it does not define cuDri"
        in printed
    )


def test_missing_driver_is_reported(tmp_path: Path) -> None:
    """A file that is not a library is not a driver; the error says which package to install."""
    (tmp_path / "libcuda.so.1").write_text("not a library")
    code = LAUNCH + "print(module.property_mask)\n"
    printed, _ = run_with_fake(tmp_path, code, PTX, TAGS, 1, 1)
    assert "cuda:0: no CUDA driver found: " in printed[0]
    assert "install NVIDIA's driver" in printed[0]
    assert printed[1] == "1"

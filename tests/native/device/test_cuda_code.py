"""CUDA modules with a FAKE driver: the choice of code, and damaged code."""

from __future__ import annotations

from pathlib import Path

import pytest

import packer

from ...support.cuda import DATA, compile_ptx, run_with_fake
from .cuda_launch import LAUNCH, PARAMS, PTX, TAGS, Fake


@pytest.mark.parametrize(
    ("name", "capability", "loaded"),
    [
        ("scale.ptx", "80", "ptx sm_80"),
        ("scale.ptx", "121", "ptx sm_80"),
        ("scale.sm_80.cubin", "80", "cubin 0x6005004"),
        ("scale.sm_80.cubin", "89", "cubin 0x6005004"),
        ("scale.sm_80.cuda12.cubin", "86", "cubin 0x500550"),
        ("scale.fatbin", "80", "cubin 0x6005004"),
        ("scale.fatbin", "86", "cubin 0x6005004"),
        ("scale.fatbin", "90", "cubin 0x6005a04"),
        ("scale.fatbin", "103", "cubin 0x6006402"),
        # Its PTX is compressed, so that the driver is given the whole.
        ("scale.fatbin", "120", "fatbin"),
    ],
)
def test_best_fit_is_loaded(launch: Fake, name: str, capability: str, loaded: str) -> None:
    """An exact cubin is loaded, else the nearest older one of the same major version, else PTX."""
    printed, log = launch(DATA / name, devices=capability)
    assert printed == ["launched"]
    assert [line for line in log if "load" in line] == [
        f"load {loaded} in 1100",
        f"unload {loaded}",
    ]


def test_code_at_any_address_is_loaded(fake_driver: Path) -> None:
    """The driver gets code aligned, and PTX terminated, from any offset in a blob."""
    code = LAUNCH.replace(
        "pathlib.Path(path).read_bytes()", 'memoryview(b"x" + pathlib.Path(path).read_bytes())[1:]'
    )
    for name, loaded in {"scale.fatbin": "cubin 0x6005004", "scale.ptx": "ptx sm_80"}.items():
        _, log = run_with_fake(
            fake_driver, code, DATA / name, TAGS, 1, 1, devices="80", params=PARAMS
        )
        assert f"load {loaded} in 1100" in log


def test_ptx_of_a_fatbin_is_loaded(launch: Fake, tmp_path: Path) -> None:
    """An uncompressed image is passed alone: a younger device takes the youngest PTX."""
    images = [compile_ptx(architecture=name) for name in ("sm_80", "sm_90", "sm_90a", "sm_100")]
    path = tmp_path / "all.fatbin"
    path.write_bytes(packer.create_fatbin([*images, (DATA / "scale.sm_80.cubin").read_bytes()]))
    for capability, loaded in {
        "80": "cubin 0x6005004",
        "90": "ptx sm_90a",
        "95": "ptx sm_90",
    }.items():
        _, log = launch(path, devices=capability)
        assert f"load {loaded} in 1100" in log


@pytest.mark.parametrize(
    ("name", "capability", "inside"),
    [
        ("scale.ptx", "75", "ptx sm_80; expected a cubin for sm_70 to sm_75, or PTX for sm_75"),
        ("scale.sm_80.cubin", "90", "cubin sm_80; expected a cubin for sm_90 to sm_90"),
        ("scale.sm_90a.cubin", "80", "cubin sm_90; expected a cubin for sm_80 to sm_80"),
        ("scale.fatbin", "75", "cubin sm_80, cubin sm_90a, cubin sm_100, ptx sm_80; expected"),
    ],
)
def test_code_for_other_devices_is_refused(
    launch: Fake, name: str, capability: str, inside: str
) -> None:
    """The error names device and driver, and the devices of the code."""
    (printed,), log = launch(DATA / name, devices=capability)
    head = f"cuda:0|None|cuda:0: 'FAKE 0' (sm_{capability}, driver of CUDA 12.4): the device cannot"
    assert printed.startswith(head)
    assert f"built for {inside}" in printed
    assert not any("load" in line for line in log)


@pytest.mark.parametrize("name", ["scale.sm_80.cubin", "scale.sm_80.cuda12.cubin", "scale.fatbin"])
def test_cut_code_never_reaches_a_driver(launch: Fake, tmp_path: Path, name: str) -> None:
    """The driver receives no length, so cut code is refused before."""
    data = (DATA / name).read_bytes()
    cut = tmp_path / name
    for nbytes in (3, 15, 60, 700, len(data) - 100, len(data) - 1):
        cut.write_bytes(data[:nbytes])
        (printed,), log = launch(cut)
        assert f"invalid code of format 'cubin' and {nbytes} bytes: " in printed
        assert not any("load" in line for line in log)


DAMAGE = """
import pathlib, random, sys
from runtime import DeviceError, DeviceModule, FunctionInfo

data, chance, refused = pathlib.Path(sys.argv[1]).read_bytes(), random.Random(1), 0
for _ in range(400):
    damaged = bytearray(data[: chance.choice((len(data), chance.randrange(len(data))))])
    for _ in range(chance.randrange(4)):
        at = chance.randrange(chance.choice((160, len(damaged))) or 1)
        damaged[at : at + 1] = bytes([chance.randrange(256)])
    module = DeviceModule("cuda", bytes(damaged), "fatbin", [FunctionInfo("scale")])
    try:
        module["scale"]()
    except DeviceError:
        refused += 1
print(0 < refused < 400)
"""


@pytest.mark.parametrize("name", ["scale.sm_80.cubin", "scale.fatbin", "scale.ptx"])
def test_damaged_code_is_refused_or_loaded(fake_driver: Path, name: str) -> None:
    """Nothing is read beyond the bytes (`make sanitize` looks at that), or else raised."""
    assert run_with_fake(fake_driver, DAMAGE, DATA / name, devices="80", params="")[0] == ["True"]


def test_cut_ptx_is_the_drivers_to_refuse(launch: Fake, tmp_path: Path) -> None:
    """PTX is text; the error contains what the driver's log reports of it."""
    cut = tmp_path / "cut.ptx"
    cut.write_bytes(PTX.read_bytes()[:300])
    (head, *log, end), _ = launch(cut, fail="cuModuleLoadDataEx 218")
    assert "cuda:0: 'FAKE 0' (sm_80, driver of CUDA 12.4) rejected code for ptx sm_80" in head
    assert log == ["FAKE log: line 7"]
    assert end == ": CUDA_ERROR_INVALID_PTX, FAKE (code 218)"


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "expected PTX with a line like '.target sm_80', a cubin or a fatbin"),
        (b"extern void scale();", "expected PTX"),
        (
            b"\x7fELF" + bytes(14) + b"\x3e" + bytes(60),
            "ELF file for machine 62, expected 190 (CUDA)",
        ),
        (
            b"\x50\xed\x55\xba\x01\x00\x10\x00" + bytes(8),
            "fatbin: contains neither PTX nor a cubin",
        ),
        (b"\x50\xed\x55\xba\x07\x00\x10\x00" + bytes(8), "fatbin: version 7"),
        (b"\x50\xed\x55\xba\x01\x00\x10\x00\x40" + bytes(71), "the entry at 0x10 extends beyond"),
    ],
)
def test_code_of_another_kind_is_refused(
    launch: Fake, tmp_path: Path, data: bytes, what: str
) -> None:
    """The error of bytes in another format names that format."""
    path = tmp_path / "code"
    path.write_bytes(data)
    (printed,), log = launch(path)
    assert what in printed
    assert not any("load" in line for line in log)

"""CUDA modules beside a FAKE driver: the choice of code, marshalling, contexts, errors.

Nothing here says that a kernel computes anything: that is test_cuda.py's, on a real GPU.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

import packer
import runtime

from ..cuda import DATA, build_fake_driver, compile_ptx, run_with_fake

PTX = DATA / "scale.ptx"
PARAMS = "8 4 4"  # what scale takes
Fake = Callable[..., tuple[list[str], list[str]]]

# Launch the kernel of a file; whatever is refused is printed. argv: file, format, tags, extents.
LAUNCH = """
import array, pathlib, sys
import runtime
from runtime import Device, DeviceModule, FunctionInfo

path, tags, *extents = sys.argv[1:]
info = FunctionInfo("scale", ["handle", "float32", "int32"], tags.split())
module = DeviceModule("cuda", pathlib.Path(path).read_bytes(), "cubin", [info])
try:
    x = runtime.tensor(array.array("f", range(8)), Device("cuda", 0))
    module["scale"](x, 2.5, 8, *map(int, extents))
    print("launched")
except runtime.DeviceError as error:
    print(error.device, error.code, error, sep="|")
"""
TAGS = "blockIdx.x threadIdx.x"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the FAKE driver lies."""
    return build_fake_driver(tmp_path_factory.mktemp("fake_cuda"))


@pytest.fixture
def launch(folder: Path) -> Fake:
    """``launch(path, tags, *extents, **settings)``: what is printed, and the FAKE's log."""

    def launch(
        path: Path, tags: str = TAGS, *extents: int, **settings: str
    ) -> tuple[list[str], list[str]]:
        settings = {"devices": "80", "params": PARAMS, **settings}
        return run_with_fake(folder, LAUNCH, path, tags, *(extents or (2, 4)), **settings)

    return launch


# ---- The best fit


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
    """Exact, else the nearest older cubin of the same major version, else PTX; once, FAKE."""
    printed, log = launch(DATA / name, devices=capability)
    assert printed == ["launched"]
    assert [line for line in log if "load" in line] == [
        f"load {loaded} in 1100",
        f"unload {loaded}",
    ]


def test_code_at_any_address_is_loaded(folder: Path) -> None:
    """In a blob it lies anywhere; the driver gets it aligned, and PTX with an end."""
    code = LAUNCH.replace(
        "pathlib.Path(path).read_bytes()", 'memoryview(b"x" + pathlib.Path(path).read_bytes())[1:]'
    )
    for name, loaded in {"scale.fatbin": "cubin 0x6005004", "scale.ptx": "ptx sm_80"}.items():
        _, log = run_with_fake(folder, code, DATA / name, TAGS, 1, 1, devices="80", params=PARAMS)
        assert f"load {loaded} in 1100" in log


def test_ptx_of_a_fatbin_is_loaded(launch: Fake, tmp_path: Path) -> None:
    """What is not compressed is given alone: a younger device takes the youngest PTX."""
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
    """Row D12: the error names device and driver, and for what the code was built."""
    (printed,), log = launch(DATA / name, devices=capability)
    head = f"cuda:0|None|cuda:0: 'FAKE 0' (sm_{capability}, driver of CUDA 12.4) takes none of this"
    assert printed.startswith(head)
    assert f"built for {inside}" in printed
    assert not any("load" in line for line in log)


@pytest.mark.parametrize("name", ["scale.sm_80.cubin", "scale.sm_80.cuda12.cubin", "scale.fatbin"])
def test_cut_code_never_reaches_a_driver(launch: Fake, tmp_path: Path, name: str) -> None:
    """Row D12: the driver is given no length, so that what is cut short is refused before."""
    data = (DATA / name).read_bytes()
    cut = tmp_path / name
    for nbytes in (3, 15, 60, 700, len(data) - 100, len(data) - 1):
        cut.write_bytes(data[:nbytes])
        (printed,), log = launch(cut)
        assert f"is given code of format 'cubin' of {nbytes} bytes that it cannot be: " in printed
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
def test_damaged_code_is_refused_or_loaded(folder: Path, name: str) -> None:
    """Row D12: nothing is read beyond the bytes (`make sanitize` looks at that), or else raised."""
    assert run_with_fake(folder, DAMAGE, DATA / name, devices="80", params="")[0] == ["True"]


def test_cut_ptx_is_the_drivers_to_refuse(launch: Fake, tmp_path: Path) -> None:
    """Row D12: PTX is a text; what it says is told by the driver's log, which is in the error."""
    cut = tmp_path / "cut.ptx"
    cut.write_bytes(PTX.read_bytes()[:300])
    (head, *log, end), _ = launch(cut, fail="cuModuleLoadDataEx 218")
    assert "cuda:0: 'FAKE 0' (sm_80, driver of CUDA 12.4) refuses code for ptx sm_80" in head
    assert log == ["FAKE log: line 7"]
    assert end == ": CUDA_ERROR_INVALID_PTX, FAKE (code 218)"


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "neither PTX, which has a line like '.target sm_80', nor a cubin, nor a fatbin"),
        (b"extern void scale();", "neither PTX"),
        (b"\x7fELF" + bytes(14) + b"\x3e" + bytes(60), "ELF for machine 62, expected 190, CUDA's"),
        (b"\x50\xed\x55\xba\x01\x00\x10\x00" + bytes(8), "fatbin: it has neither PTX nor a cubin"),
        (b"\x50\xed\x55\xba\x07\x00\x10\x00" + bytes(8), "fatbin: version 7"),
        (b"\x50\xed\x55\xba\x01\x00\x10\x00\x40" + bytes(71), "the entry at 0x10 reaches beyond"),
    ],
)
def test_code_of_another_kind_is_refused(
    launch: Fake, tmp_path: Path, data: bytes, what: str
) -> None:
    """Row D14: bytes that are none of CUDA's formats are told by what they are."""
    path = tmp_path / "code"
    path.write_bytes(data)
    (printed,), log = launch(path)
    assert what in printed
    assert not any("load" in line for line in log)


# ---- Marshalling


def test_launch_passes_extents_and_arguments(launch: Fake) -> None:
    """Each tag's integer goes to its extent, each argument's bytes to its parameter."""
    tags = "threadIdx.y blockIdx.z blockIdx.x tir.use_dyn_shared_memory threadIdx.x"
    _, log = launch(PTX, tags, 3, 7, 5, 256, 2)
    (line,) = [line for line in log if line.startswith("launch")]
    head, _, arguments = line.partition(": ")
    assert head == "launch scale 5 1 7 2 3 1 shared 256 in 1100"
    pointer, by, n = arguments.split()
    assert len(bytes.fromhex(pointer)) == 8
    assert struct.pack("<f", 2.5).hex() == by
    assert struct.pack("<i", 8).hex() == n


@pytest.mark.parametrize("extents", [(0, 4), (2, 0), (0, 0)])
def test_extent_of_zero_launches_nothing(launch: Fake, extents: tuple[int, int]) -> None:
    """Row D11: an extent of 0 is nothing to launch; the driver is not asked."""
    printed, log = launch(PTX, TAGS, *extents)
    assert printed == ["launched"]
    assert any(line.startswith("load") for line in log)
    assert not any(line.startswith("launch") for line in log)


def test_large_shared_memory_is_opted_in(launch: Fake) -> None:
    """A kernel that takes dynamic shared memory may have all that the device opts in for."""
    tags = f"{TAGS} tir.use_dyn_shared_memory"
    _, log = launch(PTX, tags, 1, 1, 100_352)
    assert "set scale 8 100352" in log
    (printed,), log = launch(PTX, tags, 1, 1, 100_353)
    assert "expected at most 100352 bytes of dynamic shared memory on 'FAKE 0'" in printed
    assert not any(line.startswith("launch") for line in log)


@pytest.mark.parametrize(
    ("tags", "extents", "message"),
    [
        ("blockIdx.x blockIdx.y", (0, 65536), "a blockIdx.y of at most 65535 on 'FAKE 0'"),
        ("blockIdx.y", (65536,), "expected a blockIdx.y of at most 65535 on 'FAKE 0', found 65536"),
        ("threadIdx.z", (65,), "expected a threadIdx.z of at most 64"),
        ("threadIdx.x threadIdx.y", (32, 17), "a block of at most 512 threads on 'FAKE 0'"),
        ("threadIdx.x threadIdx.y threadIdx.z", (1024, 1024, 64), "found one of 1024 x 1024 x 64"),
    ],
)
def test_extents_beyond_the_device_are_refused(
    launch: Fake, tags: str, extents: tuple[int, ...], message: str
) -> None:
    """Row D11: a grid or a block that the device cannot run is refused with the limit."""
    (printed,), log = launch(PTX, tags, *extents)
    assert "cuda:0: kernel 'scale': " in printed
    assert message in printed
    assert not any(line.startswith("launch") for line in log)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ("8 4", "its code takes 2 arguments, its signature says 3"),
        ("8 4 4 4", "its code takes 4 arguments, its signature says 3"),
        ("8 8 4", "argument 2 has 8 bytes in its code, its signature says 4"),
    ],
)
def test_signature_that_lies_is_refused(launch: Fake, params: str, message: str) -> None:
    """Row D11: where the driver tells what the code takes, the signature is compared with it."""
    (printed,), _ = launch(PTX, params=params)
    assert message in printed


def test_unknown_kernel_is_refused(folder: Path) -> None:
    """A name that the code has not is told with those that it has."""
    code = LAUNCH.replace('FunctionInfo("scale"', 'FunctionInfo("sale"').replace(
        '["scale"]', '["sale"]'
    )
    (printed,), _ = run_with_fake(folder, code, PTX, TAGS, 1, 1, devices="80", params=PARAMS)
    assert "kernel 'sale': the code has none of this name, it has: scale" in printed


# ---- Devices, memory, contexts

COPIES = """
import array
import runtime
from runtime import Device

first, second = Device("cuda", 0), Device("cuda", 1)
x = runtime.tensor(array.array("h", range(6)), first)
y = runtime.empty((6,), "int16", first)
y.copy_from(x)
z = y.to(second)
print(memoryview(z.to(Device("cpu", 0))).tolist(), z.device, second.name)
"""


def test_copies_go_the_way_that_fits(folder: Path) -> None:
    """From and to the CPU, within a device, and between two."""
    printed, log = run_with_fake(folder, COPIES, devices="80 90")
    assert printed == ["[0, 1, 2, 3, 4, 5] cuda:1 FAKE 1"]
    assert log == ["cuMemcpyHtoD_v2", "cuMemcpyDtoD_v2", "cuMemcpyPeer", "cuMemcpyDtoH_v2"]


def test_kernel_goes_to_the_device_of_its_tensors(folder: Path) -> None:
    """Code is loaded for each device apart, in that device's primary context."""
    code = LAUNCH.replace(
        'print("launched")', 'module["scale"](x.to(Device("cuda", 1)), 1, 8, 1, 1)'
    )
    args = (DATA / "scale.fatbin", TAGS, 1, 1)
    _, log = run_with_fake(folder, code, *args, devices="80 90", params=PARAMS)
    loads = [line for line in log if line.startswith("load")]
    assert loads == ["load cubin 0x6005004 in 1100", "load cubin 0x6005a04 in 1101"]
    assert [line.split()[11] for line in log if line.startswith("launch")] == ["1100:", "1101:"]


def test_context_of_others_is_left_as_it_was(folder: Path) -> None:
    """What another library made current is current again after everything of ours."""
    code = LAUNCH.replace(
        "try:",
        "import ctypes\n"
        'driver = ctypes.CDLL("libcuda.so.1")\n'
        "driver.cuCtxPushCurrent_v2(ctypes.c_void_p(7))\n"
        "try:",
    )
    code += (
        "current = ctypes.c_void_p()\n"
        "driver.cuCtxGetCurrent(ctypes.byref(current))\n"
        "print(current.value)\n"
    )
    printed, _ = run_with_fake(folder, code, PTX, TAGS, 1, 1, devices="80", params=PARAMS)
    assert printed == ["launched", "7"]


def test_threads_load_once(folder: Path) -> None:
    """Row G10: threads that launch at once share what the first of them loads."""
    code = LAUNCH.replace(
        'print("launched")',
        "import threading\n"
        '    work = lambda: [module["scale"](x, 2.5, 8, 1, 1) for _ in range(50)]\n'
        "    threads = [threading.Thread(target=work) for _ in range(8)]\n"
        "    [thread.start() for thread in threads] + [thread.join() for thread in threads]\n",
    )
    code = code.replace('    module["scale"](x, 2.5, 8, *map(int, extents))\n', "")
    _, log = run_with_fake(folder, code, PTX, TAGS, devices="80", params=PARAMS)
    assert [line.split()[0] for line in log] == [
        "cuMemcpyHtoD_v2", "load", *["launch"] * 400, "unload"
    ]  # fmt: skip


HOST = """
#include "dso_packer.h"
dso_status scale_from(DLTensor *x, int64_t offset) {
  DLTensor view = *x;
  view.byte_offset += (uint64_t)offset;
  return dso_call("scale", NULL, dso_tensor(&view), dso_float(0.5), dso_int(3), dso_int(1),
                  dso_int(4));
}
"""
LAUNCH_FROM_HOST = """
import array, sys
import runtime
model = runtime.load(sys.argv[1])
x = runtime.tensor(array.array("f", range(8)), runtime.Device("cuda", 0))
for offset in (0, 16):
    model["scale_from"](x, offset)
try:
    model["scale_from"](runtime.empty((8,), "float32"), 0)
except ValueError as error:
    print(error)
"""


def test_host_code_launches(folder: Path, tmp_path: Path) -> None:
    """Host code finds the kernel of its import; a view's offset counts; an error comes through."""
    declaration = "dso_status(DLTensor *x, int64_t offset)"
    host = packer.CSourceModule(HOST, functions={"scale_from": declaration})
    info = runtime.FunctionInfo("scale", ("handle", "float32", "int32"), TAGS.split())
    host.import_module(runtime.DeviceModule("cuda", PTX.read_bytes(), "ptx", [info]))
    path = packer.export_library(host, tmp_path / "host.so")
    printed, log = run_with_fake(folder, LAUNCH_FROM_HOST, path, devices="80", params=PARAMS)
    launches = [line.split() for line in log if line.startswith("launch")]
    first, second = (int.from_bytes(bytes.fromhex(words[12]), "little") for words in launches)
    assert second - first == 16
    assert [words[1:12] for words in launches] == [
        ["scale", "1", "1", "1", "4", "1", "1", "shared", "0", "in", "1100:"]
    ] * 2  # fmt: skip
    (error,) = printed
    assert error.startswith("scale: argument 1: expected a tensor on cuda, found one on cpu:0")


# ---- Errors


def test_no_device_is_told(launch: Fake) -> None:
    """Row G18: a driver without a device."""
    (printed,), _ = launch(PTX, devices="")
    assert "|cuda:0: no CUDA device is here, though its driver is; CUDA_VISIBLE_DEVICES" in printed


def test_wrong_index_is_told(folder: Path) -> None:
    """Row G18: an index beyond the devices lists those that are there."""
    code = LAUNCH.replace('Device("cuda", 0)', 'Device("cuda", 2)')
    (printed,), _ = run_with_fake(folder, code, PTX, TAGS, 1, 1, devices="80 90")
    assert "cuda:2: no such device, found 2 here: cuda:0 'FAKE 0', cuda:1 'FAKE 1'" in printed


@pytest.mark.parametrize(
    ("fail", "message"),
    [
        ("cuInit 999", "|999|cuda:0: starting the CUDA driver: an unknown code, FAKE (code 999)"),
        ("cuDevicePrimaryCtxRetain 2", "the primary context of 'FAKE 0': CUDA_ERROR_OUT_OF_MEMORY"),
        (
            "cuMemAlloc_v2 2",
            "32 bytes on 'FAKE 0': CUDA_ERROR_OUT_OF_MEMORY, FAKE; free others, or",
        ),
        ("cuMemcpyHtoD_v2 700", "copying 32 bytes: CUDA_ERROR_ILLEGAL_ADDRESS, FAKE; what was on"),
        ("cuModuleLoadDataEx 222", "CUDA_ERROR_UNSUPPORTED_PTX_VERSION, FAKE; update the driver"),
        (
            "cuLaunchKernel 700",
            "'scale': launching 2 x 1 x 1 blocks of 4 x 1 x 1 threads: CUDA_ERR",
        ),
    ],
)
def test_codes_of_the_driver_are_told(launch: Fake, fail: str, message: str) -> None:
    """Row G18: every code becomes a DeviceError with its name, its meaning, and what would help."""
    printed, _ = launch(PTX, fail=fail)
    assert message in "\n".join(printed)


def test_memory_that_outlives_the_driver_is_let_go(launch: Fake) -> None:
    """At exit the driver may be gone first: nothing is printed then."""
    printed, _ = launch(PTX, fail="cuMemFree_v2 4")
    assert printed == ["launched"]


def test_process_forked_after_use_is_told(folder: Path) -> None:
    """Row G9: a process that was forked from one that used CUDA is told to be spawned."""
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
    printed, _ = run_with_fake(folder, code, PTX, TAGS, 1, 1, devices="80", params=PARAMS)
    assert printed[0] == "launched"
    assert "cuda:0: CUDA does not work after a fork of a process that used it" in printed[1]


def test_driver_that_is_too_old_is_told(tmp_path: Path) -> None:
    """Row G18: a driver library without a function that is needed is refused by that name."""
    from ..compile import compile_c

    compile_c("int cuInit(unsigned flags) { return 0; }", tmp_path / "libcuda.so.1")
    (printed,), _ = run_with_fake(tmp_path, LAUNCH, PTX, TAGS, 1, 1)
    assert "libcuda.so.1 is too old, expected that of CUDA 11 or newer: it has no cuDri" in printed


def test_missing_driver_is_told(tmp_path: Path) -> None:
    """Row G18: what is no library is no driver; the error says what to install."""
    (tmp_path / "libcuda.so.1").write_text("not a library")
    code = LAUNCH + "print(module.property_mask)\n"
    printed, _ = run_with_fake(tmp_path, code, PTX, TAGS, 1, 1)
    assert "cuda:0: no CUDA driver is here: " in printed[0]
    assert "install NVIDIA's driver" in printed[0]
    assert printed[1] == "1"

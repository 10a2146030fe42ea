"""Would a library's kernels run here? Their formats, drivers, devices and architectures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from runtime.modules.device import LAUNCHED, DeviceModule

from ..elf.architecture import Architecture, architectures_of
from ..elf.library_search import find_system_library
from .device_query import LIBRARIES
from .findings import Finding

Query = Callable[[str], dict[str, Any]]

_REMEDIES = {
    "cuda": "install NVIDIA's driver",
    "opencl": "install an OpenCL loader and driver (Debian: ocl-icd-libopencl1, pocl-opencl-icd)",
}
# runtime/native/opencl_program.c; of CUDA the code itself says what it is.
_OPENCL_FORMATS = ("cl", "clbin", "spirv", "xclbin", "spv")
_CARRIED = "the library loads; these kernels cannot run here"


def check_devices(modules: Sequence[DeviceModule], query: Query) -> Iterator[Finding]:
    """Look at all modules of device code; each finding is at most a warning.

    Parameters
    ----------
    modules : sequence of DeviceModule
        Those of one library.
    query : callable
        Asks a driver for its devices.
    """
    for kind in dict.fromkeys(module.type_key for module in modules):
        chosen = [module for module in modules if module.type_key == kind]
        if kind in LAUNCHED:
            yield from _launched(kind, chosen, query)
        else:
            detail = f"the runtime launches {' and '.join(LAUNCHED)} only: these are carried"
            yield Finding(f"kernels of {kind}", "warn", detail, "take them out: packer extract")


def _launched(kind: str, modules: Sequence[DeviceModule], query: Query) -> Iterator[Finding]:
    yield from _formats(kind, modules)
    name = LIBRARIES[kind]
    path = find_system_library(name)
    devices: list[dict[str, Any]] = []
    if path is None:
        detail = f"{name} is not here: {_CARRIED}"
        yield Finding(f"driver of {kind}", "warn", detail, _REMEDIES[kind])
    else:
        yield Finding(f"driver of {kind}", "pass", path)
        answer = query(kind)
        devices = answer.get("devices") or []
        if not devices:
            detail = f"{answer.get('error') or 'the driver has none'}: {_CARRIED}"
            yield Finding(f"devices of {kind}", "warn", detail, _REMEDIES[kind])
    if kind == "cuda":
        yield from _compared(modules, devices)
    elif devices:
        names = ", ".join(str(device["name"]) for device in devices)
        yield Finding(f"devices of {kind}", "pass", names)


def _formats(kind: str, modules: Sequence[DeviceModule]) -> Iterator[Finding]:
    """Code that no driver takes."""
    for fmt in dict.fromkeys(m.fmt for m in modules if not _is_code(kind, m)):
        detail = f"{fmt or 'no format'}: no driver takes it as it is; {_CARRIED}"
        expected = "PTX, a cubin or a fatbin" if kind == "cuda" else ", ".join(_OPENCL_FORMATS[:3])
        yield Finding(f"code of {kind}", "warn", detail, f"compile it to {expected}")


def _is_code(kind: str, module: DeviceModule) -> bool:
    if kind == "cuda":
        return isinstance(module.data, memoryview) and bool(list(architectures_of(module.data)))
    return module.fmt in _OPENCL_FORMATS


def _compared(
    modules: Sequence[DeviceModule], devices: Sequence[dict[str, Any]]
) -> Iterator[Finding]:
    """Each module needs one piece of code that the device takes."""
    codes = [m.data for m in modules if isinstance(m.data, memoryview)]
    found = [list(dict.fromkeys(architectures_of(code))) for code in codes]
    shown = ", ".join(dict.fromkeys(str(one) for code in found for one in code))
    if not shown:
        return
    if not devices:
        detail = f"compiled for {shown}; no device to compare with"
        yield Finding("device architectures", "warn", detail)
    for device in devices:
        capability = int(str(device["architecture"]).removeprefix("sm_"))
        name = f"device {device['name']} (sm_{capability})"
        yield _compared_with(name, capability, found, shown)


def _compared_with(
    name: str, capability: int, codes: Sequence[Sequence[Architecture]], shown: str
) -> Finding:
    if all(any(one.runs_on(capability) for one in code) for code in codes if code):
        return Finding(name, "pass", f"takes {shown}")
    remedy = f"compile the kernels for sm_{capability} too"
    return Finding(name, "warn", f"compiled for {shown}: {_CARRIED}", remedy)

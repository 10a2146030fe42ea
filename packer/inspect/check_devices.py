"""Check that a library's kernels would run here: formats, drivers, devices, architectures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from runtime.modules.device import LAUNCHED, DeviceModule

from ..elf.architecture import Architecture, architectures_of
from ..elf.library_search import find_system_library
from .device_query import LIBRARIES, REMEDIES
from .findings import Finding

Query = Callable[[str], dict[str, Any]]

# As in runtime/native/device/opencl/program.c. For CUDA the bytes decide.
_OPENCL_FORMATS = ("cl", "clbin", "spirv", "xclbin", "spv")
_CARRIED = "the library loads, but these kernels cannot run here"


def check_devices(modules: Sequence[DeviceModule], query: Query) -> Iterator[Finding]:
    """Check all modules of device code; the findings are at most warnings."""
    for key in dict.fromkeys(module.type_key for module in modules):
        chosen = [module for module in modules if module.type_key == key]
        if key in LAUNCHED:
            yield from _launched(key, chosen, query)
        else:
            detail = f"the runtime launches {' and '.join(LAUNCHED)} only: these are carried"
            yield Finding(
                f"kernels of {key}", "warn", detail, "write them to files: packer extract"
            )


def _launched(key: str, modules: Sequence[DeviceModule], query: Query) -> Iterator[Finding]:
    yield from _formats(key, modules)
    name = LIBRARIES[key]
    path = find_system_library(name)
    devices: list[dict[str, Any]] = []
    if path is None:
        detail = f"{name} not found: {_CARRIED}"
        yield Finding(f"driver of {key}", "warn", detail, REMEDIES[key])
    else:
        yield Finding(f"driver of {key}", "pass", path)
        answer = query(key)
        devices = answer.get("devices") or []
        if not devices:
            detail = f"{answer.get('error') or 'the driver lists none'}: {_CARRIED}"
            yield Finding(f"devices of {key}", "warn", detail, REMEDIES[key])
    if key == "cuda":
        yield from _compared(modules, devices)
    elif devices:
        names = ", ".join(str(device["name"]) for device in devices)
        yield Finding(f"devices of {key}", "pass", names)


def _formats(key: str, modules: Sequence[DeviceModule]) -> Iterator[Finding]:
    """Find code that no driver accepts."""
    for fmt in dict.fromkeys(m.fmt for m in modules if not _is_code(key, m)):
        detail = f"{fmt or 'no format'}: no driver accepts it; {_CARRIED}"
        expected = "PTX, a cubin or a fatbin" if key == "cuda" else ", ".join(_OPENCL_FORMATS[:3])
        yield Finding(f"code of {key}", "warn", detail, f"compile it to {expected}")


def _is_code(key: str, module: DeviceModule) -> bool:
    if key == "cuda":
        return isinstance(module.data, memoryview) and bool(list(architectures_of(module.data)))
    return module.fmt in _OPENCL_FORMATS


def _compared(
    modules: Sequence[DeviceModule], devices: Sequence[dict[str, Any]]
) -> Iterator[Finding]:
    """Check that each module contains code that the device runs."""
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
        return Finding(name, "pass", f"runs {shown}")
    remedy = f"compile the kernels for sm_{capability} too"
    return Finding(name, "warn", f"compiled for {shown}: {_CARRIED}", remedy)

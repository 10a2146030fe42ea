"""inspect_file(path): what a standalone file of device code or weights contains; nothing is run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from runtime.device.kernel_source import left_out
from runtime.device.standalone_files import LOADERS, load_file
from runtime.modules.device import DeviceModule

from ..elf.architecture import architectures_of
from ..elf.cubin import cubin_kernels
from .drawing import Line, line, table
from .report import TensorReport

_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class KernelReport:
    """A kernel of device code."""

    name: str
    # The types of its parameters; in `FileReport.left_out` as the code writes them, and in a cubin
    # their sizes.
    arg_types: tuple[str, ...]
    # The launch integers that follow the arguments of a call.
    launch_param_tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileReport:
    """The contents of a standalone file."""

    path: str
    nbytes: int
    # The module that `runtime.load` makes of it, and the format of its code.
    type_key: str
    format: str
    # NVIDIA's devices that the code was compiled for: ``"cubin sm_90"``.
    architectures: tuple[str, ...] = ()
    kernels: tuple[KernelReport, ...] = ()  # the kernels that can be called
    # The kernels whose parameters are not all known, so that none can be called by name.
    left_out: tuple[KernelReport, ...] = ()
    tensors: tuple[TensorReport, ...] = ()  # the weights
    # The text that a safetensors file contains beside its tensors.
    metadata: dict[str, str] | None = None

    def fields(self) -> dict[str, Any]:
        """Return the schema's version and the fields by name."""
        return {"schema": _SCHEMA, **{f.name: getattr(self, f.name) for f in fields(self)}}


def is_standalone_file(path: str | os.PathLike[str]) -> bool:
    """Return True if the suffix is that of a standalone file."""
    return os.path.splitext(os.fspath(path))[1][1:] in LOADERS


def inspect_file(path: str | os.PathLike[str]) -> FileReport:
    """Read a standalone file, as `runtime.load` finds its kernels and weights; it is mapped.

    Raises LibraryLoadError if it cannot be read. Raises BlobFormatError if weights, or the file
    beside device code, are malformed.
    """
    name = os.fspath(path)
    module = load_file(name)
    suffix = os.path.splitext(name)[1][1:]
    nbytes = os.path.getsize(name)
    if isinstance(module, DeviceModule):
        return _device_code(name, nbytes, module)
    tensors = tuple(
        TensorReport(key, tensor.dtype, tensor.shape, tensor.raw.nbytes)
        for key, tensor in module.own_weights.items()
    )
    metadata = getattr(module, "metadata", None)
    return FileReport(
        name, nbytes, module.type_key, suffix, tensors=tensors, metadata=metadata or None
    )


def _device_code(path: str, nbytes: int, module: DeviceModule) -> FileReport:
    code = module.data if isinstance(module.data, memoryview) else memoryview(b"")
    known = tuple(
        KernelReport(name, info.arg_types, info.launch_param_tags)
        for name, info in module.functions.items()
    )
    unknown = {
        name: tuple(type_ or text for text, type_ in parameters)
        for name, parameters in left_out(module.fmt, code).items()
    }
    if module.fmt == "cubin":
        sizes = cubin_kernels(code)
        unknown |= {
            name: tuple("1 byte" if size == 1 else f"{size} bytes" for size in sizes[name])
            for name in sizes
        }
    return FileReport(
        path,
        nbytes,
        module.type_key,
        module.fmt,
        architectures=tuple(map(str, architectures_of(code) if module.type_key == "cuda" else ())),
        kernels=known,
        left_out=tuple(
            KernelReport(name, types)
            for name, types in unknown.items()
            if name not in module.functions
        ),
    )


def list_file(report: FileReport) -> Iterator[Line]:
    """Draw a report."""
    parts = [f"{report.nbytes:,} bytes", report.type_key]
    parts += [report.format] if report.format != report.type_key else []
    if report.architectures:
        parts.append(f"compiled for {', '.join(report.architectures)}")
    yield line((report.path, "title"), f": {', '.join(parts)}", hang=2)
    for title, kernels in (("kernels", report.kernels), ("not callable", report.left_out)):
        if kernels:
            note = ", a parameter has an unknown type" if title == "not callable" else ""
            yield line((f"{title}{note}:", "title"))
        for kernel in kernels:
            text = f"({', '.join(kernel.arg_types)})"
            yield line("  ", (kernel.name, "name"), text, hang=4)
    if report.type_key in ("cuda", "opencl", "hip", "vulkan") and not report.kernels:
        yield line("no kernel can be called: declare the types of its parameters in packer.toml")
    for key, text in (report.metadata or {}).items():
        yield line(f"metadata {key}: {text}", hang=2)
    if report.tensors:
        total = sum(tensor.nbytes for tensor in report.tensors)
        yield line((f"tensors: {len(report.tensors)}, {total:,} bytes", "title"))
        yield from table(
            [
                ((t.name, "name"), (_shape(t), ""), (f"{t.nbytes:,} bytes", "dim"))
                for t in report.tensors
            ]
        )


def _shape(tensor: TensorReport) -> str:
    return f"{tensor.dtype}[{', '.join(map(str, tensor.shape))}]"

"""How one module is extracted: its files, and its lines in packer.toml or its Python expression.

packer.toml can describe device code in one file, constants of NumPy's data types, safetensors, and
graphs that can run. A Python function creates any other module from its files. A module of unknown
type, or one that is not recreated byte for byte, is created from its payload.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from runtime.error import PackerError
from runtime.modules.const_loader import ConstLoaderModule
from runtime.modules.device import DeviceModule, Shader
from runtime.modules.encrypted import EncryptedModule
from runtime.modules.graph_executor import AotExecutorFactory, GraphExecutorFactory
from runtime.modules.json_runtime import JSONRuntimeModule
from runtime.modules.metadata import MetadataModule
from runtime.modules.safetensors import SafetensorsModule
from runtime.modules.shared_library import CarriedSharedLibraryModule
from runtime.modules.source import CarriedSourceModule, CarriedStaticLibraryModule
from runtime.serial.stream import FileRange, Writer
from runtime.tensors.params import dump_params

from ...elf.archive import MAGIC, THIN_MAGIC
from ..tree import unpadded
from .npy import dump_npy
from .toml import quoted, quoted_list, table

if TYPE_CHECKING:
    from runtime.module import Module
    from runtime.modules.device import FunctionInfo
    from runtime.tensors.tensor import Tensor

    from .names import Names

    Chunks = Sequence[bytes | memoryview]
    Maker = Callable[["_Request", Any], "Part"]

_PIECE = 1 << 20
# The suffix of a kernel's file, for modules with a source for each kernel.
_KERNEL_SUFFIXES = {"metal": "metal", "webgpu": "wgsl", "vulkan": "spv"}


@dataclass(slots=True)
class Part:
    """How one module is extracted."""

    files: dict[str, Chunks] = field(default_factory=dict)  # the contents of its files, by name
    keys: list[str] = field(default_factory=list)  # its lines in its table of packer.toml
    tables: list[str] = field(default_factory=list)  # its subtables there
    expression: str | None = None  # Python code that creates it, if packer.toml cannot describe it


@dataclass(frozen=True, slots=True)
class _Request:
    """A module to extract, with its type key, its bytes and its names."""

    module: Module
    type_key: str
    payload: memoryview
    name: str
    names: Names

    def file(self, *parts: str, suffix: str) -> str:
        return self.names.of_file(self.name, *parts, suffix=suffix)


def part_of(module: Module, type_key: str, payload: memoryview, name: str, names: Names) -> Part:
    """Extract a module that its loader created from this type key and payload.

    `name` is its name in packer.toml, and the first part of its file names.
    """
    request = _Request(module, type_key, payload, name, names)
    if isinstance(module, SafetensorsModule):
        return _safetensors(request)  # not compared: the padding depends on the offset
    part = _made(request)
    is_exact = type_key == module.type_key and _is_written_as(module, payload)
    if is_exact and (part.keys or part.expression):
        return part
    file = request.file(suffix="bin")
    expression = f"runtime.modules.OpaqueModule({type_key!r}, memoryview(read({file!r})))"
    tables = part.tables if isinstance(module, EncryptedModule) else []
    return Part({**part.files, file: [payload]}, tables=tables, expression=expression)


def _made(request: _Request) -> Part:
    """Return the files and keys of a module; nothing for a name that TOML cannot have."""
    module, part = request.module, Part()
    if make := next((make for cls, make in _MAKERS.items() if isinstance(module, cls)), None):
        part = make(request, module)
    return Part() if _SURROGATE.search("\n".join([*part.keys, *part.tables])) else part


def _is_written_as(module: Module, payload: memoryview) -> bool:
    """Return True if a module writes the same bytes that it was read from."""
    writer, offset = Writer(), 0
    try:
        module.save_to_binary(writer)
        chunks = writer.finish()
    except PackerError:
        return False
    for chunk in chunks:
        if isinstance(chunk, FileRange):
            return False
        view = memoryview(chunk)
        for start in range(0, len(view), _PIECE):
            piece = bytes(view[start : start + _PIECE])
            if piece != bytes(payload[offset : offset + len(piece)]):
                return False
            offset += len(piece)
    return offset == len(payload)


# ---- one maker for each family of types


def _safetensors(request: _Request) -> Part:
    file = request.file(suffix="safetensors")
    keys = ['kind = "safetensors"', f"sources = {quoted_list([file])}"]
    return Part({file: [unpadded(request.payload)]}, keys)


def _device(request: _Request, module: DeviceModule) -> Part:
    if not isinstance(module.data, memoryview):
        return _device_of_kernels(request, module, module.data)
    file = request.file(suffix=module.fmt or "bin")
    files: dict[str, Chunks] = {file: [module.data]}
    if module.fmt and all(name == info.name for name, info in module.functions.items()):
        keys = [f"kind = {quoted(module.type_key)}", f"fmt = {quoted(module.fmt)}"]
        kernels = {name: _kernel(info) for name, info in module.functions.items()}
        tables = table(f"module.{request.name}.functions", kernels)
        return Part(files, [*keys, f"sources = {quoted_list([file])}"], tables)
    return Part(files, expression=_device_expression(module, f"read({file!r})"))


def _device_of_kernels(request: _Request, module: DeviceModule, data: Mapping[str, object]) -> Part:
    """Write a source for each kernel; a Vulkan shader also has a flag."""
    part, items = Part(), []
    for kernel, code in data.items():
        file = request.file(kernel, suffix=_KERNEL_SUFFIXES.get(module.type_key, "txt"))
        if isinstance(code, Shader):
            part.files[file] = [code.words]
            value = f"runtime.Shader({code.flag}, read({file!r}))"
        else:
            part.files[file] = [str(code).encode()]
            value = f"read({file!r}).decode()"
        items.append(f"{kernel!r}: {value}")
    part.expression = _device_expression(module, f"{{{', '.join(items)}}}")
    return part


def _device_expression(module: DeviceModule, code: str) -> str:
    infos = (f"{name!r}: runtime.{info!r}" for name, info in module.functions.items())
    functions = f"{{{', '.join(infos)}}}"
    return f"runtime.DeviceModule({module.type_key!r}, {code}, {module.fmt!r}, {functions})"


def _kernel(info: FunctionInfo) -> str:
    types, tags = quoted_list(info.arg_types), quoted_list(info.launch_param_tags)
    return f"{{ arg_types = {types}, launch_param_tags = {tags} }}"


def _const_loader(request: _Request, module: ConstLoaderModule) -> Part:
    arrays = {name: dump_npy(array) for name, array in module.const_vars.items()}
    if all(array is not None for array in arrays.values()):
        return _const_loader_of_npy(request, module, {n: a for n, a in arrays.items() if a})
    file, files = _params(request, module.const_vars)
    symbols = {symbol: list(names) for symbol, names in module.const_vars_by_symbol.items()}
    arrays_of = f"runtime.load_param_dict(read({file!r}))"
    return Part(files, expression=f"runtime.ConstLoaderModule({arrays_of}, {symbols!r})")


def _const_loader_of_npy(
    request: _Request, module: ConstLoaderModule, arrays: Mapping[str, Chunks]
) -> Part:
    names = {name: request.file(name, suffix="npy") for name in arrays}
    constants = {name: quoted(file) for name, file in names.items()}
    symbols = {s: quoted_list(taken) for s, taken in module.const_vars_by_symbol.items()}
    below = f"module.{request.name}"
    tables = [*table(f"{below}.constants", constants), *table(f"{below}.by_symbol", symbols)]
    return Part({names[n]: a for n, a in arrays.items()}, ['kind = "const_loader"'], tables)


def _factory(request: _Request, module: AotExecutorFactory) -> Part:
    file, files = _params(request, module.params)
    arguments = f"runtime.load_param_dict(read({file!r})), {module.module_name!r}"
    if isinstance(module, GraphExecutorFactory):
        graph = request.file(suffix="json")
        files[graph] = [module.graph_json.encode()]
        if _is_sound(module):
            words = {"kind": "graph", "graph": graph, "params": file, "name": module.module_name}
            return Part(files, [f"{key} = {quoted(word)}" for key, word in words.items()])
        arguments = f"read({graph!r}).decode(), {arguments}"
    return Part(files, expression=f"runtime.{type(module).__name__}({arguments})")


def _is_sound(module: GraphExecutorFactory) -> bool:
    """Return True if packer.toml would accept it: an executor can be created."""
    try:
        module.check()
    except ValueError:
        return False
    return bool(module.module_name)


def _params(request: _Request, arrays: Mapping[str, Tensor]) -> tuple[str, dict[str, Chunks]]:
    file = request.file(suffix="params")
    chunks = [chunk for chunk in dump_params(arrays) if not isinstance(chunk, FileRange)]
    return file, {file: chunks}


def _json_runtime(request: _Request, module: JSONRuntimeModule) -> Part:
    file = request.file(suffix="json")
    values = f"{module.type_key!r}, {module.symbol!r}, read({file!r}).decode()"
    expression = f"runtime.JSONRuntimeModule({values}, {list(module.const_names)!r})"
    return Part({file: [module.graph_json.encode()]}, expression=expression)


def _metadata(_request: _Request, _module: MetadataModule) -> Part:
    return Part(expression="runtime.modules.MetadataModule()")


def _source(request: _Request, module: CarriedSourceModule) -> Part:
    """An export would compile carried host code, so it is recreated from its payload."""
    return Part({request.file(suffix=module.fmt): [module.code.encode()]})


def _static_library(request: _Request, module: CarriedStaticLibraryModule) -> Part:
    is_archive = bytes(module.data[:8]) in (MAGIC, THIN_MAGIC)
    return Part({request.file(suffix="a" if is_archive else "o"): [module.data]})


def _shared_library(request: _Request, module: CarriedSharedLibraryModule) -> Part:
    file = request.file(suffix="so")
    expression = f"runtime.modules.CarriedSharedLibraryModule(read({file!r}))"
    return Part({file: [module.data]}, expression=expression)


def _encrypted(_request: _Request, _module: EncryptedModule) -> Part:
    """Keep the bytes: they can be decrypted at the same place of a blob only."""
    text = "# It is encrypted, and was not decrypted: export again from its sources."
    return Part(tables=[text])


# As `quoted` writes it.
_SURROGATE = re.compile(r"\\U0000D[89A-F]")
_MAKERS: dict[type[Module], Maker] = {
    DeviceModule: _device,
    ConstLoaderModule: _const_loader,
    AotExecutorFactory: _factory,
    JSONRuntimeModule: _json_runtime,
    MetadataModule: _metadata,
    CarriedSourceModule: _source,
    EncryptedModule: _encrypted,
    CarriedSharedLibraryModule: _shared_library,
    CarriedStaticLibraryModule: _static_library,
}

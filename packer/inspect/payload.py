"""The fields of a payload as short text, in the order of the payload."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from runtime.abi import IMPORT_TREE_KEY
from runtime.modules.const_loader import ConstLoaderModule
from runtime.modules.device import DeviceModule
from runtime.modules.encrypted import EncryptedModule
from runtime.modules.graph_executor import AotExecutorFactory, GraphExecutorFactory
from runtime.modules.json_runtime import JSONRuntimeModule
from runtime.modules.safetensors import SafetensorsModule
from runtime.modules.shared_library import CarriedSharedLibraryModule
from runtime.modules.source import CarriedSourceModule, CarriedStaticLibraryModule
from runtime.modules.vm import PACKED, TENSOR, VMExecutable

from .report import Field

if TYPE_CHECKING:
    from runtime.blob import Blob, Entry
    from runtime.module import Module
    from runtime.modules.device import FunctionInfo
    from runtime.tensors.tensor import Tensor

_MAX_TEXT = 60
_MAX_BYTES = 24
_MAX_ITEMS = 4


def fields_of(blob: Blob, entry: Entry, payload: memoryview) -> tuple[Field, ...]:
    """Describe a payload of a blob; of an unknown type show its bytes."""
    if entry.key == IMPORT_TREE_KEY:
        rows, children = blob.import_tree_row_ptr or (), blob.import_tree_child_indices or ()
        fields = [
            ("import_tree_row_ptr", _numbers(rows)),
            ("import_tree_child_indices", _numbers(children)),
        ]
    elif entry.module is None:
        fields = []
    else:
        fields = list(_module(entry.module)) or [("payload", shown_bytes(payload))]
    return tuple(Field(*field) for field in fields)


def shown_bytes(data: memoryview) -> str:
    """Return the number of bytes and the first ones, as text if they are printable."""
    count = f"{len(data):,} bytes"
    if not data:
        return count
    head = bytes(data[:_MAX_TEXT])
    text = head.decode("utf-8", "ignore")
    if all(c.isprintable() or c in "\t\r\n" for c in text) and len(text) + 3 > len(head):
        return f"{count}: {_quoted(text, len(data) > len(head))}"
    more = " ..." if len(data) > _MAX_BYTES else ""
    return f"{count}: {head[:_MAX_BYTES].hex(' ')}{more}"


def _module(module: Module) -> Iterator[tuple[str, str]]:
    """Return the fields of each known type; none for unknown types."""
    match module:
        case DeviceModule():
            yield from _device(module)
        case ConstLoaderModule():
            yield "constants", _tensors(module.const_vars)
            yield "symbols", _items(module.const_vars_by_symbol)
        case AotExecutorFactory():
            if isinstance(module, GraphExecutorFactory):
                yield "graph_json", _text(module.graph_json)
            yield "params", _tensors(module.params)
            yield "module_name", _text(module.module_name)
        case JSONRuntimeModule():
            yield "symbol", _text(module.symbol)
            yield "graph_json", _text(module.graph_json)
            yield "const_names", _items(module.const_names)
        case SafetensorsModule():
            yield "tensors", _tensors(module.own_weights)
            yield "metadata", _items(module.metadata.items(), "=".join)
        case CarriedSourceModule():
            yield "code", _text(module.code)
            yield "fmt", _text(module.fmt)
            yield "func_names", _items(module.func_names)
            yield "const_vars", _items(module.const_vars)
        case CarriedStaticLibraryModule():
            yield "data", shown_bytes(module.data)
            yield "func_names", _items(module.func_names)
        case CarriedSharedLibraryModule():
            yield "file", shown_bytes(module.data)
        case EncryptedModule():
            yield from _encrypted(module)
        case VMExecutable():
            yield from _bytecode(module)


def _encrypted(module: EncryptedModule) -> Iterator[tuple[str, str]]:
    if (header := module.header) is None:
        return
    yield "algorithm", f"{header.algorithm} of version {header.version} (1: AES-256-GCM)"
    yield "key_id", header.key_id.hex()
    yield "export_id", header.export_id.hex()
    yield "in clear", f"{header.nbytes:,} bytes"


def signatures_of(module: Module) -> list[str]:
    """Return a signature for each function of a module; the name if no more is known."""
    if isinstance(module, VMExecutable):
        return [module.signature(name) for name in module.function_names()]
    if isinstance(module, DeviceModule):
        return [_kernel(module.functions[name]) for name in module.function_names()]
    return module.function_names()


def _bytecode(module: VMExecutable) -> Iterator[tuple[str, str]]:
    called = [f.name for f in module.functions if f.kind == PACKED]
    yield "functions", _items(module.function_names(), module.signature)
    yield "calls", _items(called)
    yield "memory_scopes", _items(module.memory_scopes.items(), lambda pair: f"{pair[0]} {pair[1]}")
    yield "constants", _items(module.bytecode_constants, _constant)
    yield "instructions", f"{len(module.offsets) // 8:,}, {len(module.words):,} bytes"


def _constant(constant: tuple[int, Any]) -> str:
    index, value = constant
    return _shape(value) if index == TENSOR else _text(str(value))


def _device(module: DeviceModule) -> Iterator[tuple[str, str]]:
    for name in module.layout:
        if name == "fmt":
            yield name, _text(module.fmt)
        elif name == "functions":
            yield name, _items(module.functions.values(), _kernel)
        elif isinstance(module.data, memoryview) and name == "data":
            yield name, shown_bytes(module.data)
        elif not isinstance(module.data, memoryview) and name in ("sources", "shaders"):
            yield name, _items(module.data)


def _kernel(info: FunctionInfo) -> str:
    tags = f" [{', '.join(info.launch_param_tags)}]" if info.launch_param_tags else ""
    return f"{info.name}({', '.join(info.arg_types)}){tags}"


def _tensors(tensors: Mapping[str, Tensor]) -> str:
    return _items(tensors, lambda name: f"{name} {_shape(tensors[name])}")


def _shape(tensor: Tensor) -> str:
    return f"{tensor.dtype}{list(tensor.shape)}"


def _items(items: Collection[Any], show: Callable[[Any], str] = str) -> str:
    return _joined([show(item) for item in islice(items, _MAX_ITEMS)], len(items))


def _joined(texts: list[str], count: int) -> str:
    more = f", ... {count - len(texts):,} more" if count > len(texts) else ""
    cut = [text if len(text) <= 2 * _MAX_TEXT else f"{text[: 2 * _MAX_TEXT]}..." for text in texts]
    return f"{', '.join(cut)}{more}" if texts else "none"


def _numbers(values: Collection[int]) -> str:
    shown = ", ".join(map(str, islice(values, 16)))
    return f"[{shown}{f', ... {len(values) - 16:,} more' if len(values) > 16 else ''}]"


def _text(text: str) -> str:
    if len(text) <= _MAX_TEXT and text.isprintable():
        return text or '""'
    return f"{len(text):,} characters: {_quoted(text[:_MAX_TEXT], len(text) > _MAX_TEXT)}"


def _quoted(text: str, is_cut: bool) -> str:
    """Return a JSON string, on one line."""
    from json import dumps

    return dumps(text, ensure_ascii=False) + ("..." if is_cut else "")

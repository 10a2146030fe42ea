"""Golden data: modules built from their JSON, and the JSON form of decoded payloads."""

from __future__ import annotations

import hashlib
from typing import Any

import packer
import runtime
from runtime.modules.device import SOURCE, DeviceModule
from runtime.tensors.dtype import dtype_to_string, string_to_dtype


def data_of(field: Any) -> bytes:
    """The bytes that a JSON field stands for: text, hex, or a formula."""
    if isinstance(field, str):
        return field.encode()
    if "hex" in field:
        return bytes.fromhex(field["hex"])
    data = bytes((131 * i + 7 * (i >> 8)) & 0xFF for i in range(field["len"]))
    assert hashlib.sha256(data).hexdigest() == field["sha256"]
    return data


def functions_of(fields: list[dict[str, Any]]) -> dict[str, runtime.FunctionInfo]:
    """The FunctionInfo map of a JSON list."""
    return {
        f["key"]: runtime.FunctionInfo(
            f["name"], [dtype_to_string(tuple(t)) for t in f["arg_types"]], f["tags"]
        )
        for f in fields
    }


def params_of(fields: list[dict[str, Any]]) -> dict[str, runtime.Tensor]:
    """The parameters of a JSON list."""
    return {
        p["name"]: runtime.Tensor(data_of(p["data"]), tuple(p["shape"]), tuple(p["dtype"]))
        for p in fields
    }


class RawModule(runtime.Module):
    """A module of any type key, mask and payload."""

    def __init__(self, type_key: str, mask: int, payload: bytes = b"") -> None:
        self.type_key, self.property_mask, self.payload = type_key, mask, payload

    def save_to_binary(self, writer: runtime.Writer) -> None:
        """Write the payload as it is."""
        writer.write_raw(self.payload)


def make_module(m: dict[str, Any]) -> runtime.Module:
    """Build one module of a golden tree."""
    kind = m["kind"]
    if kind == "device":
        return DeviceModule(
            m["type_key"], data_of(m["data"]), m["fmt"], functions_of(m["functions"])
        )
    if kind in ("metal_real", "webgpu_real"):
        return DeviceModule(
            m["type_key"], dict(m["smap"]), m.get("fmt", ""), functions_of(m["functions"])
        )
    if kind == "graph":
        return runtime.GraphExecutorFactory(
            m["graph_json"], params_of(m["params"]), m["module_name"]
        )
    if kind == "metadata_module":
        return runtime.MetadataModule()
    if kind == "c" and m["binary_serializable"]:
        return runtime.CarriedSourceModule(
            m["code"], m["fmt"], m["func_names"], m.get("const_vars", ())
        )
    if kind == "c":
        return packer.CSourceModule(m["code"], fmt=m["fmt"])
    return RawModule(m.get("type_key", kind), m["property_mask"])


def make_tree(golden: dict[str, Any]) -> runtime.Module:
    """Build a golden tree; raise the errors of `import_module`."""
    modules = [make_module(m) for m in golden["modules"]]
    for module, imports in zip(modules, golden["imports"], strict=True):
        for child in imports:
            module.import_module(modules[child])
    return modules[golden["root"]]


def payload_json(module: runtime.Module) -> dict[str, Any]:
    """The decoded fields of a module, in the golden JSON's form."""
    return {
        DeviceModule: _device_json,
        runtime.GraphExecutorFactory: _graph_json,
        runtime.AotExecutorFactory: _aot_json,
        runtime.MetadataModule: lambda m: {},
        runtime.ConstLoaderModule: _const_loader_json,
        runtime.CarriedSourceModule: lambda m: {
            "code": m.code,
            "fmt": m.fmt,
            "func_names": list(m.func_names),
            "const_vars": list(m.const_vars),
        },
        runtime.CarriedStaticLibraryModule: lambda m: {
            "data": bytes(m.data),
            "func_names": list(m.func_names),
        },
        runtime.JSONRuntimeModule: lambda m: {
            "symbol": m.symbol,
            "graph_json": m.graph_json,
            "const_names": list(m.const_names),
        },
    }[type(module)](module)


def _device_json(m: DeviceModule) -> dict[str, Any]:
    functions = [
        {
            "key": key,
            "name": info.name,
            "arg_types": [list(string_to_dtype(t)) for t in info.arg_types],
            "tags": list(info.launch_param_tags),
        }
        for key, info in m.functions.items()
    ]
    fields = {
        "fmt": m.fmt,
        "functions": functions,
        "version": "0.1.0",
        "data": m.data,
        "sources": m.data,
        "shaders": m.data,
    }
    chosen = {name: fields[name] for name in m.layout}
    if m.layout is SOURCE:
        chosen["data"] = bytes(m.data)
    elif "sources" in chosen:
        chosen["smap"] = [list(item) for item in chosen.pop("sources").items()]
    else:
        shaders = chosen.pop("shaders").items()
        chosen["smap"] = [
            [name, {"flag": s.flag, "words": list(s.words.cast("I"))}] for name, s in shaders
        ]
    return chosen


def params_json(params: dict[str, runtime.Tensor]) -> list[dict[str, Any]]:
    """Parameters in the golden JSON's form."""
    return [
        {
            "name": name,
            "dtype": list(array.dtype_code),
            "shape": list(array.shape),
            "data_hex": bytes(array.raw).hex(),
        }
        for name, array in params.items()
    ]


def _aot_json(m: runtime.AotExecutorFactory) -> dict[str, Any]:
    return {"params": params_json(m.params), "module_name": m.module_name}


def _graph_json(m: runtime.GraphExecutorFactory) -> dict[str, Any]:
    return {"graph_json": m.graph_json, **_aot_json(m)}


def _const_loader_json(m: runtime.ConstLoaderModule) -> dict[str, Any]:
    by_symbol = [[symbol, list(names)] for symbol, names in m.const_vars_by_symbol.items()]
    return {"const_vars": params_json(m.const_vars), "const_vars_by_symbol": by_symbol}


def golden_payload(payload: dict[str, Any]) -> dict[str, Any]:
    """A golden payload with its data field as bytes."""
    if "data" in payload:
        return {**payload, "data": data_of(payload["data"])}
    return payload

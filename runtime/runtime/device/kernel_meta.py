"""The file beside device code that names its kernels, as TVM writes it: ``<name>.tvm_meta.json``.

    {"tvm_version": "0.1.0",
     "func_info": {"add": {"name": "add", "arg_types": ["handle", "int32"],
                           "launch_param_tags": ["blockIdx.x", "threadIdx.x"]}}}

Before 2022 the tags were called thread_axis_tags. Other fields are skipped.
"""

from __future__ import annotations

import json
import os

from ..error import BlobFormatError
from ..serial.mapped_file import read_file
from ..serial.strict_json import parse_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar

    from ..modules.device import FunctionInfo

    Info = TypeVar("Info")

VERSION = "0.1.0"


def meta_path(path: str | os.PathLike[str]) -> str:
    """Return the path of the file: ``.tvm_meta.json`` replaces the suffix of the code's path."""
    return f"{os.path.splitext(os.fspath(path))[0]}.tvm_meta.json"


def write_meta(path: str | os.PathLike[str], functions: Mapping[str, FunctionInfo]) -> None:
    """Write the file that belongs to device code at `path`."""
    fields = {
        name: {
            "name": info.name,
            "arg_types": list(info.arg_types),
            "launch_param_tags": list(info.launch_param_tags),
        }
        for name, info in functions.items()
    }
    text = json.dumps({"tvm_version": VERSION, "func_info": fields}, indent=2)
    with open(meta_path(path), "w", encoding="utf-8") as file:
        file.write(text + "\n")


def read_meta(
    path: str | os.PathLike[str], make_info: Callable[[str, Any, Any], Info]
) -> dict[str, Info] | None:
    """Read the kernels of device code at `path` by name; None if there is no such file.

    `make_info` makes the `FunctionInfo` of a name, argument types and launch tags. Raises
    BlobFormatError if the file is not in TVM's form, LibraryLoadError if it cannot be read.
    """
    name = meta_path(path)
    if not os.path.lexists(name):
        return None
    data = read_file(name)
    try:
        functions = parse_json(data)["func_info"]
        return {key: make_info(*_checked(fields)) for key, fields in functions.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        text = f"{name}: {type(error).__name__} {error}, expected func_info as TVM writes it"
        raise BlobFormatError(text, path=name) from error


def _checked(fields: dict[str, Any]) -> tuple[str, Any, Any]:
    tags = fields.get("launch_param_tags", fields.get("thread_axis_tags", []))
    texts = (fields["name"], *fields["arg_types"], *tags)
    if not all(isinstance(text, str) for text in texts):
        raise TypeError(f"a name, type or tag in {fields!r} is not a string")
    return fields["name"], fields["arg_types"], tags

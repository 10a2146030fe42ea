"""Real libraries of C, used through their headers: structs, callbacks that are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import packer
import runtime

from .support import needs


def library(header: str, name: str, folder: Path, package: str, **functions: Any) -> Any:
    """Export an installed library by its header, and load it."""
    needs.header(header, package)
    module = packer.from_header(Path("/usr/include", header), libraries=[name], functions=functions)
    return runtime.load(packer.export_library(module, folder / f"{name}_.so"))


def test_cjson_tree_is_walked_by_members(tmp_path: Path) -> None:
    """A JSON document of cJSON is read and changed by the members of its nodes."""
    json = library(
        "cjson/cJSON.h", "cjson", tmp_path, "libcjson-dev", cJSON_Parse={"free": "cJSON_Delete"}
    )
    with json["cJSON_Parse"]('{"name": "box", "sides": [1.5, 2, 3]}') as root:
        sides = root.child.next
        numbers, side = [], sides.child
        while side is not None:
            numbers.append(side.valuedouble)
            side = side.next
        assert (root.child.string, root.child.valuestring) == ("name", "box")
        assert (sides.string, numbers, sides.child.prev.valueint) == ("sides", [1.5, 2, 3], 3)
        sides.child.next.valuedouble = 20
        assert json["cJSON_PrintUnformatted"](root) == '{"name":"box","sides":[1.5,20,3]}'
    assert side is None and sides.closed

"""Real libraries of C, used through their headers: structs, callbacks that are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

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


def test_expat_events_arrive_in_python(tmp_path: Path) -> None:
    """Handlers that a parser keeps get its events, with a Python object as user data."""
    text = "void(XML_Parser p, void (*on)(void *data, const XML_Char s[n], int n))"
    expat = library(
        *("expat.h", "expat", tmp_path, "libexpat1-dev"),
        XML_ParserCreate={"free": "XML_ParserFree"},
        XML_SetElementHandler={"kept": "parser"},
        XML_SetUserData={"kept": "kept"},
        XML_SetCharacterDataHandler={"declaration": text, "kept": "p"},
    )
    parser, events = expat["XML_ParserCreate"](None), []
    expat["XML_SetUserData"](parser, events)
    expat["XML_SetElementHandler"](
        parser, lambda seen, name, _: seen.append(name), lambda seen, name: seen.append(f"/{name}")
    )
    expat["XML_SetCharacterDataHandler"](parser, lambda seen, s, n: seen.append(bytes(s)))
    document = "<a><b>text</b></a>"
    assert expat["XML_Parse"](parser, document, len(document), 1) == 1
    assert events == ["a", "b", b"text", "/b", "/a"]


def test_lua_calls_python(tmp_path: Path) -> None:
    """Lua code calls Python functions; an exception is raised by the call that ran the code."""
    headers = ["lua5.4/lua.h", "lua5.4/lauxlib.h"]
    needs.header(headers[0], "liblua5.4-dev")
    functions = {"luaL_newstate": {"free": "lua_close"}, "lua_pushcclosure": {"kept": "L"}}
    paths = [Path("/usr/include", header) for header in headers]
    module = packer.from_header(paths, libraries=["lua5.4"], functions=functions)
    lua = runtime.load(packer.export_library(module, tmp_path / "lua_.so"))

    def add(state: Any) -> int:
        numbers = [lua["lua_tonumberx"](state, i, None) for i in (1, 2)]
        lua["lua_pushnumber"](state, sum(numbers))
        return 1

    def run(code: str) -> float:
        assert (
            lua["luaL_loadstring"](state, code) == lua["lua_pcallk"](state, 0, 1, 0, 0, None) == 0
        )
        return lua["lua_tonumberx"](state, -1, None)

    with lua["luaL_newstate"]() as state:
        for name, function in (("add", add), ("fail", lambda _: 1 // 0)):
            lua["lua_pushcclosure"](state, function, 0)
            lua["lua_setglobal"](state, name)
        assert run("return add(1, 2) * 10") == 30
        with pytest.raises(ZeroDivisionError):
            run("return fail()")

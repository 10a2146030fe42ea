"""Real libraries of C, used through their headers; tests/stress/c_libraries.py has more of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packer
import runtime

from .support import needs
from .support.c_library import Library


def png(lib: Any, folder: Path) -> None:
    """Write an image, and read its rows through a callback."""
    pixels, path = np.arange(48, dtype=np.uint8).reshape(4, 12), folder / "a.png"
    image = runtime.new(lib, "png_image", version=lib.constants.PNG_IMAGE_VERSION)
    image.width, image.height, image.format = 4, 4, lib.constants.PNG_FORMAT_RGB
    assert lib["png_image_write_to_file"](image, str(path), 0, pixels, 0, None) == 1
    file = path.open("rb")
    version = lib.constants.PNG_LIBPNG_VER_STRING
    reader = lib["png_create_read_struct"](version, None, None, None)
    info = lib["png_create_info_struct"](reader)

    def read(_: Any, data: Any) -> None:
        np.asarray(data)[:] = np.frombuffer(file.read(len(np.asarray(data))), np.uint8)

    lib["png_set_read_fn"](reader, None, lambda png, data, n: read(png, data))
    lib["png_read_info"](reader, info)
    assert lib["png_get_image_width"](reader, info) == 4
    back = np.zeros((4, lib["png_get_rowbytes"](reader, info)), np.uint8)
    lib["png_read_image"](reader, list(back))
    assert (back == pixels).all()
    file.close()


def cjson(lib: Any, folder: Path) -> None:
    """Walk a document by the members of its nodes, and change it."""
    with lib["cJSON_Parse"]('{"name": "box", "sides": [1.5, 2, 3]}') as root:
        sides = root.child.next
        numbers, side = [], sides.child
        while side is not None:
            numbers.append(side.valuedouble)
            side = side.next
        assert (root.child.string, root.child.valuestring) == ("name", "box")
        assert (sides.string, numbers, sides.child.prev.valueint) == ("sides", [1.5, 2, 3], 3)
        sides.child.next.valuedouble = 20
        assert lib["cJSON_PrintUnformatted"](root) == '{"name":"box","sides":[1.5,20,3]}'
    assert side is None and sides.closed


def uv(lib: Any, folder: Path) -> None:
    """Run a loop whose timer ticks three times."""
    loop, timer = runtime.new(lib, "uv_loop_t"), runtime.new(lib, "uv_timer_t")
    assert lib["uv_loop_init"](loop) == lib["uv_timer_init"](loop, timer) == 0
    ticks: list[int] = []

    def tick(handle: Any) -> None:
        ticks.append(lib["uv_now"](loop))
        if len(ticks) == 3:
            lib["uv_timer_stop"](handle)

    assert lib["uv_timer_start"](timer, tick, 1, 1) == 0
    assert lib["uv_run"](loop, lib.constants.UV_RUN_DEFAULT) == 0
    assert len(ticks) == 3 and ticks == sorted(ticks)
    assert lib["uv_err_name"](lib.constants.UV_EBUSY) == "EBUSY"
    buffer = np.frombuffer(b"abc", np.int8).copy()
    assert lib["uv_buf_init"](buffer, 3).len == 3


def expat(lib: Any, folder: Path) -> None:
    """Get the events of a document, with a list as user data."""
    parser, events = lib["XML_ParserCreate"](None), []
    lib["XML_SetUserData"](parser, events)
    lib["XML_SetElementHandler"](
        parser, lambda seen, name, _: seen.append(name), lambda seen, name: seen.append(f"/{name}")
    )
    lib["XML_SetCharacterDataHandler"](parser, lambda seen, s, n: seen.append(bytes(s)))
    document = "<a><b>text</b></a>"
    assert lib["XML_Parse"](parser, document, len(document), 1) == 1
    assert events == ["a", "b", b"text", "/b", "/a"]


def lua(lib: Any, folder: Path) -> None:
    """Call Python from Lua; an exception is raised by the call that ran the code."""

    def add(state: Any) -> int:
        lib["lua_pushnumber"](state, sum(lib["lua_tonumberx"](state, i, None) for i in (1, 2)))
        return 1

    def run(code: str) -> float:
        loaded = lib["luaL_loadstring"](state, code)
        assert loaded == lib["lua_pcallk"](state, 0, 1, 0, 0, None) == 0
        return float(lib["lua_tonumberx"](state, -1, None))

    with lib["luaL_newstate"]() as state:
        for name, function in (("add", add), ("fail", lambda _: 1 // 0)):
            lib["lua_pushcclosure"](state, function, 0)
            lib["lua_setglobal"](state, name)
        assert run("return add(1, 2) * 10") == 30
        with pytest.raises(ZeroDivisionError):
            run("return fail()")
        lib["luaL_openlibs"](state)
        assert run("return select('#', table.unpack({1, 2, 3}))") == 3
        lib["lua_getglobal"](state, "print")
        assert lib["lua_tocfunction"](state, -1).kind == "fn(*{lua_State})i32"


_TEXT_HANDLER = "void(XML_Parser p, void (*on)(void *data, const XML_Char s[n], int n))"
LIBRARIES = {
    "libpng": Library(
        *("libpng-dev", ("png.h",), ("png16",), png),
        {
            "png_set_read_fn": {
                "declaration": "void(png_structrp p, void *io,"
                " void (*read)(png_structp png, png_byte data[n], size_t n))",
                "kept": {"read": "p"},
            }
        },
    ),
    "cJSON": Library(
        *("libcjson-dev", ("cjson/cJSON.h",), ("cjson",), cjson),
        {"cJSON_Parse": {"free": "cJSON_Delete"}},
    ),
    "libuv": Library("libuv1-dev", ("uv.h",), ("uv",), uv, {"uv_timer_start": {"kept": "handle"}}),
    "expat": Library(
        *("libexpat1-dev", ("expat.h",), ("expat",), expat),
        {
            "XML_ParserCreate": {"free": "XML_ParserFree"},
            "XML_SetElementHandler": {"kept": "parser"},
            "XML_SetUserData": {"kept": "kept"},
            "XML_SetCharacterDataHandler": {"declaration": _TEXT_HANDLER, "kept": "p"},
        },
    ),
    "Lua": Library(
        *("liblua5.4-dev", ("lua5.4/lua.h", "lua5.4/lauxlib.h", "lua5.4/lualib.h"), ("lua5.4",)),
        lua,
        {"luaL_newstate": {"free": "lua_close"}, "lua_pushcclosure": {"kept": "L"}},
    ),
}


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_library_is_used_through_its_header(name: str, tmp_path: Path) -> None:
    """Structs in place, rows of pixels, kept callbacks and user data, as the library's users do."""
    library = LIBRARIES[name]
    for header in library.headers[:1]:
        needs.header(header, library.package)
    path = packer.export_library(library.module(), tmp_path / "own.so")
    library.use(runtime.load(path), tmp_path)

"""Headers: the functions of installed libraries, and of a small one."""

from __future__ import annotations

from pathlib import Path

import pytest

import packer
from runtime.error import ExportError

from ...support import needs
from ..read_source import compile_errors

# The package of a header, the least number of its functions, and some of them.
INSTALLED = {
    "samplerate": ("libsamplerate0-dev", 20, {"src_new"}),
    "zlib": ("zlib1g-dev", 70, {"crc32"}),
    "sqlite3": ("libsqlite3-dev", 250, {"sqlite3_open"}),
    "git2": ("libgit2-dev", 700, {"git_libgit2_init", "git_repository_open"}),
    "sodium": ("libsodium-dev", 500, {"sodium_init", "crypto_box_seal"}),
    "uv": ("libuv1-dev", 250, {"uv_loop_new", "uv_strerror"}),
    "lua5.4/lauxlib": ("liblua5.4-dev", 120, {"luaL_newstate", "lua_gettop"}),
}


@pytest.mark.parametrize("name", INSTALLED)
def test_an_installed_header_is_read(tmp_path: Path, name: str) -> None:
    """Most functions of each are exported, and the compiler confirms every one."""
    package, least, some = INSTALLED[name]
    needs.header(f"{name}.h", package)
    module = packer.from_header(f"/usr/include/{name}.h")
    names = {d.name for d in module.functions}
    assert len(names) >= least and names >= some
    assert "printf" not in names | set(module.left_out)
    assert all(module.left_out.values())
    assert compile_errors(module, tmp_path, "-Wall", "-Wextra") == ""


def test_a_header_with_changes(tmp_path: Path) -> None:
    """Headers beside it count, system headers do not; changes replace, add and leave out."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own/part.h").write_text("#include <math.h>\nlong part(long a);\n")
    (tmp_path / "x.h").write_text(
        '#include "own/part.h"\n#define triple(x) (3 * (x))\nint stats(double *mean, int n);\n'
        "static inline int one(void) { return 1; }\nint gone(int a);\nint @;\nint odd(int, @);\n"
    )
    changes = {"stats": {"out": ["mean"]}, "triple": "long(long x)", "gone": False}
    (tmp_path / "x.h").write_text((tmp_path / "x.h").read_text().replace("int @;\n", ""))
    module = packer.from_header(tmp_path / "x.h", functions=changes)
    found = {d.name: d for d in module.functions}
    assert set(found) == {"part", "one", "stats", "triple"}
    assert found["stats"].out == ("mean",)
    assert found["triple"].symbol == "__packer_call_triple"
    assert list(module.left_out) == ["odd"]
    by_another_path = packer.from_header(tmp_path / "own/../x.h", functions=changes)
    assert by_another_path.functions == module.functions
    with pytest.raises(ExportError, match="function 'stats': out 'm': no such parameter"):
        packer.from_header(tmp_path / "x.h", functions={"stats": {"out": ["m"]}})


def test_only_some_functions_of_a_header(tmp_path: Path) -> None:
    """Names of `only` and of `functions` are read; no reasons are given for others."""
    (tmp_path / "x.h").write_text(
        "struct foo;\nint open(struct foo **made);\nint a(int);\nint b(int);\nint c(int, ...);\n"
    )
    path = tmp_path / "x.h"
    module = packer.from_header(path, only=["open", "a"], functions={"b": {"doc": "B."}})
    assert [(d.name, d.out, d.doc) for d in module.functions] == [
        ("open", ("made",), ""),
        ("a", (), ""),
        ("b", (), "B."),
    ]
    assert module.left_out == {}
    with pytest.raises(ExportError, match="function 'd': the source does not declare d"):
        packer.from_header(path, only=["d"])
    with pytest.raises(ExportError, match="function 'c': .* a variable number of arguments"):
        packer.from_header(path, only=["c"])
    with pytest.raises(ExportError, match="only: expected a list"):
        packer.from_header(path, only="a")


def test_a_wrong_declaration_of_a_call_is_a_compile_error(tmp_path: Path) -> None:
    """The compiler compares the call with the prototype of the header, and names the function."""
    (tmp_path / "x.h").write_text("int sum(const double *x, int n);\n")
    changes = {"sum": "int(const float *x, int n)"}
    errors = compile_errors(packer.from_header(tmp_path / "x.h", functions=changes), tmp_path)
    assert "<declaration of sum>" in errors
    with pytest.raises(ExportError, match="there is no such header"):
        packer.from_header(tmp_path / "nonesuch.h")


def test_headers_of_one_library_are_read_together(tmp_path: Path) -> None:
    """In one unit, in their order; a function that two of them count is exported once."""
    needs.header("lua5.4/lua.h", "liblua5.4-dev")
    headers = [f"/usr/include/lua5.4/{name}.h" for name in ("lua", "lauxlib", "lualib")]
    module = packer.from_header(headers)
    names = [d.name for d in module.functions]
    assert {"lua_gettop", "luaL_newstate", "luaL_openlibs"} <= set(names)
    assert len(names) == len(set(names))
    assert module.input_files() == tuple(map(Path, headers))
    assert compile_errors(module, tmp_path) == ""
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.h").write_text("int f(int);\n")
    with pytest.raises(ExportError, match=r"a/x\.h: two headers of this name, expected names that"):
        packer.from_header([tmp_path / "a/x.h", tmp_path / "b/x.h"])


def test_parts_of_a_header_of_the_system_are_read(tmp_path: Path) -> None:
    """Headers that it names in quotes; in a folder of one library all, if there are no others."""
    shared = tmp_path / "include"
    (shared / "kit").mkdir(parents=True)
    (shared / "kit/core.h").write_text('#include "more.h"\n#include <other.h>\nint core(int);\n')
    (shared / "kit/more.h").write_text("int more(int);\n")
    (shared / "kit/all.h").write_text("#include <kit/core.h>\n#include <other.h>\n")
    (shared / "other.h").write_text("int other(int);\n")
    (shared / "kit.h").write_text('#include "kit/core.h"\n')
    (shared / "angle.h").write_text("#include <kit/core.h>\n")
    options = ["-isystem", str(shared)]

    def names(header: str) -> set[str]:
        return {d.name for d in packer.from_header(shared / header, options=options).functions}

    (shared / "linked.h").symlink_to("kit.h")
    (shared / "libc.h").write_text("#include <bits/private.h>\n")
    (shared / "x86_64-linux-gnu/bits").mkdir(parents=True)
    (shared / "x86_64-linux-gnu/bits/private.h").write_text("int private(int);\n")
    (shared / "kit/twin.h").write_text('#include "kit/more.h"\nint twin(int);\n')
    options += ["-isystem", f"{shared}/x86_64-linux-gnu"]
    assert names("kit.h") == names("linked.h") == {"core", "more"}
    assert names("libc.h") == {"private"} and names("kit/twin.h") == {"more", "twin"}
    assert names("kit/all.h") == {"core", "more"}
    with pytest.raises(ExportError, match=r"angle\.h: declares no function, .*/kit/core\.h: name"):
        names("angle.h")


def test_functions_in_every_form_of_a_declaration_are_found(tmp_path: Path) -> None:
    """A name in parentheses, by a typedef, and after another one; no variables and types."""
    (tmp_path / "x.h").write_text(
        "typedef struct state state;\ntypedef int call(int a);\n"
        "extern state *(new_state) (void);\nint (plain)(int a);\ncall named;\n"
        "int one(int), two(int), *variable;\nstate *(*hook)(void);\nextern call *table[2];\n"
        "struct s { int (*f)(int); } make(int a);\n"
        "state *(odd) (int, __typeof__(1) x);\n_Atomic(int) atomic(void);\n"
        "__typeof__(1.0) type_of(double x);\n"
    )
    module = packer.from_header(tmp_path / "x.h")
    found = {d.name: d.text for d in module.functions if "_packer_" not in d.name}
    names = ["new_state", "plain", "named", "one", "two", "make", "odd", "atomic", "type_of"]
    assert list(found) == names and not module.left_out
    assert found["named"] == "int(int a)"
    assert compile_errors(module, tmp_path) == ""
    only = packer.from_header(tmp_path / "x.h", only=["new_state", "named"])
    assert [d.text for d in only.functions if "_packer_" not in d.name] == [
        "state *()",
        "int(int a)",
    ]


@pytest.mark.parametrize("suffix", [".hpp", ".hh", ".hxx"])
def test_a_header_of_cpp_is_read_as_cpp(tmp_path: Path, suffix: str) -> None:
    """Functions with C linkage are exported, others are listed with the words that are missing."""
    (tmp_path / f"x{suffix}").write_text(
        "#include <vector>\nnamespace own { class Box { public: int size() const; }; }\n"
        'extern "C" int add(int a, int b);\nextern "C" { int one(own::Box *b); }\n'
        'extern "C" { [[nodiscard, gnu::visibility("default")]] int two(int a [[maybe_unused]])'
        " noexcept; }\n"
        "int plain(int a);\nnamespace own { int inner(int a); }\n"
    )
    module = packer.from_header(tmp_path / f"x{suffix}")
    assert [d.name for d in module.functions] == ["add", "two"]
    assert set(module.left_out) == {"one", "plain", "inner"}
    assert module.left_out["plain"].startswith('extern "C" is missing: ')
    assert compile_errors(module, tmp_path) == ""

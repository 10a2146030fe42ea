"""Constants of sources and headers: found, computed, confirmed, stored and read."""

from __future__ import annotations

import os
import re
from enum import IntEnum
from pathlib import Path

import pytest

import packer
import runtime
from packer.declare.constants.macros import Expansion, ExpansionError, macros_of
from packer.declare.declaration import AUTO

from ....support import needs

SOURCE = r"""
#include <stddef.h>
#include <limits.h>
#define SIZE 3
#define LIMIT (SIZE * 4 + 1)
#define HALF 0.5
#define TENTH 0.1f
#define NAME "na" "me"
#define MAGIC "\x28\xb5"
#define ALL (~(size_t)0)
#define STR(x) #x
#define TEXT(x) STR(x)
#define VERSION TEXT(SIZE) "." TEXT(a "b" + 1)
#define JOIN(a, b) a##b
#define JOINED JOIN(1, 2)
#define CALL f(1)
#define EMPTY
#define TYPE unsigned long
#define NOWHERE ((void *)-1)
#define NBYTES sizeof(struct point)
#define WIDE L"wide"
#define BITS sizeof(union bits)
enum color { RED = 1, GREEN, BLUE = GREEN << 3 };
typedef enum { SMALL = -1, BIG = sizeof(int) } how;
enum { ANONYMOUS = 'a' };
struct point { double x; enum { INNER = 9 } kind; };
union bits { int i; float f; };
int f(int x) { return x; }
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> runtime.Module:
    """The library of the source."""
    module = packer.CSourceModule(SOURCE, functions=AUTO)
    return runtime.load(packer.export_library(module, tmp_path_factory.mktemp("c") / "c.so"))


def test_constants_have_the_values_of_the_compiler(model: runtime.Module) -> None:
    """Integers, floats, text and enums; a macro that is not an expression is skipped."""
    values = {n: v for n, v in model.constants.items() if not isinstance(v, type)}
    assert values == {
        "RED": 1,
        "GREEN": 2,
        "BLUE": 16,
        "SMALL": -1,
        "BIG": 4,
        "ANONYMOUS": 97,
        "INNER": 9,
        "SIZE": 3,
        "LIMIT": 13,
        "HALF": 0.5,
        "TENTH": 0.10000000149011612,
        "NAME": "name",
        "MAGIC": b"(\xb5",
        "ALL": 2**64 - 1,
        "VERSION": '3.a "b" + 1',
        "JOINED": 12,
        "NBYTES": 16,
    }


def test_an_enum_is_a_class_of_python(model: runtime.Module) -> None:
    """Its names are members, also as attributes; a function takes one."""
    constants = model.constants
    assert issubclass(constants["color"], IntEnum) and constants.color is model.constants.color
    assert constants.RED is constants.color.RED and list(constants.how) == [-1, 4]
    assert model["f"](constants.BLUE) == 16
    assert "BLUE" in dir(constants) and type(constants["ANONYMOUS"]) is int


def test_a_missing_constant_is_named(model: runtime.Module) -> None:
    """With near names, or with the reason of the export; an attribute is missing as in Python."""
    with pytest.raises(runtime.ConstantNotFoundError, match="no constant 'SIZES' in.*'SIZE'"):
        model.constants["SIZES"]
    with pytest.raises(KeyError, match="'WIDE' is not exported: its value depends on text with"):
        model.constants["WIDE"]
    with pytest.raises(AttributeError, match="depends on the type union bits"):
        _ = model.constants.BITS
    assert not hasattr(model.constants, "CALL")


def test_a_library_without_constants_has_no_record(tmp_path: Path) -> None:
    """Its bytes are what they were; packer's own headers do not count."""
    source = '#include "dso_packer.h"\n#include <limits.h>\nint f(int x) { return x; }\n'
    path = packer.export_library(packer.CSourceModule(source, functions=AUTO), tmp_path / "f.so")
    assert b"__packer_constants" not in path.read_bytes()


def test_patterns_choose_constants(tmp_path: Path) -> None:
    """A pattern takes names; one that begins with an exclamation mark leaves names out."""
    source = "#define A_1 1\n#define A_2 2\n#define B 3\nint A_v = 4;\nint f(int x) { return x; }\n"
    module = packer.CSourceModule(source, functions=AUTO, constants=["A_*", "!*2"])
    loaded = runtime.load(packer.export_library(module, tmp_path / "a.so"))
    assert (dict(loaded.constants), dict(loaded.globals)) == ({"A_1": 1}, {"A_v": 4})
    with pytest.raises(packer.ExportError, match="an empty pattern, expected 'SIZE_"):
        packer.CSourceModule(source, functions=AUTO, constants=["!"])
    with pytest.raises(packer.ExportError, match='are listed.*add "\\*" = "auto"'):
        packer.CSourceModule(source, functions={"f": AUTO}, constants=["A_*"])


def test_the_compiler_refuses_a_wrong_value(tmp_path: Path) -> None:
    """An export fails instead of storing it; the advice works."""
    source = "#define SIZE 3\nint f(int x) { return x; }\n"
    module = packer.CSourceModule(source, functions=AUTO)
    value = module.c_constants.values["SIZE"]
    module.c_constants = module.c_constants._replace(values={"SIZE": value._replace(value=4)})
    with pytest.raises(packer.ToolchainError, match="SIZE: the compiler has another value"):
        packer.export_library(module, tmp_path / "a.so")
    left = packer.CSourceModule(source, functions=AUTO, constants=["!SIZE"])
    assert not runtime.load(packer.export_library(left, tmp_path / "a.so")).constants


def test_two_values_of_one_name_are_left_out(tmp_path: Path) -> None:
    """Of two sources, with the reason; equal values are one constant."""
    first, second, other = (
        packer.CSourceModule(
            f"#define N {n}\nenum {{ A{i} }};\nint f{i}(void) {{ return N; }}\n", functions=AUTO
        )
        for i, n in enumerate((1, 1, 2))
    )
    first.import_module(second)
    assert runtime.load(packer.export_library(first, tmp_path / "a.so")).constants.N == 1
    second.import_module(other)
    model = runtime.load(packer.export_library(first, tmp_path / "b.so"))
    assert model["f2"]() == 2
    with pytest.raises(runtime.ConstantNotFoundError, match="have different values of it; rename"):
        _ = model.constants.N


def test_a_variable_of_two_sources_is_that_of_the_first(tmp_path: Path) -> None:
    """Each source has a table of a shared header; the functions of both are exported."""
    first, second = (
        packer.CSourceModule(
            f"static const int N = {n};\nint f{n}(void) {{ return N; }}\n", functions=AUTO
        )
        for n in (1, 2)
    )
    first.import_module(second)
    model = runtime.load(packer.export_library(first, tmp_path / "a.so"))
    assert (model.globals.N, model["f1"](), model["f2"]()) == (1, 1, 2)


def test_a_value_that_depends_on_the_target_is_left_out(tmp_path: Path) -> None:
    """The preprocessor of this machine read another one; the rest is exported."""
    needs.program("riscv64-linux-gnu-gcc")
    source = """
#ifdef __riscv
#define MACHINE 1
#else
#define MACHINE 2
#endif
#define SIZE 3
int machine(void) { return MACHINE; }
"""
    module = packer.CSourceModule(source, functions=AUTO)
    build = packer.Build(target="riscv64-linux-gnu")
    path = packer.export_library(module, tmp_path / "a.so", build=build)
    assert packer.inspect_library(path).constants == {"SIZE": 3}


def test_a_value_that_depends_on_the_level_is_left_out(tmp_path: Path) -> None:
    """The compiler of a level has another one than the preprocessor that read it."""
    needs.hardware(os.uname().machine == "x86_64", "x86-64")
    source = """
#ifdef __AVX2__
#define WIDTH 8
#else
#define WIDTH 4
#endif
#define SIZE 3
int width(void) { return WIDTH; }
"""
    build = packer.Build(cpu=["x86-64-v2", "x86-64-v3"])
    module = packer.CSourceModule(source, functions=AUTO)
    model = runtime.load(packer.export_library(module, tmp_path / "a.so", build=build))
    assert model.constants.SIZE == 3
    with pytest.raises(runtime.ConstantNotFoundError, match="the compiler of a level or target"):
        _ = model.constants.WIDTH


def test_cpp_has_its_plain_constants(tmp_path: Path) -> None:
    """Names in namespaces and scoped enums are skipped."""
    source = """
#define T true
namespace n { enum E { X }; const int inner = 1; }
enum class S { U };
enum G { P = 2 };
constexpr int five = 5;
int counter = 1;
extern "C" int f(int x) { return x; }
"""
    module = packer.CSourceModule(source, fmt="cc", functions=AUTO)
    loaded = runtime.load(packer.export_library(module, tmp_path / "a.so"))
    assert {k: v for k, v in loaded.constants.items() if k != "G"} == {"P": 2, "T": 1}
    assert (dict(loaded.globals), module.c_left_out) == ({"five": 5, "counter": 1}, {})


def test_a_header_of_constants_alone_is_a_library(tmp_path: Path) -> None:
    """No function is needed; a variable that no library defines is left out."""
    header = tmp_path / "only.h"
    header.write_text("#define ONE 1\nextern int lost;\nenum { TWO = 2 };\n")
    module = packer.from_header(header)
    loaded = runtime.load(packer.export_library(module, tmp_path / "only.so"))
    assert dict(loaded.constants) == {"TWO": 2, "ONE": 1}
    with pytest.raises(KeyError, match="variable 'lost' is not exported: no library that is"):
        _ = loaded.globals.lost


def test_the_constants_of_zlib(tmp_path: Path) -> None:
    """All that an installed header defines, as its text says."""
    needs.header("zlib.h", "zlib1g-dev")
    path = packer.export_library(
        packer.from_header("/usr/include/zlib.h", libraries=["z"]), tmp_path / "z.so"
    )
    constants = runtime.load(path).constants
    text = Path("/usr/include/zlib.h").read_text()
    numbers = re.findall(r"^#define\s+(Z_\w+)\s+\(?(-?\d+)\)?\s*(?:/\*.*)?$", text, re.MULTILINE)
    assert len(numbers) > 25
    assert {name: constants[name] for name, _ in numbers} == {n: int(v) for n, v in numbers}
    assert f'"{constants.ZLIB_VERSION}"' in text


@pytest.mark.parametrize("depth", [30, 3000])
def test_a_macro_that_grows_is_left_out(depth: int) -> None:
    """Twice as long at each level, or nested without end: neither takes time nor memory."""
    lines = [f"#define M{i} M{i - 1} + M{i - 1}" for i in range(1, depth)]
    macros = macros_of("\n".join([*lines, "#define F(x) x", "#define G F(1, 2)", ""]))
    with pytest.raises(ExpansionError, match="a very long expansion|deep"):
        Expansion(macros).expanded([f"M{depth - 1}"])
    with pytest.raises(ExpansionError, match="F with 2 arguments"):
        Expansion(macros).expanded(["G"])


def test_clang_confirms_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Floats too, which its assertions in C refuse; all warnings as errors change nothing."""
    monkeypatch.setenv("CC", needs.program("clang"))
    module = packer.CSourceModule(
        SOURCE, functions=AUTO, options=["-Wall", "-Wextra", "-Werror", "-Wno-unused"]
    )
    assert (pytest.approx(0.1)) == runtime.load(
        packer.export_library(module, tmp_path / "c.so")
    ).constants.TENTH


def test_constants_follow_the_tree(tmp_path: Path) -> None:
    """Also those that were read before: an import that is added has its own."""
    made = []
    for name, value in (("ONE", 1), ("TWO", 2)):
        code = f"enum {{ {name} = {value} }}; int f(void) {{ return {name}; }}"
        module = packer.CSourceModule(code, functions=AUTO)
        made.append(runtime.load(packer.export_library(module, tmp_path / f"{name}.so")))
    first, second = made
    assert dict(first.constants) == {"ONE": 1}
    first.import_module(second)
    assert dict(first.constants) == {"ONE": 1, "TWO": 2}
    first.clear_imports()
    assert "TWO" not in first.constants

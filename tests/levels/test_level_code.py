"""The code of a library with CPU levels, as readelf and nm show it, and what it computes."""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter

import numpy as np
import pytest

import packer
import runtime

from ..support import needs
from .levels import LEVELS, SOURCE, export, require_levels, run_python

needs.hardware(os.uname().machine == "x86_64", "x86-64")
TWO = ("x86-64-v1", "x86-64-v2")

# Two modules with one variable, a table of functions, and statics of the same name.
FIRST = """
int shared = 5;
static int seen;
__attribute__((visibility("hidden"))) int hidden_sum;
int twice(int x) { seen++; hidden_sum += x; return 2 * x; }
int first_seen(void) { return seen; }
const char *const labels[] = {"a", "b"};
"""
SECOND = """
extern int shared;
extern const char *const labels[];
int twice(int);
static int seen = 100;
static int half(int x) { seen++; return x / 2; }
int third(int x) { return x / 3; }
int (*table[2])(int) = {twice, third};
int apply(int i, int x) { return table[i](x) + half(0); }
int raise_shared(void) { return ++shared; }
int second_seen(void) { return seen; }
char label(int i) { return labels[i][0]; }
"""


def tool(*command) -> str:
    """Return what a program prints."""
    return subprocess.check_output([*map(str, command)], text=True)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Two modules at two levels."""
    return export(tmp_path_factory.mktemp("code"), FIRST, SECOND, build=packer.Build(cpu=TWO))


def test_functions_of_levels_are_hidden(library) -> None:
    """Each is there once for each level; the dynamic symbols have each name once."""
    static = tool("nm", library).split()
    for level in ("x86_64_v1", "x86_64_v2"):
        assert static.count(f"__packer_cpu_{level}_twice") == 1
    rows = tool("nm", "-D", "--defined-only", library).splitlines()
    dynamic = [row.split()[-1] for row in rows]
    assert Counter(dynamic).most_common(1)[0][1] == 1
    assert {"twice", "apply", "shared", "__packer_cpu_levels"} <= {*dynamic}
    assert not [name for name in dynamic if name.startswith("__packer_cpu_x86")]
    assert "hidden_sum" not in dynamic


def test_variables_exist_once(library) -> None:
    """For all modules and levels."""
    rows = tool("readelf", "-sW", library).split(".symtab")[1].splitlines()
    names = Counter(row.split()[-1] for row in rows if " OBJECT " in row)
    assert [names[name] for name in ("shared", "table", "labels", "hidden_sum")] == [1, 1, 1, 1]
    assert names["seen"] == 4  # static: in two modules, at two levels


@pytest.mark.parametrize("level", TWO)
def test_results_are_equal_at_each_level(library, level) -> None:
    """Shared variables, static ones, and calls through a table of functions."""
    require_levels(level)
    code = (
        "print([m['raise_shared'](), m['apply'](0, 7), m['apply'](1, 9), m['twice'](3),"
        " m['first_seen'](), m['second_seen'](), m['label'](1)])"
    )
    assert run_python(library, code, level=level) == "[6, 14, 3, 6, 2, 102, 98]"


def test_table_of_functions_calls_the_chosen_level(tmp_path) -> None:
    """Its initial value is not the lowest level's function."""
    source = SOURCE + "int64_t (*table[])(void) = {level};\nint64_t chosen(void);\n"
    user = "#include <stdint.h>\nextern int64_t (*table[])(void);\n"
    user += "int64_t chosen(void) { return table[0](); }\n"
    path = export(tmp_path, source, user, build=packer.Build(cpu=TWO))
    assert runtime.load(path)["chosen"]() == 2


@pytest.mark.parametrize(
    ("name", "source", "reason"),
    [
        (
            "constructor",
            "int made; __attribute__((constructor)) static void make(void) { made++; }\n"
            "int value(void) { return made; }",
            "it has constructors or destructors",
        ),
        (
            "thread-local",
            "static _Thread_local int made; int value(void) { return made ? made : ++made; }",
            "it has thread-local variables",
        ),
        (
            "static function",
            "static int one(void) { return 1; } int (*made)(void) = one;\n"
            "int value(void) { return made(); }",
            "its variable made refers to a static function",
        ),
        (
            "static variable",
            "static int one = 1; int *made = &one; int value(void) { return *made; }",
            "its variable made refers to a static variable",
        ),
        (
            "initial value",
            "#ifdef __SSE4_2__\nint made = 2;\n#else\nint made = 1;\n#endif\n"
            "int value(void) { return made; }",
            "its variable made differs from level to level",
        ),
        (
            "size",
            "#ifdef __SSE4_2__\nint made[8];\n#else\nint made[1];\n#endif\n"
            "int value(void) { return made[0] + sizeof made / 4; }",
            "its variable made differs from level to level",
        ),
        (
            "text",
            '#ifdef __SSE4_2__\nconst char *made = "ab";\n#else\nconst char *made = "a";\n#endif\n'
            "int value(void) { return made[1] == 0; }",
            "its variable made differs from level to level",
        ),
        (
            "alias",
            'int made = 1; static int here __attribute__((alias("made")));\n'
            "int value(void) { return here; }",
            "its code refers to the variable made without its name",
        ),
    ],
)
def test_source_of_the_lowest_level_only(name, source, reason, tmp_path) -> None:
    """Its code is there once, that of levels calls it, and export and inspect say so."""
    path, steps = tmp_path / "model.so", []
    (tmp_path / "fixed.c").write_text(source)
    module = packer.CSourceModule(SOURCE + "int value(void);\nint both(void){return value();}")
    module.functions = packer.CSourceModule(
        "int both(void); int both(void){return 0;}", functions="auto"
    ).functions
    module.import_module(packer.CSourceModule(tmp_path / "fixed.c", functions="auto"))
    packer.export_library(module, path, progress=steps.append, build=packer.Build(cpu=TWO))
    note = f"{tmp_path / 'fixed.c'}: {reason}"
    assert f"x86-64-v1 only: {note}" in steps
    report = packer.inspect_library(path)
    assert report.cpu is not None
    assert report.cpu.lowest == (note,)
    assert f"x86-64-v1 only: {note}" in packer.inspect.render(report).replace("\n    ", " ")
    loaded = runtime.load(path)
    assert (loaded["value"](), loaded["both"]()) == (1, 1)
    names = tool("nm", path).split()
    assert (names.count("value"), names.count("both")) == (1, 1)
    assert not [one for one in names if one.startswith("__packer_cpu") and one.endswith("_value")]


def test_levels_have_no_groups(tmp_path) -> None:
    """Otherwise a linker would keep the templates of one level for all."""
    source = tmp_path / "a.cc"
    source.write_text(
        "template <class T> __attribute__((noinline)) T twice(T x) { return x + x; }\n"
        'extern "C" int run(int x) { return twice(x); }\n'
        "inline int next() { static int calls; return ++calls; }\n"
        'extern "C" int count() { return next(); }\n'
    )
    module = packer.CSourceModule(source, functions="auto")
    object_file = packer.export_library(module, tmp_path / "a.o", build=packer.Build(cpu=TWO))
    code = re.findall(r"\[[ \d]+\] \.text\S*_Z\S* .*", tool("readelf", "-gW", object_file))
    assert code == []
    path = packer.export_library(module, tmp_path / "a.so", build=packer.Build(cpu=TWO))
    names = tool("nm", "-C", path)
    assert len(re.findall(r"__packer_cpu_x86_64_v[12]__Z5twice", tool("nm", path))) == 2
    assert len(re.findall(r" [uVB] next\(\)::calls", names)) == 1
    loaded = runtime.load(path)
    assert (loaded["run"](4), loaded["count"](), loaded["count"]()) == (8, 1, 2)


def test_three_levels_are_at_most_3_1_times_one(tmp_path) -> None:
    """Of code that is the same for each; the wrappers are there once."""
    body = "".join(f"a = a * {i}u + (a >> {i % 7}) - b / ({i}u + a);" for i in range(1, 400))
    source = f"unsigned run(unsigned a, unsigned b) {{ {body} return a; }}"

    def code_nbytes(**options) -> int:
        path = export(tmp_path, source, **options)
        return int(tool("size", "-B", path).splitlines()[1].split()[0])

    assert code_nbytes() <= 3.1 * code_nbytes(build=packer.Build(cpu=["x86-64-v2"]))


def test_blob_is_stored_once(tmp_path) -> None:
    """Weights do not grow with the levels."""
    weights = np.frombuffer(os.urandom(200_000), np.uint8)
    module = packer.CSourceModule(SOURCE, functions="auto")
    module.import_module(runtime.ConstLoaderModule({"w": weights}, {}))
    path = packer.export_library(module, tmp_path / "model.so", build=packer.Build(cpu=LEVELS))
    assert path.read_bytes().count(weights[:64].tobytes()) == 1
    assert path.stat().st_size < 300_000


def test_default_export_has_no_levels(tmp_path) -> None:
    """Nothing of them is in it."""
    path = export(tmp_path, SOURCE, build=packer.Build(cpu=None))
    assert b"packer_cpu" not in path.read_bytes()
    assert packer.inspect_library(path).cpu is None


def test_same_bytes_each_time(tmp_path) -> None:
    """In any folder."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    paths = [export(tmp_path / name, FIRST, SECOND) for name in ("one", "two")]
    assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.parametrize("linker", ["bfd", "gold", "lld", "mold"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_compilers_and_linkers(compiler, linker, tmp_path, monkeypatch) -> None:
    """Each makes a library that runs at each level."""
    monkeypatch.setenv("CC", needs.program(compiler))
    monkeypatch.setenv("CXX", needs.program({"gcc": "g++", "clang": "clang++"}[compiler]))
    needs.linker(linker)
    path = export(
        tmp_path, FIRST, SECOND, options=[f"-fuse-ld={linker}"], build=packer.Build(cpu=TWO)
    )
    for level in TWO:
        code = "print([m['raise_shared'](), m['apply'](0, 7), m['second_seen']()])"
        assert run_python(path, code, level=level) == "[6, 14, 101]"


def test_weak_function_is_replaced_by_another_source(tmp_path) -> None:
    """Also by one that is of the lowest level only."""
    weak = "__attribute__((weak)) int hook(void) { return 1; }\nint run(void) { return hook(); }"
    strong = "_Thread_local int t; int hook(void) { return 2 + t; }"
    module = packer.CSourceModule(weak, functions={"run": "int(void)"})
    module.import_module(packer.CSourceModule(strong))
    assert (
        runtime.load(packer.export_library(module, tmp_path / "a.so", build=packer.Build(cpu=TWO)))[
            "run"
        ]()
        == 2
    )


def test_users_constructors_run_after_the_choice(tmp_path) -> None:
    """Of any priority; once."""
    early = (
        "#include <stdint.h>\nint64_t level(void); int64_t seen; int calls;\n"
        "__attribute__((constructor(101))) static void f(void) { seen = level(); calls++; }\n"
        "int64_t get(void) { return seen; } int count(void) { return calls; }\n"
    )
    source = SOURCE.replace("int count(void) { return ++counter; }", "")
    loaded = runtime.load(export(tmp_path, source, early, build=packer.Build(cpu=TWO)))
    assert (loaded["get"](), loaded["count"]()) == (2, 1)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_hidden_array_is_aligned_for_each_level(compiler, tmp_path, monkeypatch) -> None:
    """The lowest level defines it; a higher one stores to it by aligned instructions."""
    monkeypatch.setenv("CC", needs.program(compiler))
    source = (
        '#define N 1024\n#define H __attribute__((visibility("hidden")))\n'
        "H char before[5] = {1}; H float made[N]; H float more[N] = {1};\n"
        "void fill(float x) { for (int i = 0; i < N; i++) made[i] = more[i] + x; before[0]++; }\n"
        "float last(void) { return made[N - 1] + made[0]; }\n"
    )
    options = ["-O3", "-mprefer-vector-width=512"]
    module = packer.CSourceModule(source, functions="auto", options=options)
    path = packer.export_library(
        module, tmp_path / "a.so", build=packer.Build(cpu=["x86-64-v1", *LEVELS])
    )
    for level in ("x86-64-v1", *LEVELS):
        require_levels(level)
        assert run_python(path, "m['fill'](2.0); print(m['last']())", level=level) == "5.0"
    rows = [row.split() for row in tool("nm", path).splitlines()]
    addresses = {row[2]: int(row[0], 16) for row in rows if len(row) == 3}
    assert [addresses[name] % 64 for name in ("made", "more")] == [0, 0]

"""Which headers count: patterns, packages of pkg-config, and headers of C++, which are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import packer
import runtime
from packer.importers.header import HeaderModule
from packer.project import read_project
from packer.toolchain.pkg_config import find_package


@pytest.fixture
def wrapper(tmp_path: Path) -> Path:
    """A header that includes another library's, in a folder of the system."""
    (tmp_path / "system/kit").mkdir(parents=True)
    (tmp_path / "system/kit/one.h").write_text("#define ONE 1\nint one(int x);\n")
    (tmp_path / "system/kit/two.h").write_text("#define TWO 2\nint two(int x);\n")
    header = tmp_path / "own/own.h"
    header.parent.mkdir()
    header.write_text("#include <kit/one.h>\n#include <kit/two.h>\nint own(int x);\n")
    return header


@pytest.mark.parametrize(
    ("patterns", "functions", "constants"),
    [
        ([], ["own"], []),
        (["kit/*"], ["one", "two"], ["ONE", "TWO"]),
        (["kit/*", "own.h", "!two.h"], ["one", "own"], ["ONE"]),
    ],
)
def test_patterns_choose_headers(
    wrapper: Path, patterns: list[str], functions: list[str], constants: list[str]
) -> None:
    """In place of the rule; a pattern is the end of a path."""
    options = ["-isystem", str(wrapper.parents[1] / "system")]
    module = packer.from_header(wrapper, header_filter=patterns, options=options)
    assert module.function_names() == functions
    assert list(module.c_constants.values) == constants
    with pytest.raises(packer.ExportError, match="header_filter: expected a list of str"):
        packer.from_header(wrapper, header_filter="kit/*")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("#include <vector>\nint f(int x);\n", "it includes <vector>"),
        ("int f(int x);\ntemplate <class T> T g(T x);\n", "line 2 of "),
        ("namespace n { int f(int x); }\n", "line 1 of "),
        ("class point { public: int x; };\n", "line 1 of "),
    ],
)
def test_a_header_of_cpp_is_refused_as_such(tmp_path: Path, text: str, where: str) -> None:
    """With the place, and what to do instead."""
    (tmp_path / "a.h").write_text(text)
    with pytest.raises(packer.ExportError, match=rf"a.h: is a header of C\+\+.*\({where}.*\(.cc\)"):
        HeaderModule(tmp_path / "a.h")


def test_a_header_for_both_languages_is_read(tmp_path: Path) -> None:
    """The compiler drops what is for C++."""
    text = '#ifdef __cplusplus\n#include <vector>\nextern "C" {\n#endif\nint f(int x);\n'
    (tmp_path / "a.h").write_text(f"{text}#ifdef __cplusplus\n}}\n#endif\n")
    assert HeaderModule(tmp_path / "a.h").function_names() == ["f"]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed library, libKit-2.0, as its package file describes it."""
    for folder in ("include/kit", "lib"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "include/kit/Kit.h").write_text("#ifdef KIT\nint kit_run(int x);\n#endif\n")
    (tmp_path / "kit.c").write_text("int kit_run(int x) { return x + 1; }\n")
    packer.create_shared(tmp_path / "lib/libkit.so", [tmp_path / "kit.c"])
    (tmp_path / "libkit-2.0.pc").write_text(
        f"prefix={tmp_path}\nincludedir=${{prefix}}/include\nName: kit\nDescription: a kit\n"
        "Version: 2\nCflags: -I${includedir} -DKIT\nLibs: -L${prefix}/lib -lkit\n"
    )
    monkeypatch.setenv("PKG_CONFIG_PATH", str(tmp_path))
    return tmp_path


def test_a_package_is_header_options_and_library(package: Path) -> None:
    """The library finds its library at run time, which is in no folder of the system."""
    module = packer.from_header("pkg-config:libkit-2.0")
    assert module.headers == (package / "include/kit/Kit.h",)
    path = packer.export_library(module, package / "k.so")
    assert runtime.load(path)["kit_run"](1) == 2
    assert packer.inspect_library(path).linkage.runpath == (str(package / "lib"),)


def test_a_package_beside_a_header_has_only_options(package: Path) -> None:
    """The header that the user names is read."""
    (package / "own.h").write_text("#include <kit/Kit.h>\nint kit_run(int x);\n")
    module = packer.from_header([package / "own.h", "pkg-config:libkit-2.0"])
    path = packer.export_library(module, package / "k.so")
    assert runtime.load(path)["kit_run"](1) == 2


def test_a_missing_package_is_refused(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So are a name that is an option, a package without a header, and a missing program."""
    with pytest.raises(packer.ExportError, match="no package 'libnone': .*or set PKG_CONFIG_PATH"):
        find_package("libnone")
    with pytest.raises(packer.ExportError, match="expected the name of a package, found '--all'"):
        find_package("--all")
    (package / "include/kit/Kit.h").unlink()
    with pytest.raises(packer.ExportError, match="no header has its name, expected one; name it"):
        packer.from_header("pkg-config:libkit-2.0")
    monkeypatch.setenv("PKG_CONFIG", "no-such-program")
    with pytest.raises(packer.ExportError, match="there is no program 'no-such-program'; install"):
        find_package("libkit-2.0")


def test_packer_toml_has_the_same_choices(package: Path) -> None:
    """A package as the header, patterns of headers and of constants."""
    (package / "include/kit/Kit.h").write_text(
        '#include "more.h"\n#define KIT_A 1\n#define KIT_B 2\nint kit_run(int x);\n'
    )
    (package / "include/kit/more.h").write_text("#define MORE 3\nint kit_more(int x);\n")
    (package / "packer.toml").write_text(
        '[library]\noutput = "k.so"\n[module.kit]\nkind = "c"\nconstants = ["!*_B"]\n'
        '[module.kit.functions]\nheader = "pkg-config:libkit-2.0"\nheader_filter = ["Kit.h"]\n'
    )
    project = read_project(package / "packer.toml")
    path = packer.export_library(project.root, package / "k.so")
    loaded = runtime.load(path)
    assert (loaded["kit_run"](1), dict(loaded.constants)) == (2, {"KIT_A": 1})
    assert "kit_more" not in loaded

"""runtime.harden: what every load of the process refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import packer
import runtime
from runtime.error import LibraryLoadError

from ....support import needs
from ....support.hardened import CONSTRUCTOR, OFFENCES, PLAIN, compiled
from ....support.process import run_python


@pytest.fixture
def harden(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`runtime.harden`, until the test ends."""
    import runtime.trust.hardening

    monkeypatch.setattr(runtime.trust.hardening, "_rules", None)
    return runtime.harden


@pytest.mark.parametrize("rule", OFFENCES)
def test_a_load_refuses_before_it_opens(
    tmp_path: Path, harden: Callable[..., None], rule: str
) -> None:
    """With the reason "policy", the place and the remedy; no code runs."""
    source, options = OFFENCES[rule]
    path = compiled(source, tmp_path / "a.so", *options)
    harden()
    with pytest.raises(LibraryLoadError, match="expected .*; ") as raised:
        runtime.load(path)
    assert (raised.value.reason, raised.value.path) == ("policy", str(path))
    assert not path.with_suffix(".mark").exists()


def test_an_export_loads(tmp_path: Path, harden: Callable[..., None]) -> None:
    """From a file and from bytes, and its imports too."""
    harden()
    inner = packer.CSourceModule(PLAIN, functions="auto")
    path = packer.export_library(inner, tmp_path / "a.so")
    assert runtime.load(path)["twice"](21) == 42
    assert runtime.load_from_bytes(path.read_bytes())["twice"](4) == 8
    assert runtime.load(path) is runtime.load_from_bytes(path.read_bytes())


def test_a_library_inside_a_library_is_checked(tmp_path: Path, harden: Callable[..., None]) -> None:
    """Its constructor does not run."""
    mark = tmp_path / "mark"
    own = packer.CSourceModule(CONSTRUCTOR + PLAIN, functions="auto", options=[f'-DMARK="{mark}"'])
    root = packer.CSourceModule("int one(void) { return 1; }", functions="auto")
    root.import_module(runtime.load(packer.export_library(own, tmp_path / "inner.so")))
    outer = packer.export_library(root, tmp_path / "outer.so")
    mark.unlink()
    harden()
    with pytest.raises(LibraryLoadError, match="'hello' at 0x"):
        runtime.load(outer)["twice"]
    assert not mark.exists()


def test_a_file_that_is_loaded_already_is_checked_again(
    tmp_path: Path, harden: Callable[..., None]
) -> None:
    """The module stays; a new load of the file is refused."""
    path = compiled(CONSTRUCTOR + PLAIN, tmp_path / "a.so")
    digest = runtime.Trust.sha256(__import__("hashlib").sha256(path.read_bytes()).hexdigest())
    plain, trusted = runtime.load(path), runtime.load(path, trust=digest)
    harden()
    for trust in (None, digest):
        with pytest.raises(LibraryLoadError, match="'hello'"):
            runtime.load(path, trust=trust)
    assert plain.path == trusted.path


def test_libraries_and_folders_can_be_allowed(tmp_path: Path, harden: Callable[..., None]) -> None:
    """A library in such a folder is checked as well."""
    folder = tmp_path / "lib"
    folder.mkdir()
    beside = compiled(PLAIN, folder / "libbeside.so", "-Wl,-soname,libbeside.so")
    source = "int twice(int); int four(int x) { return twice(twice(x)); }"
    links = [f"-L{folder}", "-lbeside", "-Wl,-rpath,$ORIGIN/lib"]
    path = compiled(source, tmp_path / "a.so", *links)
    harden(origin=True)
    with pytest.raises(LibraryLoadError, match="DT_NEEDED, .* found 'libbeside.so'"):
        runtime.load(path)
    harden(needed=["libbeside.*"])
    with pytest.raises(LibraryLoadError, match=r"DT_RUNPATH, expected none, found '\$ORIGIN/lib'"):
        runtime.load(path)
    harden(needed=["libbeside.so"], origin=True)
    assert runtime.load(path, functions={"four": "int(int)"})["four"](3) == 12
    compiled(CONSTRUCTOR + PLAIN, beside, "-Wl,-soname,libbeside.so")
    with pytest.raises(LibraryLoadError, match="'hello'") as raised:
        runtime.load(compiled(source, tmp_path / "b.so", *links))
    assert raised.value.path == str(beside)
    assert not beside.with_suffix(".mark").exists()


def test_needed_libraries_do_not_bind_symbols_of_the_file(tmp_path: Path) -> None:
    """They are opened first: else libstdc++'s constructors call a function of the library."""
    needs.program("g++")
    mark = tmp_path / "mark"
    source = (
        "#include <stdio.h>\n"
        f'void _ZNSt14error_categoryC2Ev(void *self) {{ fclose(fopen("{mark}", "w")); }}\n'
        "extern char _ZSt4cout; char *out(void) { return &_ZSt4cout; }\n"
    )
    path = compiled(source, tmp_path / "a.so", "-lstdc++", "-Wl,--no-as-needed")
    code = "import json, sys, runtime; {}runtime.load(sys.argv[1]); print(json.dumps(1))"
    run_python(code.format("runtime.harden(); "), str(path))
    assert not mark.exists()
    run_python(code.format(""), str(path))
    assert mark.exists()


def test_names_of_libraries_are_a_list() -> None:
    """One text is not a list."""
    for wrong in ("libz.so.1", [1]):
        with pytest.raises(TypeError, match="needed: expected names"):
            runtime.harden(needed=wrong)  # type: ignore[arg-type]


def test_without_it_nothing_is_imported(tmp_path: Path) -> None:
    """A load imports no module of the check."""
    path = compiled(PLAIN, tmp_path / "a.so")
    code = (
        "import json, sys, runtime; runtime.load(sys.argv[1]); "
        "print(json.dumps([n for n in sys.modules if 'harden' in n or 'trust' in n]))"
    )
    assert run_python(code, str(path)) == []

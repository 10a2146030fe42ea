"""Code that a wheel has as a linked library: an export copies it, without any program."""

from __future__ import annotations

import pytest
from elftools.elf.elffile import ELFFile

import packer
import runtime
from runtime.error import ToolchainError

CODE = "long twice(long a) { return a + a; }"
FUNCTIONS = {"twice": "long(long a)"}


def tree(nbytes: int, library=None, code: str = CODE, functions=FUNCTIONS):
    """Make weights of a size, and the code that the library has."""
    header = b'{"w":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}}' % (nbytes, nbytes)
    data = len(header).to_bytes(8, "little") + header + bytes(i % 251 for i in range(nbytes))
    root, host = runtime.SafetensorsModule(data), packer.CSourceModule(code, functions=functions)
    host.prelinked = library
    root.import_module(host)
    return root


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A library of the code, with another tree."""
    return packer.export_library(tree(100), tmp_path_factory.mktemp("code") / "code.so")


@pytest.fixture(autouse=True)
def no_programs(library, monkeypatch):
    """Let the PATH be empty; the library is made before."""
    monkeypatch.setenv("PATH", "/nonexistent")
    for name in ("CC", "CXX"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("nbytes", [0, 7, 100, 5000, 1 << 20])
def test_a_copy_has_the_code_and_another_tree(library, nbytes, tmp_path) -> None:
    """Of fewer bytes and of more; the library in the wheel is unchanged."""
    before = library.read_bytes()
    path = packer.export_library(tree(nbytes, library), tmp_path / "model.so")
    loaded = runtime.load(path)
    assert loaded.get_function("twice", True)(21) == 42
    assert bytes(loaded.weights["w"].numpy()) == bytes(i % 251 for i in range(nbytes))
    assert library.read_bytes() == before
    assert path.stat().st_mode & 0o111
    with path.open("rb") as file:
        names = [
            symbol.name for symbol in ELFFile(file).get_section_by_name(".dynsym").iter_symbols()
        ]
    assert {"__packer_fn_twice", "__packer_manifest", "__packer_checksums"} <= {*names}


def test_the_same_tree_gives_the_same_bytes(library, tmp_path) -> None:
    """And the bytes of a link, where the tree is the same."""
    first, second = (
        packer.export_library(tree(100, library), tmp_path / name) for name in ("1.so", "2.so")
    )
    assert first.read_bytes() == second.read_bytes() == library.read_bytes()


@pytest.mark.parametrize(
    "choices",
    [
        {"options": ["-Wl,-z,now"]},
        {"addons": ["other.o"]},
        {"entry": "twice"},
        {"format": "tvm-ffi"},
        {"system_lib": True},
        {"output": packer.Output(soname="libm.so.1")},
        {"output": packer.Output(metadata={"version": "1"})},
        {"output": packer.Output(visibility="declared")},
        {"build": packer.Build(cpu=["x86-64-v2", "x86-64-v3"])},
        {"build": packer.Build(embed="c")},
        {"path": "model.o"},
        {"code": CODE.replace("long a)", "int a)"), "functions": {"twice": "long(int a)"}},
        {"functions": {**FUNCTIONS, "more": "long(long a)"}},
    ],
    ids=lambda choices: "-".join(choices),
)
def test_what_a_link_does_needs_a_compiler(library, choices, tmp_path) -> None:
    """Nothing that the caller chooses is dropped; neither are other functions."""
    choices = dict(choices)
    path = tmp_path / choices.pop("path", "model.so")
    made = {name: choices.pop(name) for name in ("code", "functions") if name in choices}
    with pytest.raises(ToolchainError, match="compiler"):
        packer.export_library(tree(10, library, **made), path, **choices)
    assert not path.exists()


def test_further_code_needs_a_compiler(library, tmp_path) -> None:
    """Even if it has no declared function; and so does a variable that names one."""
    root = tree(10, library)
    root.import_module(packer.CSourceModule("int more;"))
    with pytest.raises(ToolchainError, match="compiler"):
        packer.export_library(root, tmp_path / "model.so")


def test_a_variable_names_a_compiler(library, tmp_path, monkeypatch) -> None:
    """Which is then used, even if there is none."""
    monkeypatch.setenv("CC", "/nonexistent/cc")
    with pytest.raises(ToolchainError, match="/nonexistent/cc"):
        packer.export_library(tree(10, library), tmp_path / "model.so")


def test_a_damaged_library_is_refused(library, tmp_path) -> None:
    """And the old output stays."""
    damaged = tmp_path / "code.so"
    damaged.write_bytes(library.read_bytes()[:3000])
    output = tmp_path / "model.so"
    output.write_text("old")
    with pytest.raises(
        ToolchainError, match=r"code\.so: .*; install the package again that has it"
    ):
        packer.export_library(tree(10, damaged), output)
    assert output.read_text() == "old"

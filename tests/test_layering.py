"""Who may import whom, read from the code itself."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import packer
import runtime

ROOTS = {
    name: Path(module.__file__).parent
    for name, module in (("runtime", runtime), ("packer", packer))
}
FILES = {
    ".".join((root, *path.relative_to(folder).with_suffix("").parts)): path
    for root, folder in ROOTS.items()
    for path in folder.rglob("*.py")
    if "templates" not in path.parts
}


# The rooms of runtime, from the ground up: files at the top, and folders. A file may import rooms
# of rows above its own, and its own folder. Higher rooms are reached in two ways: Module calls
# `upper_floors`, which runtime/__init__ fills; registry imports the loader of a type key by name.
RUNTIME_FLOORS = (
    {"abi", "error", "public_names", "timing"},
    {"mapped_file", "property", "registry", "stream", "strict_json"},
    {"import_tree", "tensors"},
    {"device", "module"},
    {"graph", "relax"},
    {"modules"},
    {"manifest"},
    {"blob"},
    {"serial"},
    {"library", "lone_files"},
    {"load", "system_library"},
    {"interchange"},
    {"torch", "__init__"},
)


def imports_of(module: str) -> set[str]:
    """Every module that a module imports, anywhere in it, type checking aside."""
    package = module.split(".")[:-1]
    found = set()
    for node in _nodes(ast.parse(FILES[module].read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            start = ".".join([*base, *([node.module] if node.module else [])])
            found |= {start, *(f"{start}.{alias.name}" for alias in node.names)}
    return found


def _nodes(tree: ast.AST):
    """Walk a tree, without the bodies of `if TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        yield child
        yield from _nodes(child)


def importers(target: str) -> set[str]:
    """The modules that import a module, or something of it."""
    return {
        module.removesuffix(".__init__")
        for module in FILES
        if any(f"{name}.".startswith(f"{target}.") for name in imports_of(module))
    }


def test_runtime_imports_lower_floors_only() -> None:
    """Imports inside functions count; those of type checkers and of the native core do not."""
    floor_of = {room: floor for floor, rooms in enumerate(RUNTIME_FLOORS) for room in rooms}
    upward = [
        (module, target)
        for module in FILES
        if module.startswith("runtime.")
        for target in _ours(module)
        if (room := target.split(".")[1]) != "_core" and room != module.split(".")[1]
        if not floor_of[room] < floor_of[module.split(".")[1]]
    ]
    assert not upward


def test_runtime_never_imports_packer() -> None:
    """Module.export_library reaches packer by name: runtime._export_library."""
    assert not {m for m in importers("packer") if m.startswith("runtime")}


@pytest.mark.parametrize("target", ["runtime.load", "packer.export"])
def test_entry_lines_are_imported_by_the_outside_only(target) -> None:
    """Nobody but __init__, the command line, run-before-export and runtime.torch imports them."""
    allowed = {
        "runtime",
        "runtime.interchange",
        "runtime.torch",
        "packer",
        "packer.modules.host",
        "packer.__main__",
    }
    assert {m for m in importers(target) if not m.startswith("packer.cli")} <= allowed


def test_embedders_know_bytes_and_symbols_only() -> None:
    """embed/* import no module types, but for the one that emits LLVM's objects."""
    known = (
        "packer.embed",
        "packer.modules.llvm",
        "packer.target",
        "runtime._core",
        "runtime.abi",
        "runtime.error",
        "runtime.stream",
    )
    for module in FILES:
        if module.startswith("packer.embed."):
            assert all(name.startswith(known) for name in _ours(module)), module


def test_blob_knows_streams_not_libraries() -> None:
    """The format can be read without the native core."""
    known = ("abi", "error", "import_tree", "registry", "stream", "manifest", "modules")
    assert all(name.split(".")[1] in known for name in _ours("runtime.blob"))


def _ours(module: str) -> set[str]:
    """What a module imports of our packages, by the full name."""
    names = {n for n in imports_of(module) if n.startswith(("packer.", "runtime."))}
    return {n for n in names if not any(other.startswith(f"{n}.") for other in names)}


def test_packer_imports_are_one_way() -> None:
    """The command line uses the rest of packer; nothing uses the command line."""
    assert {m for m in importers("packer.cli") if not m.startswith("packer.cli")} <= {
        "packer.__main__"
    }


def test_toolchain_knows_no_kind_of_output() -> None:
    """cross_compiler looks a linker up among the formats, which are made of the toolchain."""
    known = {"packer.toolchain.create"}
    while more := {n for m in known for n in imports_of(m) if n in FILES} - known:
        known |= more
    assert "packer.toolchain.compiler" in known
    assert not {"packer.toolchain.formats", "packer.toolchain.cross_toolchain"} & known

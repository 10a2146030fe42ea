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


# The rooms of each package, from the ground up: files at the top, folders, and parts of a folder
# that are on another floor than the rest. A file may import rooms of rows above its own, and its
# own room. Higher rooms of runtime are reached in two ways: Module calls `upper_floors`, which
# runtime/__init__ fills; registry imports the loader of a type key by name.
FLOORS = {
    "runtime": (
        {
            "abi",
            "elf",
            "error",
            "graph/extent",
            "graph/profile",
            "public_names",
            "graph/timing",
            "typing",
        },
        {
            "modules/property",
            "registry",
            "serial/mapped_file",
            "serial/strict_json",
            "signature",
            "trust/hardening",
            "trust/sealed_memory",
        },
        {
            "constants",
            "graph/model_record",
            "serial/library_metadata",
            "serial/stream",
            "structs",
            "trust",
        },
        {"tensors", "trust/encryption", "variables"},
        {"device", "module"},
        {"generation", "graph", "host_imports", "relax", "session"},
        {"modules", "relax_vm"},
        {"payloads", "serial/manifest"},
        {"blob"},
        {"lazy_tree", "serial"},
        {"device/standalone_files", "library", "trust/verified_load"},
        {"load", "serial/data_file", "system_library"},
        {"reference"},
        {"interchange", "pool"},
        {"torch", "__init__"},
    ),
    "packer": (
        {"dialect", "machine", "model_text", "output"},
        {"target"},
        {"files"},
        {"elf"},
        {"declare", "embed", "fatbin", "relax"},
        {"toolchain", "trust/encrypt"},
        {"modules"},
        {"levels"},
        {"host_code", "imports", "link", "operators", "trust/sbom"},
        {"records"},
        {"prelinked"},
        {"deferred_link", "export", "importers"},
        {"inspect", "project"},
        {"packaging/c_header", "packaging/stubs", "trust/sign"},
        {"packaging/wheel"},
        {"cli"},
        {"packaging/hooks"},
        {"__init__", "__main__"},
    ),
}


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


@pytest.mark.parametrize("package", FLOORS)
def test_imports_point_down(package) -> None:
    """Imports inside functions count; imports of type checkers and of the native core do not."""
    floor_of = {room: floor for floor, rooms in enumerate(FLOORS[package]) for room in rooms}
    upward = [
        f"{module} -> {target}"
        for module in FILES
        if module.startswith(f"{package}.")
        for target in _ours(module)
        if target.startswith(f"{package}.") and _room(target) not in ("_core", _room(module))
        if not floor_of[_room(target)] < floor_of[_room(module)]
    ]
    assert not upward


@pytest.mark.parametrize("package", FLOORS)
def test_every_room_has_a_floor(package) -> None:
    """A new file at the top, or a new folder, is added to the table."""
    rooms = {_room(module) for module in FILES if module.startswith(f"{package}.")}
    assert rooms == set().union(*FLOORS[package])


def _room(module: str) -> str:
    """Return the room of a module: the smallest one; names of a package itself are of __init__."""
    package, *names = module.split(".")
    known = set().union({"_core"}, *FLOORS[package])
    rooms = ["/".join(names[:length]) for length in (2, 1)]
    found = [room for room in rooms if room in known]
    is_unknown = f"{package}.{names[0]}" in FILES  # a new file at the top
    return found[0] if found else names[0] if is_unknown else "__init__"


def test_runtime_never_imports_packer() -> None:
    """Module.export_library reaches packer by name: runtime._export_library."""
    assert not {m for m in importers("packer") if m.startswith("runtime")}


@pytest.mark.parametrize("target", ["runtime.load", "packer.export"])
def test_entry_lines_are_imported_by_the_outside_only(target) -> None:
    """Only __init__, the command line, what unpickles, and runtime.torch import them."""
    allowed = {
        "runtime",
        "runtime.interchange",
        "runtime.pool",
        "runtime.reference.pickled",
        "runtime.reference.unpickled",
        "runtime.torch",
        "packer",
        "packer.__main__",
    }
    assert {m for m in importers(target) if not m.startswith("packer.cli")} <= allowed


def test_embedders_know_bytes_and_symbols_only() -> None:
    """embed/* import no module types."""
    assert not {m for m in importers("runtime.module") if m.startswith("packer.embed")}
    assert not {m for m in importers("runtime.modules") if m.startswith("packer.embed")}


def test_blob_knows_streams_not_libraries() -> None:
    """The format needs no library."""
    known = {"_core", "abi", "error", "payloads", "serial/stream"}
    assert {_room(name) for name in _ours("runtime.blob")} <= known


def _ours(module: str) -> set[str]:
    """Return the imports of our packages in a module, by the full name."""
    names = {n for n in imports_of(module) if n.startswith(("packer.", "runtime."))}
    return {n for n in names if not any(other.startswith(f"{n}.") for other in names)}


def test_toolchain_knows_no_kind_of_output() -> None:
    """create_shared and its linker know no formats, which are made of them."""
    known = {"packer.toolchain.create"}
    while more := {n for m in known for n in imports_of(m) if n in FILES} - known:
        known |= more
    assert "packer.toolchain.compiler" in known
    assert not {"packer.toolchain.formats", "packer.toolchain.cross_linker"} & known

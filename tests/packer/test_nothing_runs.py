"""Looking at a library runs nothing of it: neither a constructor nor an IFUNC resolver."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import packer
import runtime
from packer.cli import main
from packer.trust.sign import sign_library
from runtime.trust.verify import verify_file

from ..support import needs
from ..support.graphs import factory, graph, null, op
from ..support.hardened import compiled
from ..support.process import run_python
from ..support.signing import keys

# -fno-plt, and a static function: the loader binds fopen before it calls the resolver.
SOURCE = """
#include <stdio.h>
#define LEAVE(path) do { FILE *f = fopen(path, "w"); if (f) fclose(f); } while (0)
__attribute__((constructor)) static void hello(void) { LEAVE(MARK ".constructor"); }
static int one(void) { return 1; }
static int (*choose(void))(void) { LEAVE(MARK ".resolver"); return one; }
static int chosen(void) __attribute__((ifunc("choose")));
int twice(int x) { return 2 * x * chosen(); }
"""
OPTIONS = ("-fno-plt", "-O1")
COMMANDS: dict[str, tuple[str, ...]] = {
    "inspect": (),
    "inspect --symbols": ("--symbols",),
    "inspect --blob": ("--blob",),
    "inspect --json": ("--json",),
    "inspect --html": ("--html", "report.html"),
    "check": (),
    "check --without-python": ("--without-python", "--policy", "strict", "--json"),
    "diff": ("other.so",),
    "extract": ("-o", "extracted", "--force"),
    "sbom": (),
    "verify": ("--key", "acme.pub"),
    "sign": ("--key", "acme.key"),
}


def module(mark: Path) -> packer.CSourceModule:
    """Host code that leaves two marks when it is loaded."""
    options = [f'-DMARK="{mark}"', *OPTIONS]
    return packer.CSourceModule(SOURCE, functions={"twice": "int(int)"}, options=options)


def plain(folder: Path) -> Path:
    """A library of a compiler."""
    return compiled(SOURCE, folder / "model.so", *OPTIONS)


def with_blob(folder: Path) -> Path:
    """An export with constants."""
    root = module(folder / "model.mark")
    root.import_module(runtime.ConstLoaderModule({"w": np.arange(6, dtype=np.float32)}, {}))
    return packer.export_library(root, folder / "model.so", output=packer.Output(sbom=True))


def nested(folder: Path) -> Path:
    """An export with a library inside a library inside it."""
    root = module(folder / "model.mark")
    for name in ("innermost", "inner"):
        outer = module(folder / "model.mark")
        outer.import_module(runtime.load(packer.export_library(root, folder / f"{name}.so")))
        root = outer
    return packer.export_library(root, folder / "model.so")


def with_needed(folder: Path) -> Path:
    """A library that needs another one, which is there as a link to a link."""
    (folder / "lib").mkdir()
    mark = f'-DMARK="{folder / "model.mark"}"'
    compiled(SOURCE, folder / "lib" / "deep.so", *OPTIONS, f"-U{'MARK'}", mark)
    for name, target in (("libdeep.so.1", "deep.so"), ("libdeep.so", "libdeep.so.1")):
        (folder / "lib" / name).symlink_to(target)
    links = [f"-L{folder / 'lib'}", "-Wl,-rpath,$ORIGIN/lib", "-Wl,--no-as-needed", "-ldeep"]
    return compiled("int f(void) { return 1; }", folder / "model.so", *links)


def marks(folder: Path) -> list[str]:
    """The marks that code left; they are removed."""
    found = sorted(path.suffix for path in folder.glob("*.constructor") if path.unlink() is None)
    return found + sorted(
        path.suffix for path in folder.glob("*.resolver") if path.unlink() is None
    )


def run(argv: list[str]) -> int:
    """Run a command here; return its exit status."""
    try:
        return main(argv)
    except SystemExit as ended:
        return int(ended.code or 0)


@pytest.mark.parametrize("make", [plain, with_blob, nested, with_needed])
def test_looking_runs_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    make: Callable[[Path], Path],
) -> None:
    """Each command and function that reads a library; a load leaves both marks."""
    needs.importable("cryptography", "sign")
    monkeypatch.chdir(tmp_path)
    path = make(tmp_path)
    os.link(path, tmp_path / "other.so")
    keys(tmp_path)
    sign_library(path, tmp_path / "acme.key")
    marks(tmp_path)
    for name, options in COMMANDS.items():
        status = run([name.split(" ", maxsplit=1)[0], path.name, *options])
        printed = capsys.readouterr()
        assert status in (0, 1), (name, printed)
        assert "Traceback" not in printed.err
        assert marks(tmp_path) == [], name
    assert verify_file(path, [tmp_path / "acme.pub"]).name == "model.so"
    assert runtime.open_data(path).type_key == "library"
    assert packer.inspect_library(path).constructors
    assert marks(tmp_path) == []
    load = "import json, sys, runtime; runtime.load(sys.argv[1]); print(json.dumps(1))"
    run_python(load, str(path))
    assert marks(tmp_path) == [".constructor", ".resolver"]


def test_a_graph_without_host_code_runs(tmp_path: Path) -> None:
    """It returns its input, by a node that copies nothing, and a weight."""
    nodes = [null("x"), null("w"), op("same", "__nop", [0])]
    weight = np.arange(6, dtype=np.float32).reshape(2, 3)
    parts = graph(nodes, [2, 1], storage_ids=[0, 1, 0])
    root = factory(parts, {"w": runtime.tensor(weight)})
    path = packer.export_library(root, tmp_path / "model.so")
    x = np.full((2, 3), 7, np.float32)
    for opened in (runtime.open_data(path), runtime.load(path)):
        executor = opened["default"]()
        executor.run(x=x)
        assert np.array_equal(executor.get_output(0).numpy(), x)
        assert np.array_equal(executor.get_output(1).numpy(), weight)

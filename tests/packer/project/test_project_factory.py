"""packer.toml: modules that a Python factory makes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from .projects import KERNELS, project, refusal

FACTORY = "[module.own]\nkind = 'python'\nfactory = 'build.py:make'\n"


def test_factory_makes_the_module(folder: Path) -> None:
    """It may import files beside it; none of them stays in the interpreter or the folder."""
    (folder / "beside_build.py").write_text("code = 'kernel void f() {}'\n")
    (folder / "build.py").write_text(
        "from dataclasses import dataclass\nimport beside_build\nimport runtime\n"
        "@dataclass\nclass Kernel:\n    name: str\n"
        "def make():\n    infos = [runtime.FunctionInfo(Kernel('f').name)]\n"
        "    return runtime.DeviceModule('opencl', beside_build.code, 'cl', infos)\n"
    )
    search, before = list(sys.path), sorted(os.listdir(folder))
    found = project(folder, FACTORY + "imports = ['kernels']\n" + KERNELS)
    assert found.root.get_source() == "kernel void f() {}"
    assert [module.type_key for module in found.root.imported_modules] == ["opencl"]
    assert search == sys.path
    assert not {"beside_build", "build", "packer factory"} & set(sys.modules)
    assert sorted([*before, "packer.toml"]) == sorted(os.listdir(folder))


FACTORY_MISTAKES = {
    "raises": ("def make():\n    return 1 // 0\n", ":2: ZeroDivisionError: integer division"),
    "on import": ("\nimport nonesuch\n", ":2: ModuleNotFoundError: No module named 'nonesuch'"),
    "syntax": ("x = 1\ndef make(:\n", ":2: SyntaxError: "),
    "exits": ("import sys\nsys.exit(0)\n", ":2: SystemExit: 0"),
    "other type": ("def make():\n    return []\n", ": make() returns list, expected a runtime.Mo"),
    "other name": ("def mak():\n    pass\n", ": has no function 'make'; near names: 'mak'"),
    "arguments": ("def make(x):\n    pass\n", ": TypeError: make() missing 1 required"),
    "our error": (
        "import packer\ndef make():\n    return packer.CSourceModule('nonesuch.c')\n",
        ":3: nonesuch.c: cannot be read as source",
    ),
}


@pytest.mark.parametrize(
    ("code", "message"), FACTORY_MISTAKES.values(), ids=FACTORY_MISTAKES.keys()
)
def test_factory_mistake_names_its_line(folder: Path, code: str, message: str) -> None:
    """The error of the user's code says its line."""
    (folder / "build.py").write_text(code)
    assert f"[module.own]: {folder}/build.py{message}" in refusal(folder, FACTORY)
    assert "packer factory" not in sys.modules

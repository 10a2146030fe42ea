"""The build backend of dso-packer and its importers: setuptools, and where a checkout has others.

Their wheels require each other by version. A frontend that asks before the build gets the folders
of the checkout instead, so that `pip install .` and `pip install ./importers/numba` need no index
for them. A source distribution has no such folders. docs/decisions-packer.md has the reasons.
"""

from __future__ import annotations

import re
from email.parser import Parser
from pathlib import Path
from runpy import run_path
from typing import Any

from setuptools import build_meta

# Distribution -> folder in the checkout.
FOLDERS = {
    "dso-runtime": "runtime",
    "dso-packer": ".",
    "dso-packer-numba": "importers/numba",
    "dso-packer-onnx": "importers/onnx",
    "dso-packer-trees": "importers/trees",
}
# The distributions for whose wheel packer links a library.
_LINKED = ("dso-packer-trees",)
_REQUIREMENT = re.compile(r"^Requires-Dist: ([\w-]+)(\[\w+\])?==[^;\n]*(;?)", re.MULTILINE)
_CHECKOUT = Path(__file__).resolve().parents[1]

build_editable = build_meta.build_editable
build_sdist = build_meta.build_sdist
get_requires_for_build_editable = build_meta.get_requires_for_build_editable
get_requires_for_build_sdist = build_meta.get_requires_for_build_sdist
prepare_metadata_for_build_editable = build_meta.prepare_metadata_for_build_editable


def version() -> str:
    """Return the version of all distributions; a source distribution has it in its metadata."""
    if (checkout := _CHECKOUT / "runtime/runtime/abi.py").exists():
        return str(run_path(str(checkout))["__version__"])
    text = Path(__file__).with_name("PKG-INFO").read_text(encoding="utf-8")
    return Parser().parsestr(text)["Version"]


def get_requires_for_build_wheel(settings: Any = None) -> list[str]:
    """Return what a build needs: in the checkout also packer, for a wheel with a linked library."""
    required: list[str] = build_meta.get_requires_for_build_wheel(settings)
    folders = [(_CHECKOUT / FOLDERS[name]).resolve() for name in _LINKED]
    if Path.cwd().resolve() in folders:
        required.append(f"dso-packer @ {_CHECKOUT.as_uri()}")
    return required


def prepare_metadata_for_build_wheel(metadata_directory: str, settings: Any = None) -> str:
    """Write the metadata of the wheel, but with the paths of the distributions of the checkout."""
    name: str = build_meta.prepare_metadata_for_build_wheel(metadata_directory, settings)
    path = Path(metadata_directory, name, "METADATA")
    text = path.read_text(encoding="utf-8")
    if (_CHECKOUT / "tools/build_backend.py").exists():
        text = _REQUIREMENT.sub(_required, text)
    path.write_text(text, encoding="utf-8")
    return name


def _required(found: re.Match[str]) -> str:
    """Return a requirement with the folder of its distribution, if the checkout has it."""
    folder = _CHECKOUT / FOLDERS.get(found[1], "")
    if found[1] not in FOLDERS or not (folder / "pyproject.toml").exists():
        return found[0]
    name, end = f"{found[1]}{found[2] or ''}", " ;" if found[3] else ""
    return f"Requires-Dist: {name} @ {folder.resolve().as_uri()}{end}"


def build_wheel(wheel_directory: str, settings: Any = None, metadata_directory: Any = None) -> str:
    """Build the wheel, without the metadata that was prepared."""
    name: str = build_meta.build_wheel(wheel_directory, settings)
    return name

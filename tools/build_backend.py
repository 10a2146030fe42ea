"""The build backend of dso-packer: setuptools, and where a checkout has dso-runtime.

The wheel requires dso-runtime by its version. A frontend that asks before the build gets the path
of the folder dso_runtime instead, so that `pip install .` in a checkout needs no index for it. The
folder is missing in a source distribution. docs/design.md, "The distributions", has the reasons.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from setuptools import build_meta

RUNTIME = Path("dso_runtime")

build_editable = build_meta.build_editable
build_sdist = build_meta.build_sdist
get_requires_for_build_editable = build_meta.get_requires_for_build_editable
get_requires_for_build_sdist = build_meta.get_requires_for_build_sdist
get_requires_for_build_wheel = build_meta.get_requires_for_build_wheel
prepare_metadata_for_build_editable = build_meta.prepare_metadata_for_build_editable


def prepare_metadata_for_build_wheel(metadata_directory: str, settings: Any = None) -> str:
    """Write the metadata of the wheel, but with the path of dso-runtime where there is one."""
    name: str = build_meta.prepare_metadata_for_build_wheel(metadata_directory, settings)
    if RUNTIME.is_dir():
        path = Path(metadata_directory, name, "METADATA")
        required = f"Requires-Dist: dso-runtime @ {RUNTIME.resolve().as_uri()}"
        text = path.read_text(encoding="utf-8")
        pattern = "^Requires-Dist: dso-runtime==.*"
        path.write_text(re.sub(pattern, required, text, flags=re.MULTILINE), encoding="utf-8")
    return name


def build_wheel(wheel_directory: str, settings: Any = None, metadata_directory: Any = None) -> str:
    """Build the wheel, without the metadata that was prepared."""
    name: str = build_meta.build_wheel(wheel_directory, settings)
    return name

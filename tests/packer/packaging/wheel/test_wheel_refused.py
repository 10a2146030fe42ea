"""Wheels that are refused: wrong values, wrong files, and tags that a library cannot have."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import packer

from ....support import needs
from ....support.compile import compile_c
from .installation import fresh_environment, install


def test_library_that_needs_another_gets_it_from_auditwheel(tmp_path) -> None:
    """The wheel is for this system, and auditwheel makes one for others of it."""
    compile_c("int g(void) { return 41; }", tmp_path / "libg.so", "-Wl,-soname,libg.so")
    module = packer.CSourceModule("int g(void); int f(void) { return g() + 1; }", functions="auto")
    options = [f"-L{tmp_path}", "-lg"]
    path = packer.export_library(module, tmp_path / "a.so", options=options)
    notes: list[str] = []
    wheel = packer.write_wheel(path, tmp_path, name="needing", version="1", note=notes.append)
    assert "-py3-none-linux_" in wheel.name
    assert "needs libg.so, which not every system has" in notes[0]
    with pytest.raises(packer.ExportError, match="platform 'manylinux_2_28_x86_64': .*needs libg"):
        packer.write_wheel(
            path, tmp_path, name="needing", version="1", platform="manylinux_2_28_x86_64"
        )
    needs.importable("auditwheel", "test")
    command = [sys.executable, "-m", "auditwheel", "repair", "-w", tmp_path / "made", wheel]
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(tmp_path),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    subprocess.run(command, env=environment, check=True)
    (repaired,) = (tmp_path / "made").iterdir()
    assert "manylinux" in repaired.name
    python = fresh_environment(tmp_path / "venv")
    install(python, "--no-deps", repaired)


def test_platform_that_is_asked_for(library, tmp_path) -> None:
    """A newer one is possible, an older one is not, with the reason."""
    made = packer.write_wheel(
        library, tmp_path, name="geo", version="1", platform="manylinux_2_34_x86_64"
    )
    assert made.name == "geo-1-py3-none-manylinux_2_34_x86_64.whl"
    for tag in ("manylinux_2_34_aarch64", "musllinux_1_2_x86_64", "win_amd64"):
        with pytest.raises(packer.ExportError, match=f"platform '{tag}': expected libraries that"):
            packer.write_wheel(library, tmp_path, name="geo", version="1", platform=tag)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "-geo"}, "name: expected letters and digits, with . _ - between them, found"),
        ({"name": "2geo"}, "package: expected a Python identifier, found '2geo'; choose another"),
        ({"version": "one"}, "version: expected a version as 1.0 or 2.1.3, found 'one'"),
        ({"version": None}, "version: expected one, found none; give it, as in --version 1.0"),
        ({"license": "MITT"}, "license: expected an SPDX expression as MIT or Apache-2.0, found"),
        ({"requires": ["numpy >>1"]}, "requires: expected a requirement as numpy>=1.26, found"),
        ({"requires_python": "3.11"}, "requires_python: expected versions as >=3.11, found '3.11'"),
        ({"description": "a\nb"}, r"description: expected one line of printable text, found"),
        ({"license_files": ["none"]}, "none: there is no such file, expected that of the licence"),
        ({"include": ["none"]}, "none: there is no such file, expected one for the package"),
        ({"loaders": {"key": "place"}}, "loader of key: expected MODULE:FUNCTION as geo.palette:"),
        ({"package": "class"}, "package: expected a Python identifier, found 'class'; choose"),
    ],
)  # fmt: skip
def test_wrong_value_is_named(library, tmp_path, change, message) -> None:
    """And nothing is written."""
    values = {"name": "geo", "version": "1", **change}
    with pytest.raises(packer.ExportError, match=message):
        packer.write_wheel(library, tmp_path / "dist", **values)
    assert not (tmp_path / "dist").exists()


def test_files_that_are_no_libraries(library, tmp_path) -> None:
    """A text, a library twice, a name that cannot be imported."""
    text = tmp_path / "text.so"
    text.write_text("no library")
    with pytest.raises(packer.LibraryLoadError, match=r"text\.so"):
        packer.write_wheel(text, tmp_path, name="geo", version="1")
    with pytest.raises(packer.ExportError, match="libraries: expected at least one, found none"):
        packer.write_wheel([], tmp_path, name="geo", version="1")
    with pytest.raises(packer.ExportError, match="would be geo.model, as .*; rename one"):
        packer.write_wheel([library, library], tmp_path, name="geo", version="1")
    dashed = shutil.copyfile(library, tmp_path / "a-b.so")
    with pytest.raises(packer.ExportError, match="expected a Python identifier, found 'a-b'"):
        packer.write_wheel([library, dashed], tmp_path, name="geo", version="1")
    packer.write_wheel(dashed, tmp_path, name="geo", version="1")

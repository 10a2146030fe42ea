"""Importers of other packages, which register them as entry points."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

IMPORTER = """
import packer

def from_words(path, *, functions, only, options, libraries):
    names = path.read_text().split()
    code = "".join(f"int {name}(void) {{ return {len(name)}; }}" for name in names)
    return packer.CSourceModule(code, functions="auto")
"""
PROJECT = '[module.host]\nkind = "c"\nfunctions = { words = "names.txt" }\n'
RUN = """
import packer, runtime
project = packer.read_project("packer.toml")
loaded = runtime.load(packer.export_library(project.root, "out.so"))
print(loaded["three"](), loaded["seven"]())
"""


def test_a_key_of_another_package_names_its_importer(tmp_path: Path) -> None:
    """Installed like any package: a file and its metadata in a folder of sys.path."""
    (tmp_path / "words_importer.py").write_text(IMPORTER)
    metadata = tmp_path / "words_importer-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: words-importer\nVersion: 1.0\n"
    )
    entry = "[dso_packer.importers]\nwords = words_importer:from_words\n"
    (metadata / "entry_points.txt").write_text(entry)
    (tmp_path / "packer.toml").write_text(PROJECT)
    (tmp_path / "names.txt").write_text("three seven")
    start = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
    run = subprocess.run(
        [sys.executable, "-P", "-c", start + RUN], cwd=tmp_path, capture_output=True, text=True
    )
    assert (run.stdout, run.stderr, run.returncode) == ("5 5\n", "", 0)

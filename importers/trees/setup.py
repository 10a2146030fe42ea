"""The version and dependencies of dso-packer-trees, and the objects of its wheel.

A wheel that is built in a checkout has the C code of support/ as objects, one for each CPU level of
this machine, so that exports for such machines do not compile it. pyproject.toml has the rest.
"""

import os
import platform
import shutil
import subprocess
from pathlib import Path
from runpy import run_path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

from build_backend import version

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
INCLUDE = [ROOT / "runtime/include", ROOT / "packer/operators"]
COMPILER = os.environ.get("CC", "cc")
# As program.py and packer compile; -U: the object must link with any C library.
OPTIONS = ["-O3", "-ffp-contract=off", "-fPIC", "-U_FORTIFY_SOURCE", "-fvisibility=hidden"]


def has_objects():
    """Return True if this checkout can compile, for a system with glibc."""
    found = all(folder.exists() for folder in INCLUDE) and shutil.which(COMPILER)
    return bool(found) and platform.libc_ver()[0] == "glibc"


class BuildObjects(build_py):
    """Compile support/*.c for each level into the package of the wheel."""

    def run(self):
        super().run()
        if has_objects() and not self.editable_mode:
            package = Path(self.build_lib, "dso_packer_trees")
            folder = package / "objects"
            folder.mkdir(parents=True, exist_ok=True)
            for source in sorted((package / "support").glob("*.c")):
                self.make_objects(source, folder)

    def make_objects(self, source, folder):
        """Write ``<source>-<level>.o`` for each level."""
        table = run_path(str(ROOT / "packer/levels/table.py"))
        levels = table["levels_of"](os.uname().machine)
        include = [f"-I{path}" for path in INCLUDE]
        for level in (levels[name] for name in table["DEFAULT_LEVELS"] if name in levels):
            output = folder / f"{source.stem}-{level.name}.o"
            command = [COMPILER, *OPTIONS, *level.options, *include, "-c", source.name]
            names = [f"-ffile-prefix-map={ROOT}=.", "-o", output.resolve()]
            subprocess.run([*command, *names], cwd=source.parent, check=True)


class Wheel(bdist_wheel):
    """With objects the wheel is for this machine, and for any Python."""

    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = not has_objects()

    def get_tag(self):
        if not has_objects():
            return super().get_tag()
        return "py3", "none", f"manylinux_2_17_{os.uname().machine}"


setup(
    version=version(),
    install_requires=[f"dso-packer=={version()}", "numpy>=1.26"],
    cmdclass={"build_py": BuildObjects, "bdist_wheel": Wheel},
)

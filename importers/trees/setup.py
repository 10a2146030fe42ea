"""The version and dependencies of dso-packer-trees, and the objects of its wheel.

A wheel that is built in a checkout has the C code of support/ as objects, one for each CPU level of
this machine, and linked by packer, so that exports for such machines compile nothing.
pyproject.toml has the rest.
"""

import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from runpy import run_path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

from build_backend import version

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
INCLUDE = [ROOT / "runtime/include", ROOT / "packer/operators"]
COMPILER = os.environ.get("CC", "cc")
# As code.py and packer compile; -U: the object must link with any C library.
OPTIONS = ["-O3", "-ffp-contract=off", "-fPIC", "-U_FORTIFY_SOURCE", "-fvisibility=hidden"]


def has_objects():
    """Return True if this checkout can compile, for a system with glibc."""
    found = all(folder.exists() for folder in INCLUDE) and shutil.which(COMPILER)
    return bool(found) and platform.libc_ver()[0] == "glibc"


def has_packer():
    """Return True if packer of the same version can be imported: build_backend.py asks for it."""
    try:
        return importlib.metadata.version("dso-packer") == version()
    except importlib.metadata.PackageNotFoundError:
        return False


class BuildObjects(build_py):
    """Compile support/*.c for each level into the package of the wheel, and link it."""

    def run(self):
        super().run()
        if has_objects() and not self.editable_mode:
            package = Path(self.build_lib, "dso_packer_trees")
            folder = package / "objects"
            folder.mkdir(parents=True, exist_ok=True)
            for source in sorted((package / "support").glob("*.c")):
                self.make_objects(source, folder)
            (folder / "trees.so").unlink(missing_ok=True)  # of an older build
            if has_packer():
                sys.path.insert(0, str(package.parent.resolve()))
                from dso_packer_trees.code import prelink

                prelink(folder / "trees.so")

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


class Project(Distribution):
    """With objects the wheel is for this machine."""

    def has_ext_modules(self):
        return has_objects()


class Wheel(bdist_wheel):
    """The wheel is for any Python."""

    def get_tag(self):
        if not has_objects():
            return super().get_tag()
        built = Path(self.get_finalized_command("build_py").build_lib)
        return "py3", "none", platform_tag(built / "dso_packer_trees/objects/trees.so")


def platform_tag(library):
    """Return the tag that packer measures of the library; objects need no version of glibc."""
    if not (has_packer() and library.exists()):
        return f"manylinux_2_17_{os.uname().machine}"
    from packer.packaging.wheel import platform_of

    return ".".join(platform_of([library]).tags)


setup(
    distclass=Project,
    version=version(),
    install_requires=[f"dso-packer=={version()}", "numpy>=1.26"],
    cmdclass={"build_py": BuildObjects, "bdist_wheel": Wheel},
)

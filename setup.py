"""The dependencies of dso-packer; everything else is said in pyproject.toml."""

import runpy

from setuptools import setup

version = runpy.run_path("runtime/abi.py")["__version__"]

# The packer imports all but the first only where it uses them.
REQUIRED = [
    f"dso-runtime=={version}",
    "llvmlite>=0.45",
    "packaging>=24.2",
    "pycparser>=3.12,<4",
    "pyelftools>=0.31",
]

setup(install_requires=REQUIRED)

"""The dependencies of dso-packer; everything else is said in pyproject.toml."""

import runpy

from setuptools import setup

version = runpy.run_path("runtime/abi.py")["__version__"]

# The packer imports llvmlite and pyelftools only where it uses them.
setup(install_requires=[f"dso-runtime=={version}", "llvmlite>=0.45", "pyelftools>=0.31"])

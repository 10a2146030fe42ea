"""The version and dependencies of dso-packer-numba; pyproject.toml has everything else."""

from email.parser import Parser
from pathlib import Path
from runpy import run_path

from setuptools import setup

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[1] / "runtime/abi.py"

# A source distribution has its version in its metadata.
if CHECKOUT.exists():
    version = run_path(str(CHECKOUT))["__version__"]
else:
    version = Parser().parsestr((HERE / "PKG-INFO").read_text(encoding="utf-8"))["Version"]

# The releases of Numba: dso_packer_numba/versions.py.
setup(version=version, install_requires=[f"dso-packer=={version}", "numba>=0.67,<0.69"])

"""The version and dependencies of dso-packer-numba; pyproject.toml has everything else."""

from setuptools import setup

from build_backend import version

# The releases of Numba: dso_packer_numba/versions.py.
setup(version=version(), install_requires=[f"dso-packer=={version()}", "numba>=0.67,<0.69"])

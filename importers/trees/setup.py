"""The version and dependencies of dso-packer-trees; pyproject.toml has everything else."""

from setuptools import setup

from build_backend import version

setup(version=version(), install_requires=[f"dso-packer=={version()}", "numpy>=1.26"])

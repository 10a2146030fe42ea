"""Hooks for projects that build their own wheels: an export within the build, and the wheel's tag.

    [tool.dso-packer]                                  # setuptools, in pyproject.toml
    libraries = {"geo/model.so" = "packer.toml"}

    setup(dso_packer={"geo/model.so": "packer.toml"})  # setuptools, in setup.py

    [tool.hatch.build.hooks.dso-packer]                # hatch
    libraries = {"geo/model.so" = "packer.toml"}

Each entry is a library by its path in the wheel, and the project file that it is exported from. The
builders import these files by entry points of the distribution; they need nothing of packer until
a project names a library.
"""

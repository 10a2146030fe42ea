"""Make one shared library of a tree of modules.

>>> import packer, runtime
>>> code = "long add(long a, long b) { return a + b; }"
>>> module = packer.CSourceModule(code, functions={"add": "long(long a, long b)"})
>>> path = packer.export_library(module, "add.so")
>>> runtime.load(path)["add"](40, 2)
42
"""

from __future__ import annotations

import sys
from typing import Any

# Names beside `from_<kind>` that an importer defines, with its kind.
_OF_IMPORTERS = {"NumbaModule": "numba"}


def _error_of_runtime(error: Exception) -> Exception:
    """Return what to do about the package runtime: it is missing, or another file hides it."""
    import os
    from importlib.util import find_spec

    spec = find_spec("runtime")
    if spec is None:
        text = (
            "packer: found no package runtime, expected the one of dso-runtime: run pip install "
            "again, which installs it with dso-packer (pip install . in a checkout)"
        )
        return ModuleNotFoundError(text, name="runtime")
    folders = list(spec.submodule_search_locations or ())
    if any(os.path.exists(os.path.join(folder, "public_names.py")) for folder in folders):
        return error  # it is the one of dso-runtime
    found = spec.origin or folders[0]
    text = (
        f"packer: import runtime found {found!r}, expected the package runtime of dso-runtime: "
        f"rename that file or folder, or run Python with another first entry of sys.path"
    )
    return ImportError(text, name="runtime", path=found)


try:
    from runtime import __version__ as __version__
    from runtime.public_names import import_public
except Exception as error:  # a user's runtime.py may raise anything
    raise _error_of_runtime(error) from None


# __init__.pyi lists the public names. Each is imported on first use: --help and an export of C
# need neither llvmlite nor the modules that inspect.
def __getattr__(name: str) -> Any:
    try:
        return import_public(__name__, name)
    except AttributeError:
        kind = _OF_IMPORTERS.get(name) or name.removeprefix("from_")
        if kind == name:
            raise
        from .project.registry import advice, find

        if (importer := find(kind)) is not None:
            make = importer.function()
            return getattr(sys.modules[make.__module__], name, make)
        if text := advice(kind):
            raise ModuleNotFoundError(f"packer.{name} {text}", name=name) from None
        raise


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})

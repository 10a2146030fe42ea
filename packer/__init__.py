"""Make one shared library of a tree of modules.

>>> import packer, runtime
>>> code = "long add(long a, long b) { return a + b; }"
>>> module = packer.CSourceModule(code, functions={"add": "long(long a, long b)"})
>>> path = packer.export_library(module, "add.so")
>>> runtime.load(path)["add"](40, 2)
42
"""

from __future__ import annotations

from typing import Any

try:
    from runtime import __version__ as __version__
except ModuleNotFoundError as error:
    if error.name != "runtime":
        raise
    raise ModuleNotFoundError(
        "packer: found no package runtime, expected the one of dso-runtime: run pip install again, "
        "which installs it with dso-packer (pip install . in a checkout)",
        name=error.name,
    ) from None
from runtime.public_names import import_public


# __init__.pyi lists the public names. Each is imported on first use: --help and an export of C
# need neither llvmlite nor the modules that inspect.
def __getattr__(name: str) -> Any:
    return import_public(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})

"""Load packed libraries, and build and serialise module trees. Needs no other package.

>>> import runtime
>>> runtime.load("model.so")["add"](40, 2)  # doctest: +SKIP
42
"""

from __future__ import annotations

from .abi import __version__ as __version__
from .load import load as load
from .load import load_from_bytes
from .module import Module as Module
from .module import upper_floors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


# __init__.pyi lists the public names. Each is imported on first use, so that a fresh process loads
# a library in milliseconds.
def __getattr__(name: str) -> Any:
    from .public_names import import_public

    if name in ("torch", "dump_params", "parse_params"):
        return _unlisted(name)
    try:
        return import_public(__name__, name)
    except AttributeError:
        modules = import_public(__name__, "modules")
        if name not in modules.__all__:
            raise
        return getattr(modules, name)


def _unlisted(name: str) -> Any:
    """Import what needs PyTorch, or what 0.1.0 listed: `packer extract` wrote these names."""
    if name == "torch":
        return __import__(f"{__name__}.torch", fromlist=["torch"])
    from .tensors import params

    return getattr(params, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})


def _imported_lazily(file: str, name: str) -> Callable[..., Any]:
    """Make a function that imports another one when it is called."""

    def call(*args: Any) -> Any:
        return getattr(__import__(f"{__name__}.{file}", fromlist=[name]), name)(*args)

    return call


def _packer(name: str, what: str) -> Any:
    """Import a module of packer, which runtime never imports otherwise."""
    try:
        return __import__(name, fromlist=["__name__"])
    except ImportError as error:
        text = f"{what}, which needs the packages of packer: pip install dso-packer ({error})"
        raise __getattr__("PackerError")(text) from error


def _export_library(*args: Any, **options: Any) -> Any:
    """Export a tree; see `Module.export_library`."""
    return _packer("packer", "export_library compiles").export_library(*args, **options)


def _wrap_functions(*args: Any) -> Any:
    """Compile a library that calls C functions by their addresses; see `load`."""
    what = "load(functions={...}) compiles"
    return _packer("packer.modules.foreign", what).wrap_functions(*args)


upper_floors.update(
    copy_module=_imported_lazily("interchange", "copy_module"),
    export_library=_export_library,
    load_from_bytes=load_from_bytes,
    make_session=_imported_lazily("session", "Session"),
    reduce_module=_imported_lazily("interchange", "reduce_module"),
    wrap_functions=_wrap_functions,
)

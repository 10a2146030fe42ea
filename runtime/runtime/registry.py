"""Registries: loaders by type key, and global functions by name."""

from __future__ import annotations

from ._core import built_in_function, built_in_names, tree_changed
from .error import FunctionNotFoundError, LoaderNotFoundError, near_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.metadata import EntryPoint
    from typing import Any, TypeVar, overload

    from ._core import Reader
    from .module import Module

    Loader = Callable[[Reader], Module]
    L = TypeVar("L", bound=Callable[[Any], Any])
    F = TypeVar("F", bound=Callable[..., Any])
else:

    def overload(function):
        """For type checkers; typing itself is not imported."""
        return function


ENTRY_POINT_GROUP = "dso_packer.loaders"

# The file of runtime/modules for each of our type keys. It is imported on first use, and its
# decode(reader, type_key) reads a payload that the core accepted.
_FAMILIES = {
    "device": (
        *("cuda", "opencl", "hip", "hsaco", "hexagon", "aocl", "sdaccel"),
        *("metal", "vulkan", "webgpu"),
    ),
    "const_loader": ("const_loader", "metadata"),
    "metadata": ("metadata_module",),
    "graph_executor": ("GraphExecutorFactory", "GraphRuntimeFactory", "AotExecutorFactory"),
    "safetensors": ("safetensors",),
    "shared_library": ("shared_library",),
    "source": ("c", "static_library"),
    "vm": ("relax.VMExecutable", "relax.Executable"),
}
_FAMILY_OF = {key: family for family, keys in _FAMILIES.items() for key in keys}
# Type keys without a loader in libdso, which has no cryptography.
_ONLY_HERE = {"encrypted": "encrypted"}

_loaders: dict[str, Loader] = {}
_decoders: dict[str, Callable[[Reader, str], Module]] = {}
_offers: dict[str, EntryPoint] | None = None  # of installed packages, after the first query
_functions: dict[str, Callable[..., Any]] = {}  # registered; the core has others


def register_loader(type_key: str, *aliases: str) -> Callable[[L], L]:
    """Register the decorated function as the loader of a type key.

    Parameters
    ----------
    type_key : str
        The key of the payload in a blob.
    *aliases : str
        Further keys with the same payload.

    Returns
    -------
    callable
        A decorator. The loader takes a `Reader` at the start of the payload, must read exactly
        the payload, and returns the Module.

    Raises
    ------
    TypeError
        A key is not a str: the decorator was used without a name.
    ValueError
        A key already has a loader.

    Examples
    --------
    >>> import runtime
    >>> class Note(runtime.Module):
    ...     type_key = "doc.note"
    ...     property_mask = runtime.ModuleProperty.BINARY_SERIALIZABLE
    ...     def __init__(self, text):
    ...         self.text = text
    ...     def save_to_binary(self, writer):
    ...         writer.write_string(self.text)
    >>> @runtime.register_loader("doc.note")
    ... def load_note(reader):
    ...     return Note(reader.read_string())
    >>> data = runtime.serialize_module_to_bytes(Note("hello"))
    >>> runtime.deserialize_module_from_bytes(data).text
    'hello'
    """
    for key in (type_key, *aliases):
        _check_name(key, "register_loader")

    def register(loader: L) -> L:
        for key in (type_key, *aliases):
            if key in _loaders or key in _FAMILY_OF or key in _ONLY_HERE:
                raise ValueError(f"type key {key!r} already has a loader")
            _loaders[key] = loader
        return loader

    return register


def _check_name(name: object, decorator: str) -> None:
    """Refuse a bare ``@register_func``: it would replace the function by a decorator."""
    if not isinstance(name, str):
        raise TypeError(f"{decorator} takes a name: @{decorator}('name'), found {name!r}")


def find_loader(type_key: str) -> Loader:
    """Return the loader of a type key; import the module that provides it.

    Raises LoaderNotFoundError if none is registered, and no installed package offers one.
    """
    loader = _loaders.get(type_key) or _own_loader(type_key) or _entry_point_loader(type_key)
    if loader is None:
        known = known_type_keys()
        raise LoaderNotFoundError(
            f"module type {type_key!r} has no loader here; known: {', '.join(known)}. Install the "
            f"package that provides it, or register one with runtime.register_loader",
            type_key=type_key,
            known=known,
        )
    return _loaders.setdefault(type_key, loader)


def known_type_keys() -> tuple[str, ...]:
    """The type keys that can be loaded, except keys of entry points that are not loaded yet."""
    return tuple(sorted({*_loaders, *_FAMILY_OF, *_ONLY_HERE, "_lib", "*_json"}))


def has_loader(type_key: str) -> bool:
    """Return True if a type key has a loader; entry points of packages are not queried."""
    return type_key in _loaders or type_key in _ONLY_HERE or is_own_type(type_key)


def is_own_type(type_key: str) -> bool:
    """Return True if this package and libdso have a loader for a type key."""
    return type_key in _FAMILY_OF or type_key.endswith("_json")


def decode(reader: Reader, type_key: str) -> Module:
    """Make the module of one of our types, from a payload that the core accepted."""
    if type_key not in _decoders:
        family = _FAMILY_OF.get(type_key) or _ONLY_HERE.get(type_key, "json_runtime")
        file = __import__(f"{__package__}.modules.{family}", fromlist=["decode"])
        _decoders[type_key] = file.decode
    return _decoders[type_key](reader, type_key)


def _own_loader(type_key: str) -> Loader | None:
    if type_key in _ONLY_HERE:
        return lambda reader: decode(reader, type_key)
    if is_own_type(type_key):
        return lambda reader: decode(reader.accepted(type_key), type_key)
    return None


def _entry_point_loader(type_key: str) -> Loader | None:
    global _offers
    offers = _offers
    if offers is None:
        from importlib.metadata import entry_points

        points = tuple(entry_points(group=ENTRY_POINT_GROUP))
        _offers = offers = {point.name: point for point in reversed(points)}
    if type_key not in offers:
        return None
    loader: Loader = offers[type_key].load()
    return loader


def forget_offers() -> None:
    """Query installed packages again for the next missing loader; that takes milliseconds.

    One load queries them once at most, and the next load finds packages installed in between.
    """
    global _offers
    _offers = None


@overload
def register_func(name: str, *, override: bool = False) -> Callable[[F], F]: ...  # noqa: D103
@overload
def register_func(name: str, function: F, *, override: bool = False) -> F: ...  # noqa: D103, F811
def register_func(  # noqa: F811
    name: str, function: Callable[..., Any] | None = None, *, override: bool = False
) -> Any:
    """Register a function under a global name: the one given, or the decorated one.

    Parameters
    ----------
    name : str
        The name for `get_global_func`.
    function : callable, optional
        The function; without it `register_func` is a decorator.
    override : bool
        True to replace an earlier function of this name. One that every program has is replaced
        without it.

    Returns
    -------
    callable
        The function; or a decorator, if none was given.

    Raises
    ------
    TypeError
        The name is not a str: the decorator was used without a name; or the function cannot be
        called.
    ValueError
        The name is registered, and `override` is false.

    Examples
    --------
    >>> import runtime
    >>> @runtime.register_func("doc.twice")
    ... def twice(x):
    ...     return 2 * x
    >>> runtime.get_global_func("doc.twice")(21)
    42
    >>> runtime.register_func("doc.half", lambda x: x / 2)(21)
    10.5
    """
    _check_name(name, "register_func")

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        if name in _functions and not override:
            raise ValueError(
                f"global function {name!r} is already registered; override=True replaces it"
            )
        _functions[name] = function
        tree_changed()
        return function

    if function is None:
        return register
    if not callable(function):
        raise TypeError(f"register_func({name!r}): expected a callable, found {function!r}")
    return register(function)


def find_global_func(name: str) -> Callable[..., Any] | None:
    """Return the global function of this name, or None: a registered one, or one of the core."""
    function = _functions.get(name)
    return function if function is not None else built_in_function(name)


def near_functions(name: str, known: list[str]) -> str:
    """The end of a not-found message: similar functions, or some of `known` and registered ones."""
    return near_names(name, known + list(_functions), built_in_names())


def get_global_func(name: str) -> Callable[..., Any]:
    """Return the global function of this name.

    Raises
    ------
    FunctionNotFoundError
        No function of this name is registered.
    """
    function = find_global_func(name)
    if function is None:
        text = f"no global function {name!r} is registered" + near_functions(name, [])
        raise FunctionNotFoundError(text, name=name, module="global")
    return function


def list_global_func_names() -> list[str]:
    """List the names of all global functions, sorted."""
    return sorted({*_functions, *built_in_names()})

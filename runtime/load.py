"""load(path): from a file, or its bytes, to its module tree, in one straight line."""

from __future__ import annotations

import os
from _thread import RLock
from _weakref import _remove_dead_weakref, ref  # type: ignore[attr-defined]

from ._core import Library
from .library import LibraryModule, tree_of
from .module import preorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Buffer

    from .module import Module

FileKey = tuple[int, int, int, int]

# The root of every file that is loaded and still in use. One parse per file: loads take turns.
_roots: dict[FileKey, ref[Module]] = {}
_lock = RLock()


# By their suffixes: what is no library. A set, so that a library's load imports nothing for it.
_LONE_FILES = {
    *(".ptx", ".cubin", ".fatbin", ".cl", ".clbin", ".spv", ".hsaco"),
    *(".params", ".safetensors"),
}


def load(
    path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
    *,
    functions: Mapping[str, str] | None = None,
) -> Module:
    """Load a packed library, or a lone file of device code or weights.

    Parameters
    ----------
    path : path
        The file; a relative name means the current directory, never the library search path.
    functions : mapping of str to str, optional
        C functions that the library does not declare, and what they are. The one value is
        ``"packed"``: a packed C function, TVM's convention up to 2025. A function of any other
        type crashes the process when it is called so. A function that the library declares itself
        stays as it is.

    Returns
    -------
    Module
        The root of its tree. A plain shared library gives a `LibraryModule` without imports. A
        file whose suffix says that it is device code (``.ptx``, ``.cubin``, ``.fatbin``, ``.cl``,
        ``.clbin``, ``.spv``, ``.hsaco``) gives a `DeviceModule`, with the kernels that
        ``<name>.tvm_meta.json`` beside it tells, or else the code itself; ``.params`` a
        `ConstLoaderModule`, ``.safetensors`` a `SafetensorsModule`.

    Raises
    ------
    LibraryLoadError
        The file is no shared library for this machine, is damaged, or needs what is not there.
        It is checked before any of its code runs. Reason ``"busy"``: another file took its place
        as it was opened; load it again.
    BlobFormatError
        Its blob, or the lone file, is malformed.
    LoaderNotFoundError
        Its blob holds a type without a loader, and no manifest to step over it.
    FunctionNotFoundError
        `functions` names one that the library does not have.
    ValueError
        A value of `functions` is not ``"packed"``, or the file is not a library.

    Notes
    -----
    The same file (device, inode, size, mtime) gives the same Module for as long as that is in
    use, with all functions that any load of it declared; a new file under an old path gives new
    code. The file stays open until the modules, their functions and all views of them are gone.
    Loading runs the library's constructors: what they do cannot be helped here, and
    `packer inspect` lists them beforehand. A file that is overwritten in place while it is loaded
    breaks whoever uses it: replace it by a rename. Threads may load at once.

    Examples
    --------
    >>> runtime.load("model.so")["add"](40, 2)  # doctest: +SKIP
    42
    """
    name = os.fspath(path)
    packed = _packed_names(functions or {})
    if os.path.splitext(text := os.fsdecode(name))[1] in _LONE_FILES:
        from .lone_files import load_file

        if packed:
            raise ValueError(f"{text}: functions: expected a library, found a lone file")
        return load_file(text)
    with _lock:
        root = _resident(name) or _open(name)
        if packed:
            _declare(root, packed)
        return root


def _packed_names(functions: Mapping[str, str]) -> list[str]:
    for name, kind in functions.items():
        if kind != "packed":
            raise ValueError(f"functions: {name!r}: expected 'packed', found {kind!r}")
    return list(functions)


def _declare(root: Module, names: list[str]) -> None:
    """Declare functions of the library that the tree was loaded from, wherever it stands there."""
    library = root._loaded_from
    for module in preorder(root):
        if isinstance(module, LibraryModule) and module._library is library:
            module.declare_packed(names)
            return
    text = f"{root!r}: functions: expected host code in its tree, found none"
    raise ValueError(text)


def load_from_bytes(data: Buffer, *, allow_file: bool = False) -> Module:
    """Load a packed library from its bytes.

    Parameters
    ----------
    data : buffer
        The bytes of the file: C-contiguous; copied once, into memory that cannot be changed.
    allow_file : bool
        Whether to load a private file instead, if the system has no sealed files in memory, or
        does not run code from them. It is in the folder for temporary files, and is removed at
        once. Nothing seals it: another process of the same user could change what was checked.

    Returns
    -------
    Module
        The root of its tree. Equal bytes give the same Module for as long as that is in use, also
        if it was loaded from a file that has not changed since.

    Raises
    ------
    LibraryLoadError, BlobFormatError, LoaderNotFoundError
        As `load` does; or if the bytes cannot be loaded from memory.

    Notes
    -----
    Its code runs, so the bytes must come from someone you trust. They are checked as a file is. A
    library that looks for others beside itself (``$ORIGIN``) does not find them.

    Examples
    --------
    >>> data = open("model.so", "rb").read()  # doctest: +SKIP
    >>> runtime.load_from_bytes(data)["add"](40, 2)  # doctest: +SKIP
    42
    """
    view = memoryview(data).cast("B").toreadonly()
    with _lock:
        return _resident_bytes(view) or _open_bytes(view, allow_file)


def _resident_bytes(data: memoryview) -> Module | None:
    from .serial.library_file import has_bytes

    roots = [root for known in list(_roots.values()) if (root := known()) is not None]
    found = (
        root
        for root in roots
        if root._loaded_from is not None and has_bytes(root._loaded_from, data)
    )
    return next(found, None)


def _open_bytes(data: memoryview, allow_file: bool) -> Module:
    from .serial.library_file import open_bytes

    return _root_of(open_bytes(data, allow_file=allow_file))


def _resident(path: str | bytes) -> Module | None:
    try:
        stat = os.stat(path)
    except (OSError, ValueError):
        return None  # opening it says what is wrong
    root = _roots.get((stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns))
    return root() if root is not None else None


def _open(path: str | bytes) -> Module:
    return _root_of(Library(path))


def _root_of(library: Library) -> Module:
    root = tree_of(library, LibraryModule(library))
    root._loaded_from = library
    _remember(library.key, root)
    return root


def _remember(key: FileKey, root: Module) -> None:
    def forget(_gone: ref[Module]) -> None:
        # At once: between a look and a deletion another thread may have put its module there.
        _remove_dead_weakref(_roots, key)

    _roots[key] = ref(root, forget)


def _after_fork() -> None:
    """A thread of the parent may have held the lock; it does not exist in the child."""
    global _lock
    _lock = RLock()


os.register_at_fork(after_in_child=_after_fork)

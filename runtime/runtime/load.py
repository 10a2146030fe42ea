"""Load a file, or its bytes, as a module tree. One file, since both share the table of roots."""

from __future__ import annotations

import os
import sys
from _collections_abc import Mapping  # collections.abc, without the package around it
from _thread import RLock
from _weakref import _remove_dead_weakref, ref  # type: ignore[attr-defined]

from ._core import Library, has_variable
from .lazy_tree import tree_of
from .library import LibraryModule, with_key
from .module import preorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    from typing_extensions import Buffer

    from .module import Module
    from .trust.encryption.keys import KeySource
    from .trust.encryption.use import Use
    from .trust.rule import Trust

FileKey = tuple[int, int, int, int]

# The root of every loaded file that is in use. The lock makes sure that a file is parsed once.
_roots: dict[FileKey, ref[Module]] = {}
_lock = RLock()

_VARIABLE = "DSO_TRUST"
_POLICY = f"{__package__}.trust.policy"
_HARDENING = f"{__package__}.trust.hardening"

# Suffixes of files that are not libraries; here, so that loading a library imports no table.
_LONE_FILES = {
    *(".ptx", ".cubin", ".fatbin", ".cl", ".clbin", ".spv", ".hsaco"),
    *(".params", ".safetensors"),
}


def load(
    path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
    *,
    functions: Mapping[str, Any] | None = None,
    trust: Trust | None = None,
    weights: Literal["map", "copy"] = "map",
    key: KeySource | None = None,
) -> Module:
    """Load a packed library, or a standalone file of device code or weights.

    Parameters
    ----------
    path : path
        The file; a relative name means the current directory, never the library search path.
    functions : mapping of str to str or mapping, optional
        C functions that the library does not declare, and their C types: ``{"cos": "double(double
        x)"}``, or the options of `packer.FunctionDeclaration`. A small library that calls them is
        compiled, which needs packer and a C compiler. Nothing compares these types with the code:
        a call with a wrong one may crash. ``"packed"`` is a TVM packed C function of up to 2025,
        and needs no compiler. The library's own declarations take precedence.
    trust : Trust, optional
        What the file must prove before its code runs: ``runtime.Trust.keys("acme.pub")``. It is
        copied to sealed memory, and the copy is verified and loaded. The policy of the process
        (`set_trust_policy`, DSO_TRUST) is asked besides.
    weights : {"map", "copy"}
        Under a rule: ``"map"`` leaves the weights in the file if they have a separate segment,
        as packer writes it, and verifies each one with the signature's hash tree when it is first
        used; who may write to the file can change them later. ``"copy"`` copies and verifies the
        whole file, as a rule without a signature always does. A load without a rule maps them.
    key : path, str, bytes or callable, optional
        The key of encrypted modules: a key file, ``"env:NAME"``, the PKCS #11 URI of a key on a
        token, 32 bytes, or ``key(key_id)``, which returns one of these.

    Returns
    -------
    Module
        The root of its tree. A plain shared library gives a `LibraryModule` without imports. Device
        code (``.ptx``, ``.cubin``, ``.fatbin``, ``.cl``, ``.clbin``, ``.spv``, ``.hsaco``) gives a
        `DeviceModule`; its kernels are read from ``<name>.tvm_meta.json`` beside it, or else from
        the code. ``.params`` gives a `ConstLoaderModule`, ``.safetensors`` a `SafetensorsModule`.

    Raises
    ------
    LibraryLoadError
        The file is not a shared library for this machine, is damaged, or needs a library that is
        missing. It is checked before its code runs. Reason ``"busy"``: the file was replaced during
        8 attempts to open it within a second; load it again.
    BlobFormatError
        Its blob, or the standalone file, is malformed.
    LoaderNotFoundError
        Its blob contains a type without a loader, and the library has no manifest.
    FunctionNotFoundError
        The library has no function of a name in `functions`.
    ExportError, ToolchainError
        A C type in `functions` cannot be declared, or there is no compiler.
    VerifyError
        The file, or one that it needs, does not prove what `trust` or the policy asks for. A
        mapped weight raises it when it is used.
    EncryptionError
        Its encrypted modules need a key, or another one, or they were changed.
    ValueError
        `functions` is given, and the file is not a library. `weights` is another word, or "copy"
        without `trust` and without a policy.
    TypeError
        `functions` is not a mapping.

    Notes
    -----
    While a Module is in use, its file (device, inode, size, mtime) gives the same Module, with the
    functions that any load of it declared; a new file at the same path gives new code. The file
    stays open until its modules, their functions and all views of them are freed. Loading runs
    the constructors of the library; `packer inspect` lists them. Never overwrite a loaded file in
    place: its users would crash. Replace it by a rename. Threads may load at the same time.

    Examples
    --------
    >>> runtime.load("model.so")["add"](40, 2)  # doctest: +SKIP
    42
    """
    if key is not None:
        with _using(key):
            return load(path, functions=functions, trust=trust, weights=weights)
    name = os.fspath(path)
    if not isinstance(functions, Mapping | None):
        raise TypeError(f"functions: expected a mapping of names to C types, found {functions!r}")
    if os.path.splitext(text := os.fsdecode(name))[1] in _LONE_FILES:
        from .device.standalone_files import load_file

        if functions:
            raise ValueError(f"{text}: functions: expected a library, found a standalone file")
        return load_file(text, _verified_bytes(text, trust) if _is_asked(trust, weights) else None)
    with _lock:
        if _is_asked(trust, weights) or _is_hardened():
            root = _open_verified(text, trust, weights)
        else:
            root = _resident(name) or _root_of(Library(name))
        if functions:
            _declare(root, functions)
        return root


def _declare(root: Module, functions: Mapping[str, Any]) -> None:
    """Declare functions of the library that the tree was loaded from."""
    typed = {name: given for name, given in functions.items() if given != "packed"}
    library = root._loaded_from
    for module in preorder(root):
        if isinstance(module, LibraryModule) and module._library is library:
            module.declare_packed([name for name in functions if name not in typed])
            module.declare(typed)
            return
    text = f"{root!r}: functions: expected host code in its tree, found none"
    raise ValueError(text)


def load_from_bytes(
    data: Buffer,
    *,
    allow_file: bool = False,
    trust: Trust | None = None,
    key: KeySource | None = None,
) -> Module:
    """Load a packed library from its bytes.

    Parameters
    ----------
    data : buffer
        The bytes of the file: C-contiguous; copied once, into sealed memory.
    allow_file : bool
        True to load a private file instead, if the system has no sealed files in memory, or
        refuses to run code from them. It is stored in the folder for temporary files, and removed
        immediately. It is not sealed: a process of the same user could change it after the check.
    trust : Trust, optional
        As `load` takes it; a signature must be inside the library. Nothing else than sealed memory
        is used then.
    key : path, str, bytes or callable, optional
        The key of its encrypted modules, as `load` takes it.

    Returns
    -------
    Module
        The root of its tree. Equal bytes give the same Module while it is in use, also if it was
        loaded from a file that has not changed, unless its weights were mapped under a rule.

    Raises
    ------
    LibraryLoadError, BlobFormatError, LoaderNotFoundError, EncryptionError
        As `load` does; also if the bytes cannot be loaded from memory.
    VerifyError
        The bytes do not prove what `trust` or the policy asks for.

    Notes
    -----
    Its code runs, so load trusted bytes only. They are checked as a file is. A library that needs
    others in its own folder (``$ORIGIN``) does not find them.

    Examples
    --------
    >>> data = open("model.so", "rb").read()  # doctest: +SKIP
    >>> runtime.load_from_bytes(data)["add"](40, 2)  # doctest: +SKIP
    42
    """
    if key is not None:
        with _using(key):
            return load_from_bytes(data, allow_file=allow_file, trust=trust)
    view = memoryview(data).cast("B").toreadonly()
    with _lock:
        if _is_asked(trust) or _is_inside_verified() or _is_hardened():
            return _open_verified(view, trust, "copy")
        return _resident_bytes(view) or _open_bytes(view, allow_file)


def _is_asked(trust: Trust | None, weights: str = "map") -> bool:
    """Return True if a file must be verified: by the caller, or by the policy of the process."""
    is_asked = _has_rule(trust)
    if weights != "map" and not (weights == "copy" and is_asked):
        found = f"found {weights!r}" if weights != "copy" else "found neither trust nor a policy"
        expected = "'map' or 'copy'" if weights != "copy" else "a rule beside 'copy'"
        raise ValueError(f"weights: expected {expected}, {found}")
    return is_asked


def _has_rule(trust: Trust | None) -> bool:
    if trust is not None:
        from .trust.rule import Trust

        if not isinstance(trust, Trust):
            raise TypeError(f"trust: expected a runtime.Trust, found {trust!r}")
        if not trust.accepts_anyone:
            return True
    if not has_variable(_VARIABLE) and _POLICY not in sys.modules:
        return False
    from .trust.policy import active_policy

    return active_policy() is not None


def _is_hardened() -> bool:
    """Return True if `harden` was called."""
    hardening = sys.modules.get(_HARDENING)
    return hardening is not None and bool(hardening.is_active())


def _resident_bytes(data: memoryview) -> Module | None:
    from .serial.library_file import has_bytes

    roots = [root for known in list(_roots.values()) if (root := known()) is not None]
    found = (
        root
        for root in roots
        if root._loaded_from is not None and has_bytes(root._loaded_from, data)
    )
    return with_key(next(found, None))


def _using(key: KeySource) -> Use:
    from .trust.encryption.use import Use

    return Use(key)


def _open_bytes(data: memoryview, allow_file: bool) -> Module:
    from .serial.library_file import open_bytes

    return _root_of(open_bytes(data, allow_file=allow_file))


def _resident(path: str | bytes) -> Module | None:
    try:
        stat = os.stat(path)
    except (OSError, ValueError):
        return None  # opening it raises the error
    root = _roots.get((stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns))
    return with_key(root()) if root is not None else None


def _root_of(library: Library) -> Module:
    root = tree_of(library, LibraryModule(library))
    root._loaded_from = library
    _remember(library.key, root)
    return root


def _open_verified(source: str | memoryview, trust: Trust | None, weights: str) -> Module:
    from .trust.verified_load import load_verified

    root = load_verified(source, trust, weights, _root_of)
    with_key(root)  # it may have been in use
    return root


def _is_inside_verified() -> bool:
    """Return True for a library inside one that is being verified and loaded."""
    verified_load = sys.modules.get(f"{__package__}.trust.verified_load")
    return verified_load is not None and bool(verified_load.is_loading())


def _verified_bytes(path: str, trust: Trust | None) -> memoryview:
    from .trust.verified_load import verified_bytes_of

    return verified_bytes_of(path, trust)


def _remember(key: FileKey, root: Module) -> None:
    def forget(_gone: ref[Module]) -> None:
        # Atomic: another thread may have stored its module between a look-up and a deletion.
        _remove_dead_weakref(_roots, key)

    _roots[key] = ref(root, forget)


def _after_fork() -> None:
    """Replace the lock: a thread that held it in the parent does not exist in the child."""
    global _lock
    _lock = RLock()


os.register_at_fork(after_in_child=_after_fork)

# A process without a policy does not import the module that reads one. With one it does so now: a
# relative path means the current folder.
if has_variable(_VARIABLE):
    from .trust import policy as _  # noqa: F401

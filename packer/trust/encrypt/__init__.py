"""encrypting(root, key): the exports inside the block store parts of a tree encrypted."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from runtime.error import ExportError
from runtime.module import Module, preorder
from runtime.modules.device import DeviceModule
from runtime.modules.graph_executor import GraphExecutorFactory
from runtime.modules.json_runtime import JSONRuntimeModule
from runtime.modules.vm import VMExecutable
from runtime.trust.encryption.keys import find_key

from ...files.arguments import list_of
from .sealed import SealedModule

if TYPE_CHECKING:
    from runtime.trust.encryption.keys import KeySource

PARTS = ("all", "graph", "weights", "kernels")
_EXPORT_ID_NBYTES = 16


@contextmanager
def encrypting(
    root: Module, key: KeySource, parts: Sequence[str] = ("all",)
) -> Iterator[list[Module]]:
    """Store modules of a tree encrypted, in the export inside the ``with`` block.

    Parameters
    ----------
    root : Module
        The tree that is exported; it is not changed after the block.
    key : path, str, bytes or callable
        The key: a file that `create_encryption_key` made, ``"env:NAME"``, the PKCS #11 URI of an
        AES key on a token, or 32 bytes. `runtime.load` needs the same one.
    parts : sequence of str
        ``"all"``: every module but host code; ``"graph"``: graphs, bytecode, and weights with the
        record of their model; ``"weights"``: modules with named tensors; ``"kernels"``: device
        code. Or type keys. A module is encrypted whole.

    Yields
    ------
    list of Module
        The modules that are stored encrypted.

    Raises
    ------
    EncryptionError
        The key cannot be used.
    ExportError
        A part names no module of the tree, or a module whose code must be in a file.

    Notes
    -----
    The functions of host code, with their names, and the metadata of the library are not
    encrypted. Each export draws new keys for its data, so its bytes differ from the last export's.

    Examples
    --------
    >>> with packer.encrypting(root, "acme.aes", ["weights"]):  # doctest: +SKIP
    ...     packer.export_library(root, "model.so")
    """
    found, export_id = find_key(key), os.urandom(_EXPORT_ID_NBYTES)
    chosen = _chosen(root, list_of(parts, "parts"))
    before = [(module, module._stored_as) for module in chosen]
    try:
        for module in chosen:
            module._stored_as = SealedModule(module, found, export_id)
        yield chosen
    finally:
        for module, form in before:
            module._stored_as = form


def _chosen(root: Module, parts: Sequence[str]) -> list[Module]:
    """Return the modules that the parts name, in preorder."""
    entries = [module for module in preorder(root) if not module.is_dso_exportable]
    chosen: dict[int, Module] = {}
    for part in parts:
        named = [module for module in entries if _is_named(module, part)]
        if not named:
            keys = ", ".join(sorted({module.type_key for module in entries})) or "none"
            names = ", ".join(PARTS)
            text = f"encrypt: {part!r} names no module; expected {names}, or a type key of: {keys}"
            raise ExportError(text)
        chosen |= {id(module): module for module in named}
    for module in chosen.values():
        if module._carries_imports or not module.is_binary_serializable:
            text = f"encrypt: {module!r} has code that must be in a file; choose other parts"
            raise ExportError(text, module=module.type_key)
    if not chosen:
        raise ExportError(f"encrypt: no part, expected some of {', '.join(PARTS)}")
    return list(chosen.values())


def _is_named(module: Module, part: str) -> bool:
    if part == "graph":
        is_program = isinstance(module, GraphExecutorFactory | JSONRuntimeModule | VMExecutable)
        return is_program or module.own_record is not None
    if part == "weights":
        return bool(module.own_weights)
    if part == "kernels":
        return isinstance(module, DeviceModule)
    return part in ("all", module.type_key)

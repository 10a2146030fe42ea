"""ModuleProperty: the uses of a module (TVM, runtime/module.h)."""

from __future__ import annotations

from enum import IntFlag

from .. import abi


class ModuleProperty(IntFlag):
    """Flags of `Module.property_mask`.

    Attributes
    ----------
    BINARY_SERIALIZABLE
        It can be written into a blob.
    RUNNABLE
        Its functions can be called in this process.
    DSO_EXPORTABLE
        It is host code that an export compiles and links.
    """

    BINARY_SERIALIZABLE = abi.BINARY_SERIALIZABLE
    RUNNABLE = abi.RUNNABLE
    DSO_EXPORTABLE = abi.DSO_EXPORTABLE

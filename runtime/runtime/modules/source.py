"""Host code that a blob carries uncompiled: ``c`` and ``static_library`` (TVM from 0.14).

    c                string code, string fmt, vector<string> func_names, vector<string> const_vars
    static_library   string data, vector<string> func_names

A load never compiles or links. Exporting a tree with such a module compiles it into the library.
"""

from __future__ import annotations

from ..abi import BINARY_SERIALIZABLE, DSO_EXPORTABLE
from ..module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from ..serial.stream import Reader, Writer


class CarriedSourceModule(Module):
    """C source text.

    Parameters
    ----------
    code : str
        The text.
    fmt : str
        ``"c"``, ``"cc"`` or ``"cu"``.
    func_names, const_vars : iterable of str
        The functions it defines, and the constants it needs.
    """

    type_key = "c"
    property_mask = BINARY_SERIALIZABLE | DSO_EXPORTABLE

    def __init__(
        self,
        code: str,
        fmt: str = "c",
        func_names: Iterable[str] = (),
        const_vars: Iterable[str] = (),
    ) -> None:
        self.code = code
        self.fmt = fmt
        self.func_names = tuple(func_names)
        self.const_vars = tuple(const_vars)

    def function_names(self) -> list[str]:
        """The functions it defines."""
        return list(self.func_names)

    def get_source(self, fmt: str = "") -> str:
        """Return the text."""
        return self.code if fmt in ("", self.fmt) else super().get_source(fmt)

    def save(self, path: str | os.PathLike[str], fmt: str = "") -> None:
        """Write the text to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.get_source(fmt))

    def save_to_binary(self, writer: Writer) -> None:
        """Write code, fmt, func_names, const_vars."""
        writer.write_string(self.code)
        writer.write_string(self.fmt)
        writer.write_vector(self.func_names, writer.write_string)
        writer.write_vector(self.const_vars, writer.write_string)


class CarriedStaticLibraryModule(Module):
    """An object file or archive.

    Parameters
    ----------
    data : buffer
        The file's bytes; kept, not copied.
    func_names : iterable of str
        The functions it defines.
    """

    type_key = "static_library"
    property_mask = BINARY_SERIALIZABLE | DSO_EXPORTABLE

    def __init__(self, data: bytes | memoryview, func_names: Iterable[str] = ()) -> None:
        self.data = memoryview(data).cast("B").toreadonly()
        self.func_names = tuple(func_names)

    def function_names(self) -> list[str]:
        """The functions it defines."""
        return list(self.func_names)

    def save(self, path: str | os.PathLike[str], fmt: str = "") -> None:
        """Write the object file or archive."""
        with open(path, "wb") as file:
            file.write(self.data)

    def save_to_binary(self, writer: Writer) -> None:
        """Write data, func_names."""
        writer.write_bytes(self.data)
        writer.write_vector(self.func_names, writer.write_string)


def decode(reader: Reader, type_key: str) -> Module:
    """Read the payload of ``c`` or ``static_library``."""

    def names() -> list[str]:
        return reader.read_vector(reader.read_name)

    if type_key == CarriedSourceModule.type_key:
        return CarriedSourceModule(reader.read_name(), reader.read_name(), names(), names())
    return CarriedStaticLibraryModule(reader.read_bytes(), names())

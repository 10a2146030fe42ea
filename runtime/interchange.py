r"""A module tree as base64, as JSON, and as what pickle and copy take; all of them from its bytes.

The bytes of a tree (`module_to_bytes`):

    the root of a loaded library    the library's file, which begins with "\x7fELF"
    any other                       a blob without its nbytes header and without placeholder, as
                                    `runtime.serialize_module_to_bytes` writes it

The JSON is that of TVM up to 0.20 (tvm.ir.save_json): a graph of two nodes, the first of which
stands for null, the second for the module. ``repr_b64`` is base64 of u64 nbytes and the bytes.
"""

from __future__ import annotations

from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64

from .abi import __version__
from .error import BlobFormatError
from .load import load_from_bytes
from .module import Module, preorder
from .serial.library_file import file_bytes
from .serial.serializer import (
    deserialize_module_from_bytes,
    is_as_loaded,
    serialize_module_to_bytes,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import Buffer

_ELF_MAGIC = b"\x7fELF"
_JSON_TYPE_KEY = "runtime.Module"
_JSON_TVM_VERSION = "0.20.0"  # whose form it is; TVM's load_json wants to know


def module_to_bytes(module: Module) -> bytes | memoryview:
    """Turn a tree into bytes: a loaded library into its file, any other into a blob.

    Parameters
    ----------
    module : Module
        The root.

    Returns
    -------
    bytes or memoryview
        Of a loaded library a view of the file: nothing is copied.

    Raises
    ------
    ExportError
        A module has no bytes, and says why, with its place in the tree: host code that is not
        compiled, a loaded library whose imports were changed or whose file is gone.
    """
    if module._loaded_from is not None and is_as_loaded(module):
        return file_bytes(module._loaded_from)
    return serialize_module_to_bytes(module, export_dso=False)


def module_from_bytes(data: Buffer) -> Module:
    """Make the tree of bytes that `module_to_bytes` gave; runs the code of the libraries in it.

    Raises
    ------
    LibraryLoadError, BlobFormatError, LoaderNotFoundError
        The bytes are damaged, or are not for this machine.
    """
    view = memoryview(data).cast("B")
    if view[:4] == _ELF_MAGIC:
        return load_from_bytes(view)
    return deserialize_module_from_bytes(view)


def copy_module(module: Module) -> Module:
    """Copy a tree through its bytes; a loaded library, unchanged, is its own copy."""
    return module_from_bytes(module_to_bytes(module))


def reduce_module(module: Module, protocol: int) -> tuple[Any, ...]:
    """What pickle keeps of a tree: its bytes, out of band if it can, and who has its own types."""
    data: Any = module_to_bytes(module)
    if protocol >= 5:
        from pickle import PickleBuffer

        data = PickleBuffer(data)
    else:
        data = bytes(data)
    return rebuild_module, (data, *homes_of(module))


def homes_of(module: Module) -> list[str]:
    """The Python modules of a tree's own types: their import registers the loaders."""
    homes = {type(node).__module__ for node in preorder(module)}
    return sorted(h for h in homes if h.split(".")[0] != "runtime" and h != "__main__")


def rebuild_module(data: Buffer, *homes: str) -> Module:
    """Import the homes of own types, as pickle does it for classes, and make the tree."""
    for home in homes:
        __import__(home)
    return module_from_bytes(data)


def export_module_to_base64(module: Module) -> str:
    """Write a tree as base64 text.

    Parameters
    ----------
    module : Module
        The root. Host code that is not compiled yet is: that takes packer and a compiler.

    Returns
    -------
    str
        One line of ASCII. For host code and loaded libraries it is the library's file, as TVM's
        function of this name gives it; for any other tree it is a blob.

    Raises
    ------
    ExportError
        A module cannot be serialised; names it, and its place in the tree.
    PackerError
        There is host code to compile, and packer is not installed.

    Examples
    --------
    >>> import runtime
    >>> text = runtime.export_module_to_base64(runtime.MetadataModule())
    >>> runtime.import_module_from_base64(text)
    <MetadataModule 'metadata_module'>
    """
    return _to_text(_exported(module) if _is_to_compile(module) else module_to_bytes(module))


def _is_to_compile(module: Module) -> bool:
    nodes = preorder(module)
    return any(m.is_dso_exportable and not m.is_binary_serializable for m in nodes)


def _exported(module: Module) -> bytes:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="packer-") as folder:
        return module.export_library(f"{folder}/module.so").read_bytes()


def import_module_from_base64(text: str | bytes) -> Module:
    """Make the tree of text that `export_module_to_base64`, or TVM's function, gave.

    Parameters
    ----------
    text : str or bytes
        Base64; line breaks and other characters are refused.

    Returns
    -------
    Module
        The root.

    Raises
    ------
    BlobFormatError
        The text is no base64, or the bytes are malformed.
    LibraryLoadError, LoaderNotFoundError
        As `load_from_bytes` and `deserialize_module_from_bytes` do.

    Notes
    -----
    A library in it is loaded, which runs its code: take text from those you trust only.
    """
    return module_from_bytes(_from_text(text, "base64"))


def _to_text(data: Buffer) -> str:
    return b2a_base64(data, newline=False).decode("ascii")


def _from_text(text: str | bytes, where: str) -> bytes:
    try:
        return a2b_base64(text, strict_mode=True)
    except (Base64Error, ValueError) as error:
        raise BlobFormatError(f"{where}: {error}, expected base64 text") from error


def save_json(module: Module) -> str:
    """Write a tree as JSON, in the form of TVM up to 0.20.

    Parameters
    ----------
    module : Module
        The root.

    Returns
    -------
    str
        A JSON graph with one module in it.

    Raises
    ------
    ExportError
        A module cannot be serialised; names it, and its place in the tree.

    Examples
    --------
    >>> import runtime
    >>> runtime.load_json(runtime.save_json(runtime.MetadataModule()))
    <MetadataModule 'metadata_module'>
    """
    import json

    data = module_to_bytes(module)
    header = len(data).to_bytes(8, "little")
    node = {"type_key": _JSON_TYPE_KEY, "repr_b64": _to_text(header + data)}
    attrs = {"tvm_version": _JSON_TVM_VERSION, "producer": f"dso-packer {__version__}"}
    graph = {"root": 1, "nodes": [{"type_key": ""}, node], "b64ndarrays": [], "attrs": attrs}
    return json.dumps(graph, indent=2)


def load_json(text: str | bytes) -> Module:
    """Make the tree of JSON that `save_json` gave.

    Parameters
    ----------
    text : str or bytes
        The JSON.

    Returns
    -------
    Module
        The root.

    Raises
    ------
    BlobFormatError
        It is no JSON of one module, or the bytes in it are malformed.
    LibraryLoadError, LoaderNotFoundError
        As `load_from_bytes` and `deserialize_module_from_bytes` do.

    Notes
    -----
    A library in it is loaded, which runs its code: take text from those you trust only.
    """
    data = memoryview(_from_text(_module_text(text), "json: repr_b64"))
    nbytes = int.from_bytes(data[:8], "little")
    if len(data) < 8 or nbytes != len(data) - 8:
        text = f"json: repr_b64 holds {len(data)} bytes, expected 8 and the {nbytes} they speak of"
        raise BlobFormatError(text)
    return module_from_bytes(data[8:])


def _module_text(text: str | bytes) -> str:
    """The base64 text of the graph's root."""
    import json

    try:
        graph = json.loads(text)
        node = graph["nodes"][graph["root"] if "root" in graph else graph["root_index"]]
        type_key = node.get("type_key", node.get("type"))
        if type_key != _JSON_TYPE_KEY:
            found = f"a root of type {type_key!r}, expected {_JSON_TYPE_KEY!r}"
            if type_key == "ffi.Module":
                found += "; this version reads dialect 'tvm'"
            raise ValueError(found)
        text = node["repr_b64"]
        if not isinstance(text, str):
            raise TypeError(f"repr_b64 is {text!r}, expected text")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        what = f"json: {type(error).__name__} {error}, expected a JSON graph of one module"
        raise BlobFormatError(what) from error
    return text

r"""A module tree as base64 and as JSON, and for pickle and copy; all of them store its bytes.

The bytes of a tree (`module_to_bytes`):

    the root of a loaded library    the library's file, which begins with "\x7fELF"
    any other                       a blob without its nbytes header and without placeholder, as
                                    `runtime.serialize_module_to_bytes` writes it

The JSON has the form of TVM up to 0.20 (tvm.ir.save_json): a graph of two nodes, null and the
module. ``repr_b64`` is base64 of u64 nbytes and the bytes. One file: each form stores the bytes.
"""

from __future__ import annotations

from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64

from .abi import __version__
from .error import BlobFormatError, ExportError
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
_JSON_TVM_VERSION = "0.20.0"  # TVM's load_json requires it


def module_to_bytes(module: Module) -> bytes | memoryview:
    """Serialise a tree: a loaded library as a view of its file, any other tree as a blob.

    Raises ExportError, which names the module and its place in the tree, for host code that is not
    compiled, and for a loaded library whose imports were changed or whose file was removed.
    """
    if module._loaded_from is not None and is_as_loaded(module):
        return file_bytes(module._loaded_from)
    return serialize_module_to_bytes(module, export_dso=False)


def module_from_bytes(data: Buffer) -> Module:
    """Make a tree of the bytes of `module_to_bytes`; the code of libraries in it is run.

    Raises as `load_from_bytes` and `deserialize_module_from_bytes` do.
    """
    view = memoryview(data).cast("B")
    if view[:4] == _ELF_MAGIC:
        return load_from_bytes(view)
    return deserialize_module_from_bytes(view)


def copy_module(module: Module) -> Module:
    """Copy a tree through its bytes; an unchanged loaded library is returned itself."""
    return module_from_bytes(module_to_bytes(module))


def reduce_module(module: Module, protocol: int) -> tuple[Any, ...]:
    """Return pickle's reduce tuple: the bytes, out of band from protocol 5, and `homes_of`.

    For a module by reference it has the path and the digest; for one below it, its place.
    """
    from .reference.pickled import pickled_reference, place_in_tree

    if (reference := pickled_reference(module)) is not None:
        return rebuild_by_reference, (*reference, *homes_of(module))
    if (place := place_in_tree(module)) is not None:
        return rebuild_part, place
    data: Any = module_to_bytes(module)
    if protocol >= 5:
        from pickle import PickleBuffer

        data = PickleBuffer(data)
    else:
        data = bytes(data)
    return rebuild_module, (data, *homes_of(module))


def homes_of(module: Module) -> list[str]:
    """The Python modules that define custom types of a tree: importing them registers loaders."""
    homes = {type(node).__module__ for node in preorder(module)}
    return sorted(h for h in homes if h.split(".")[0] != "runtime" and h != "__main__")


def rebuild_module(data: Buffer, *homes: str) -> Module:
    """Import the Python modules that define custom types, and make the tree."""
    for home in homes:
        __import__(home)
    return module_from_bytes(data)


def rebuild_by_reference(
    path: str,
    nbytes: int,
    sha256: str,
    state: tuple[Any, ...] | None,
    fetch: Any,
    *homes: str,
) -> Module:
    """Import the Python modules that define custom types, and load the file of a reference."""
    from .reference.unpickled import module_of

    for home in homes:
        __import__(home)
    return module_of(path, nbytes, sha256, state, fetch)


def rebuild_part(root: Module, place: int) -> Module:
    """Return a module of the tree of a root, by its place in preorder."""
    return list(preorder(root))[place]


def reduce_function(function: Any) -> tuple[Any, ...]:
    """Return pickle's reduce tuple of a Function: its module, and its name there.

    Raises ExportError for one that its module does not have by name, such as a result of a call.
    """
    owner, name = function.owner, function.name
    if not isinstance(owner, Module) or owner.find_function(name) is None:
        text = f"{function!r} is not a named function of a module, expected one; pickle the module "
        raise ExportError(f"{text}that made it, and make it there", module="function")
    if getattr(owner, "_is_wrapper", False):
        text = f"{function!r} was declared by load(functions=...), which no pickle contains; pickle"
        raise ExportError(f"{text} the module, and declare it there", module="function")
    return rebuild_function, (owner, name)


def rebuild_function(module: Module, name: str) -> Any:
    """Return a function of a module, without its imports."""
    return module.get_function(name)


def export_module_to_base64(module: Module) -> str:
    """Write a tree as base64 text.

    Parameters
    ----------
    module : Module
        The root. Host code is compiled, which needs packer and a compiler.

    Returns
    -------
    str
        One line of ASCII. For host code and loaded libraries it encodes the library's file, as
        TVM's function of this name does; for any other tree a blob.

    Raises
    ------
    ExportError
        A module cannot be serialised; names it and its place in the tree.
    PackerError
        The tree contains host code, and packer is not installed.

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
    """Make the tree of text from `export_module_to_base64`, or from TVM's function.

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
        The text is not base64, or the bytes are malformed.
    LibraryLoadError, LoaderNotFoundError
        As `load_from_bytes` and `deserialize_module_from_bytes` do.

    Notes
    -----
    A library in it is loaded, which runs its code: use trusted text only.
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
        A JSON graph of one module.

    Raises
    ------
    ExportError
        A module cannot be serialised; names it and its place in the tree.

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
    """Make the tree of JSON from `save_json`.

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
        It is not JSON of one module, or its bytes are malformed.
    LibraryLoadError, LoaderNotFoundError
        As `load_from_bytes` and `deserialize_module_from_bytes` do.

    Notes
    -----
    A library in it is loaded, which runs its code: use trusted text only.
    """
    data = memoryview(_from_text(_module_text(text), "json: repr_b64"))
    nbytes = int.from_bytes(data[:8], "little")
    if len(data) < 8 or nbytes != len(data) - 8:
        text = (
            f"json: repr_b64 of {len(data)} bytes, expected 8 and the {nbytes} that they announce"
        )
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

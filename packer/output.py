"""Output and Build: what an export makes, and how. `export_library` takes one of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from runtime.error import ExportError, shown

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from concurrent.futures import Executor

    from .embed import Embed
    from .toolchain.visibility import Visibility

Value = TypeVar("Value", "Output", "Build")


class Output(NamedTuple):
    """Parts of a library beside its code and its tree.

    Attributes
    ----------
    visibility : {"default", "declared"}
        ``"declared"`` hides every symbol of the host code except declared functions, so that
        other libraries cannot bind to it. Only for shared libraries.
    soname : str, optional
        The name by which other binaries need the library (DT_SONAME), as ``"libmodel.so.1"``; by
        default it has none. Only for shared libraries.
    metadata : mapping of str to value, optional
        The library's description, which `runtime.Module.metadata` returns: ``"version"`` and
        ``"license"``, which are text, and any further names. Values are TOML's without
        dates: text, numbers, bools, lists and mappings; at most 1 MiB as JSON, and 62 levels.
    signature_room : int
        The bytes to reserve for `packer sign --embed`, which stores a signature in the library
        (docs/trust.md); 8192 are enough for most. Only for shared libraries.
    legacy_calls : bool
        True to let TVM to 2025 call the declared functions: the plain name of each is a packed C
        function, and all C functions are hidden (docs/coming-from-tvm.md).
    sbom : bool
        True to store a bill of materials (CycloneDX, which `packer sbom` prints) and the note
        ``.note.package`` (docs/trust-format.md). Only for shared libraries.
    """

    visibility: Visibility = "default"
    soname: str | None = None
    metadata: Mapping[str, Any] | None = None
    signature_room: int = 0
    legacy_calls: bool = False
    sbom: bool = False


class Build(NamedTuple):
    """How an export compiles and links.

    Attributes
    ----------
    target : str, optional
        The triple of the library's machine and system, as ``"aarch64-linux-gnu"``; by default
        that of the compiler. docs/cross.md lists the compilers that are searched.
    cpu : sequence of str, or "native", optional
        CPU levels: ``["x86-64-v2", "x86-64-v3"]`` compiles the host code for each, and the library
        uses the best one of the machine that loads it (docs/cpu-levels.md). ``"native"`` is the
        processor of this machine. By default the code runs on every processor of the target.
    embed : {"auto", "c", "llvm", "segment"}
        How the blob is put into the library; the bytes and the symbol are the same. ``"auto"`` is
        segment for libraries: it needs the least time and memory.
    cwd : path, optional
        The folder in which compilers and the linker run, so that ``-Iinclude`` means a folder in
        it; by default the current one. They write nothing to it.
    jobs : int, optional
        How many compilers run at a time; by default as many as there are processors.
    executor : concurrent.futures.Executor, optional
        Compiles C and C++, with the same bytes (docs/scale.md); its workers need dso-packer and
        the same compiler.
    """

    target: str | None = None
    cpu: str | Sequence[str] | None = None
    embed: Embed = "auto"
    cwd: str | os.PathLike[str] | None = None
    jobs: int | None = None
    executor: Executor | None = None


def given(value: Value | None, kind: type[Value]) -> Value:
    """Return the value of an argument, or the default one.

    Raises ExportError if it is not a `kind`.
    """
    if value is None:
        return kind()
    if not isinstance(value, kind):
        name = kind.__name__
        raise ExportError(f"{name.lower()}: expected a packer.{name}, found {shown(value)}")
    return value

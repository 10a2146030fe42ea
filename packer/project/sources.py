"""Files of host code: the type of module for each, and the functions that each declares.

Several files make several modules; the first imports the others, and an export merges them. A
declaration names no file. It belongs to the file that defines the function, otherwise to the first
C, C++ or CUDA file. The code of every such file is compiled with all declarations after it that
have standard types, so a wrong one is a compile error, whichever file defines the function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from runtime.device.standalone_files import DEVICE_CODE
from runtime.module import Module

from ..declare.automatic import names_defined
from ..declare.c.check import is_standard
from ..declare.c_type import Functions as Functions
from ..declare.declaration import EVERY
from ..declare.redeclaration import redeclarations
from ..files.text import path_error, shown_path
from ..modules.c_source import CSourceModule
from ..modules.host import library_names
from ..toolchain.compiler import C_LANGUAGES, LANGUAGE_OF_SUFFIX
from .inputs import read_bytes, read_text

if TYPE_CHECKING:
    from ..declare.declaration import Declaration
    from ..modules.host import CodeFile, HostModule
    from ..target import Target


COMPILED = C_LANGUAGES
# Which file gets a declaration that no LLVM file defines: first one whose compiler checks it.
_RANK: dict[str, int] = {**dict.fromkeys(COMPILED, 0), "static_library": 1, "llvm": 2}
_KIND_OF_SUFFIX = {
    **{s: kind if kind in COMPILED else "static_library" for s, kind in LANGUAGE_OF_SUFFIX.items()},
    **dict.fromkeys((".ll", ".bc"), "llvm"),
    **dict.fromkeys((".o", ".a"), "static_library"),
}
_OTHERS = (".h", ".hh", ".hpp", ".hxx", ".safetensors", ".so", ".tar", ".toml", "")


class Source(NamedTuple):
    """One file of host code, and its kind: C, C++, CUDA, LLVM or a static library.

    `levels` has the file for each CPU level, if it is a library that comes per level.
    """

    path: Path
    kind: str
    levels: Mapping[str, Path] = MappingProxyType({})


class Headers(NamedTuple):
    """C headers that declare functions, and which functions are read: all if ().

    `filter` has the patterns of the headers that count; by default a rule of `from_header`.
    """

    paths: tuple[Path, ...]
    only: tuple[str, ...] = ()
    filter: tuple[str, ...] = ()


def kind_of(path: Path) -> str | None:
    """Return the kind of host code of a file's suffix; None if the suffix is unknown."""
    return _KIND_OF_SUFFIX.get(path.suffix)


def is_known_suffix(suffix: str) -> bool:
    """Return True for the suffix of a file that packer reads or writes without an importer."""
    return suffix in (*_KIND_OF_SUFFIX, *_OTHERS) or suffix[1:] in DEVICE_CODE


def is_device_code(path: Path) -> bool:
    """Return True if a suffix is that of device code which `runtime.load` reads."""
    return path.suffix[1:] in DEVICE_CODE


def source_of(path: Path) -> Source:
    """Return a file with the kind of its suffix, which must be one of host code."""
    kind = kind_of(path)
    if kind is None:
        known = " ".join(_KIND_OF_SUFFIX)
        elsewhere = (
            f"weights are given by --weights {shown_path(path)}"
            if path.suffix == ".safetensors"
            else "declare other modules in packer.toml"
        )
        raise path_error(path, f"suffix {path.suffix!r}, expected one of {known}; {elsewhere}")
    return Source(path, kind)


def host_module(
    sources: Sequence[Source],
    functions: Functions | Literal["auto"],
    *,
    options: Sequence[str] = (),
    llvm: Mapping[str, Any] = MappingProxyType({}),
    libraries: Sequence[str] = (),
    headers: Headers | None = None,
    constants: Sequence[str] = (),
) -> Module:
    """Make one module for each file, or one of `headers`; the first imports the others.

    Any of the files may define the `functions`; ``"auto"`` are all that C, C++ and CUDA files
    define. With `headers`, which declare them, it has changes only. `options` are for the compiler
    of these languages, `llvm` has further arguments of `LLVMModule`; `libraries` and `constants`
    are as for `CSourceModule`.
    """
    shares = _shares(sources, {} if headers else functions)
    modules = [
        _module(source, share, options, llvm, constants)
        for source, share in zip(sources, shares, strict=True)
    ]
    compiled = [module for module in modules if isinstance(module, SourceFileModule)]
    declared = tuple(d for module in compiled for d in module.functions)
    for module in compiled:
        others = (d for d in declared if d not in module.functions)
        module.redeclared = tuple(d for d in others if is_standard(d))
    if headers:
        from ..importers.header import from_header

        made = from_header(
            headers.paths,
            functions={} if functions == "auto" else functions,
            only=headers.only,
            header_filter=headers.filter,
            options=options,
            libraries=() if sources else libraries,  # else the sources define the functions
            constants=constants,
        )
        modules.append(made)
    modules[0].libraries = library_names(libraries)
    return importing(modules)


def importing(modules: Sequence[Module]) -> Module:
    """Add all other modules to the imports of the first one, and return that."""
    root, *others = modules
    for other in others:
        root.import_module(other)
    return root


class SourceFileModule(CSourceModule):
    """One of several source files that share their declarations."""

    # The declarations of the other files, which this file may define; those with standard types.
    redeclared: tuple[Declaration, ...] = ()

    def write_code(self, stem: Path, object_format: str, target: Target) -> CodeFile:
        """Write the source, followed by all declarations."""
        file = super().write_code(stem, object_format, target)
        if self.redeclared:
            with file.path.open("a", encoding="utf-8") as output:
                output.write(redeclarations(self.redeclared, "c" if self.fmt == "c" else "cc"))
        return file


def _module(
    source: Source,
    functions: Functions | Literal["auto"],
    options: Sequence[str],
    llvm: Mapping[str, Any],
    constants: Sequence[str],
) -> HostModule:
    if source.kind in COMPILED:
        return SourceFileModule(
            source.path,
            fmt=source.kind,
            functions=functions,
            options=options,
            constants=constants,
        )
    if source.kind == "llvm":
        from ..modules.llvm import LLVMModule

        return LLVMModule(_read_ir(source.path), functions=functions, **llvm)
    from ..modules.static_library import StaticLibraryModule

    return StaticLibraryModule(source.levels or source.path, functions)


def _shares(
    sources: Sequence[Source], functions: Functions | Literal["auto"]
) -> Sequence[Functions | Literal["auto"]]:
    """Divide the declared functions among the files."""
    if functions == "auto":
        return ["auto" if source.kind in COMPILED else {} for source in sources]
    if len(sources) <= 1:
        return [functions] * len(sources)
    defined = [_defined(source) for source in sources]
    other = min(range(len(sources)), key=lambda i: _RANK[sources[i].kind])
    every = {EVERY: functions[EVERY]} if EVERY in functions else {}
    shares: list[dict[str, Any]] = [
        dict(every) if source.kind in COMPILED else {} for source in sources
    ]
    for name, declaration in functions.items():
        if name == EVERY:
            continue
        owner = next((i for i, names in enumerate(defined) if name in names), other)
        shares[owner][name] = declaration
    return list(shares)


def _defined(source: Source) -> set[str]:
    """Return the functions that a file shows to define; macros may define others."""
    if source.kind in COMPILED:
        return names_defined(read_bytes(source.path).decode("utf-8", "replace"))
    if source.kind != "llvm":
        return set()
    from llvmlite import binding

    from ..modules.llvm import LLVMModule

    module = binding.parse_assembly(LLVMModule(_read_ir(source.path)).get_source("ll"))
    return {function.name for function in module.functions if not function.is_declaration}


def _read_ir(path: Path) -> str | bytes:
    return read_bytes(path) if path.suffix == ".bc" else read_text(path, "LLVM IR as text")

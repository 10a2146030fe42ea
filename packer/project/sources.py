"""Files of host code: which module type each becomes, and whose function is whose.

Several files make several modules, the first of which imports the others; an export merges them.
A declaration names no file, so it belongs to the LLVM file that defines the function; else to the
first C, C++ or CUDA file, and then every such file is compiled with the declaration behind it:
wherever the function is, a wrong declaration is a compile error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from runtime.error import ExportError
from runtime.module import Module

from ..declare.declaration import FunctionDeclaration
from ..declare.redeclaration import redeclarations
from ..files.text import shown_path
from ..modules.c_source import CSourceModule
from ..toolchain.compiler import LANGUAGE_OF_SUFFIX, SOURCE_LANGUAGES

if TYPE_CHECKING:
    from ..declare.declaration import Declaration
    from ..modules.host import CodeFile
    from ..target import Target

Functions = Mapping[str, str | FunctionDeclaration]

COMPILED = SOURCE_LANGUAGES
HOST_KINDS = (*COMPILED, "llvm", "static_library")
# Who gets a declaration that no LLVM file claims: rather a file whose compiler checks it.
_RANK: dict[str, int] = {**dict.fromkeys(COMPILED, 0), "static_library": 1, "llvm": 2}
_KIND_OF_SUFFIX = {
    **LANGUAGE_OF_SUFFIX,
    **dict.fromkeys((".ll", ".bc"), "llvm"),
    **dict.fromkeys((".o", ".a"), "static_library"),
}


class Source(NamedTuple):
    """One file of host code, and which of `HOST_KINDS` it is."""

    path: Path
    kind: str


def kind_of(path: Path) -> str | None:
    """The kind of host code that a file's suffix says; None if it says none."""
    return _KIND_OF_SUFFIX.get(path.suffix)


def source_of(path: Path) -> Source:
    """View a file as what its suffix says.

    Raises
    ------
    ExportError
        The suffix is none of host code.
    """
    kind = kind_of(path)
    if kind is None:
        known = " ".join(_KIND_OF_SUFFIX)
        elsewhere = (
            f"weights are given by --weights {shown_path(path)}"
            if path.suffix == ".safetensors"
            else "other modules go into packer.toml"
        )
        text = f"{shown_path(path)}: suffix {path.suffix!r}, expected one of {known}; {elsewhere}"
        raise ExportError(text, path=str(path))
    return Source(path, kind)


def host_module(
    sources: Sequence[Source],
    functions: Functions,
    *,
    options: Sequence[str] = (),
    target: str | None = None,
) -> Module:
    """Make modules of files, the first of which imports the others.

    Parameters
    ----------
    sources : sequence of Source
        One at least.
    functions : mapping
        The functions to export, each with its declaration, wherever they are defined.
    options : sequence of str
        For the compiler of C, C++ and CUDA.
    target : str, optional
        The target triple of LLVM files.

    Raises
    ------
    ExportError
        A file or a declaration cannot be exported.
    """
    shares = _shares(sources, functions)
    modules = [
        _module(source, share, options, target)
        for source, share in zip(sources, shares, strict=True)
    ]
    compiled = [module for module in modules if isinstance(module, SourceFileModule)]
    declared = tuple(d for module in compiled for d in module.functions)
    for module in compiled:
        module.redeclared = tuple(d for d in declared if d not in module.functions)
    return importing(modules)


def importing(modules: Sequence[Module]) -> Module:
    """Return the first module, which from now on imports the others."""
    root, *others = modules
    for other in others:
        root.import_module(other)
    return root


class SourceFileModule(CSourceModule):
    """One of several source files that share their declarations.

    Attributes
    ----------
    redeclared : tuple of Declaration
        What the other files export: checked here too, should it be defined here.
    """

    redeclared: tuple[Declaration, ...] = ()

    def write_code(self, stem: Path, object_format: str, target: Target) -> CodeFile:
        """Write the source with all declarations behind it."""
        file = super().write_code(stem, object_format, target)
        if self.redeclared:
            with file.path.open("a", encoding="utf-8") as output:
                output.write(redeclarations(self.redeclared, "c" if self.fmt == "c" else "cc"))
        return file


def _module(
    source: Source, functions: Functions, options: Sequence[str], target: str | None
) -> Module:
    if source.kind in COMPILED:
        return SourceFileModule(source.path, fmt=source.kind, functions=functions, options=options)
    if source.kind == "llvm":
        from ..modules.llvm import LLVMModule

        return LLVMModule(_read_ir(source.path), target=target, functions=functions)
    from ..modules.static_library import StaticLibraryModule

    return StaticLibraryModule(source.path, functions)


def _shares(sources: Sequence[Source], functions: Functions) -> list[Functions]:
    """Divide the declared functions among the files."""
    if len(sources) == 1:
        return [functions]
    defined = [_defined(source) for source in sources]
    other = min(range(len(sources)), key=lambda i: _RANK[sources[i].kind])
    shares: list[dict[str, str | FunctionDeclaration]] = [{} for _ in sources]
    for name, declaration in functions.items():
        owner = next((i for i, names in enumerate(defined) if name in names), other)
        shares[owner][name] = declaration
    return list(shares)


def _defined(source: Source) -> set[str]:
    """The functions that an LLVM file defines; what other files define only a compiler knows."""
    if source.kind != "llvm":
        return set()
    from llvmlite import binding

    from ..modules.llvm import LLVMModule

    module = binding.parse_assembly(LLVMModule(_read_ir(source.path)).get_source("ll"))
    return {function.name for function in module.functions if not function.is_declaration}


def _read_ir(path: Path) -> str | bytes:
    try:
        data = path.read_bytes()
        return data if path.suffix == ".bc" else data.decode()
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
    except UnicodeDecodeError as error:
        reason = f"byte {error.start:#x}: not UTF-8, expected LLVM IR as text"
    raise ExportError(f"{shown_path(path)}: {reason}", module="llvm", path=str(path))

"""The parts of a library for its bill of materials: each with a digest, as far as it has one."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from runtime.abi import BINARY_SERIALIZABLE
from runtime.modules.device import DeviceModule
from runtime.modules.safetensors import SafetensorsModule
from runtime.serial.stream import Writer

from ...elf.architecture import architectures_of
from ...files.chunks import pieces
from ...files.text import path_error
from ...toolchain.compilation import compile_sources
from ...toolchain.compiler import Compilers, Language, find_compiler
from ...toolchain.process import run
from ..encrypt.sealed import SealedModule

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from runtime.blob import Blob
    from runtime.module import Module
    from runtime.serial.stream import Chunk

    from ...link import Link
    from ...modules.host import CodeFile, HostModule
    from ...toolchain.linker import Linker


class Part(NamedTuple):
    """One part."""

    # ``"source"``, ``"archive"``, ``"object"``, ``"library"``, ``"kernels"``, ``"weights"``,
    # ``"module"`` or ``"compiler"``.
    kind: str
    name: str  # the name of the file without its folder, or what else names the part
    # The digest in hexadecimal digits; empty for a part that is not in the library.
    sha256: str = ""
    version: str = ""  # empty if unknown
    license: str = ""  # empty if unknown
    # Further facts in order; a name may occur several times.
    properties: tuple[tuple[str, str], ...] = ()


def parts_of(
    blob: Blob, hosts: Sequence[HostModule], files: Sequence[CodeFile], link: Link
) -> Iterator[Part]:
    """Yield the parts of a library whose code was written, and was not linked yet.

    `files` are the files of the hosts, in order.
    """
    for host, file in zip(hosts, files, strict=True):
        yield from _sources(host, file)
    for addon in link.code.addons:
        path = Path(addon)
        yield Part(_kind_of(path), path.name, _digest_of_file(path))
    for word in link.code.options:
        if word.startswith("-l"):
            yield Part("library", word.removeprefix("-l"))
        elif _is_file(word):
            yield Part(_kind_of(Path(word)), os.path.basename(word), _digest_of_file(Path(word)))
    for entry in blob.nodes:
        if entry.module is not None:
            yield _module(entry.module)
    yield from _compilers(link, {file.language for file in files})
    if any(host.type_key == "llvm" for host in hosts):
        from llvmlite.binding import llvm_version_info

        version = ".".join(map(str, llvm_version_info))
        yield Part("compiler", "LLVM", version=version, properties=(("language", "ll"),))


def link_options(link: Link) -> list[str]:
    """Return the options of the link that name no part."""
    return [word for word in link.code.options if not (word.startswith("-l") or _is_file(word))]


def _is_file(word: str) -> bool:
    """Return True for an option that is an archive, an object or a library."""
    return word.endswith((".a", ".o", ".so")) and os.path.isfile(word)


def _sources(host: HostModule, file: CodeFile) -> Iterator[Part]:
    """Yield the files of one module of host code; text without a file is one source."""
    options = tuple(("option", word) for word in _options(host))
    properties = (("language", file.language), *options)
    code: object = getattr(host, "code", None)
    paths, is_source = list(host.input_files()), file.language not in ("o", "a")
    for path in paths:
        kind = "source" if is_source else _kind_of(path)
        if isinstance(code, bytes) and path == getattr(host, "path", None):  # what is compiled
            digest = hashlib.sha256(code).hexdigest()
        else:
            digest = _digest_of_file(path)
        yield Part(kind, path.name, digest, properties=properties)
    if not paths:
        data = code if isinstance(code, bytes) else file.path.read_bytes()
        kind, name = "source" if is_source else "object", f"{host.type_key} text"
        yield Part(kind, name, hashlib.sha256(data).hexdigest(), properties=properties)


def _options(host: HostModule) -> Iterator[str]:
    """Yield the user's options of a module, without the folder of its header."""
    words = iter(getattr(host, "options", ()))
    for word in words:
        if word == "-iquote":
            next(words, None)
        else:
            yield word


def _module(module: Module) -> Part:
    """Describe a module of the blob."""
    name = module.type_key
    if isinstance(module, SealedModule):
        return Part("module", name, _digest(module.written))
    if isinstance(module, DeviceModule):
        return _kernels(module)
    if isinstance(module, SafetensorsModule):
        writer = Writer()
        module._file.write(writer)
        tensors = tuple(("tensor", tensor) for tensor in module.own_weights)
        return Part("weights", name, _digest(writer.finish()), "", _license_of(module), tensors)
    properties = tuple(("tensor", tensor) for tensor in module.own_weights)
    is_data = bool(module.property_mask & BINARY_SERIALIZABLE)
    writer = Writer()
    if is_data:
        module.save_to_binary(writer)
    kind = "weights" if properties else "module"
    return Part(kind, name, _digest(writer.finish()) if is_data else "", properties=properties)


def _kernels(module: DeviceModule) -> Part:
    code = module.data
    if isinstance(code, memoryview):
        digest = hashlib.sha256(code).hexdigest()
        found = architectures_of(code) if module.type_key == "cuda" else []
    else:
        writer = Writer()
        module.save_to_binary(writer)
        digest, found = _digest(writer.finish()), []
    properties = [("format", module.fmt)] if module.fmt else []
    properties += [("architecture", str(one)) for one in dict.fromkeys(found)]
    properties += [("kernel", name) for name in module.functions]
    return Part("kernels", module.type_key, digest, properties=tuple(properties))


def _license_of(module: SafetensorsModule) -> str:
    found = module.metadata.get("license", "")
    return found if isinstance(found, str) else ""


def _compilers(link: Link, languages: Iterable[str]) -> Iterator[Part]:
    """Name the compilers of the sources and the driver that links, with their versions."""
    find = compilers_of(link.linker)
    if find is None:
        return
    used: list[Language] = [name for name in ("c", "cc", "cu") if name in languages]
    commands: dict[tuple[str, ...], list[str]] = {}
    for language in used:
        commands.setdefault(find(language), []).append(language)
    commands.setdefault(find("c" if link.is_c else "link"), []).append("link")
    for command, roles in commands.items():
        name = " ".join([os.path.basename(command[0]), *command[1:]])
        properties = tuple(("language", role) for role in roles)
        yield Part("compiler", name, version=_version(command), properties=properties)


def compilers_of(linker: Linker) -> Compilers | None:
    """Return the function that finds the compilers of a linker; None if the linker has its own."""
    compile_with: Any = linker.compile_sources
    if compile_with is compile_sources:
        return find_compiler
    found: Compilers | None = getattr(compile_with, "keywords", {}).get("find")
    return found


def _version(command: tuple[str, ...]) -> str:
    """Return the first line that a compiler prints about itself with a number in it."""
    done = run([*command, "--version"], cwd=Path("/"))
    lines = [line.strip() for line in done.output.splitlines()]
    numbered = [line for line in lines if any(c.isdecimal() for c in line)]
    release = [line for line in numbered if "release" in line]  # nvcc's is not its first
    return (release or numbered or [""])[0]


def _kind_of(path: Path) -> str:
    return {".a": "archive", ".so": "library"}.get(path.suffix, "object")


def _digest_of_file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise path_error(path, f"cannot be read for the SBOM: {error.strerror}") from error


def _digest(chunks: Sequence[Chunk]) -> str:
    digest = hashlib.sha256()
    for piece in pieces(chunks):
        digest.update(piece)
    return digest.hexdigest()

"""The files of host code: that of every module, and the glue of their functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.error import ToolchainError
from runtime.module import Module, preorder

from .declare.c.check import CALL_PREFIX
from .elf.object_file import contains
from .elf.safe_calls import safe_calls
from .files.progress import silent
from .modules.host import CodeFile, HostModule
from .toolchain.linkage import refused_in, undefined_in, users_in

if TYPE_CHECKING:
    from .files.progress import Progress
    from .link import Link
    from .toolchain.formats import OutputFormat

_DEFS = "-Wl,-z,defs"  # the linker must find every symbol


def library_options(
    hosts: Sequence[HostModule], output_format: OutputFormat, allowed: Sequence[str]
) -> list[str]:
    """Return the options for the libraries of all modules; an object or archive is linked later.

    If undefined symbols are `allowed`, the result is searched for others (`check_undefined`).
    """
    if output_format.suffix in ("o", "a"):
        return []
    words = [_DEFS] if any(host.is_complete for host in hosts) and not allowed else []
    words += dict.fromkeys(option for host in hosts for option in host.link_options)
    return [*words, *dict.fromkeys(f"-l{name}" for host in hosts for name in host.libraries)]


def save(hosts: Sequence[HostModule], link: Link, step: Progress = silent) -> list[CodeFile]:
    """Write each module's code into the folder of the link, but no function that nothing defines.

    Code for CPU levels is compiled here; `step` gets what is of the lowest level only.
    """
    words = link.linker.object_format, link.target
    levels, folder = link.levels.levels, link.folder
    files = [
        host.write_levels(folder / stem, *words, levels)
        if levels
        else host.write_code(folder / stem, *words)
        for stem, host in _stems(hosts).items()
    ]
    link.use(files)
    if _has_other_constants(hosts, link):
        return save(hosts, link, step)
    if _DEFS in link.code.options and _leave_out(hosts, link.run, folder / "trial"):
        return save(hosts, link, step)
    for note in link.levels.notes:
        step(f"{levels[0].name} only: {note}")
    return files


def share_variables(hosts: Sequence[HostModule]) -> None:
    """Let the first module of a variable read and write it; the others leave it out."""
    owners: dict[str, HostModule] = {}
    for host in hosts:
        for name in [*host.c_globals]:
            other = owners.setdefault(name, host)
            if other is not host:
                host.leave_out({name: f"{other!r} has a variable of this name"})


def _has_other_constants(hosts: Sequence[HostModule], link: Link) -> bool:
    """Compile for CPU levels or another machine; return True if constants were left out.

    The compiler has other values of these than the preprocessor that read them.
    """
    try:
        link.compile_ahead()
    except ToolchainError as error:
        refused = refused_in(error)
        reasons = {n: f"the compiler of a level or target: {text}" for n, text in refused.items()}
        changed = [host.leave_out(reasons) for host in hosts]
        if not any(changed):
            raise
        return True
    return False


def _stems(hosts: Sequence[HostModule]) -> dict[str, HostModule]:
    """Return the module of each file name, without suffixes."""
    stems: dict[str, HostModule] = {}
    for index, host in enumerate(hosts):
        is_free = host.stem and host.stem not in stems
        stems[host.stem if is_free else f"lib{index}"] = host
    return stems


def ready_functions(files: Sequence[CodeFile]) -> list[str]:
    """Return the functions that compiled files define for loaders (`safe_calls`)."""
    return [name for file in files if file.language in ("o", "a") for name in safe_calls(file.path)]


def _leave_out(hosts: Sequence[HostModule], link: Callable[[Path], None], output: Path) -> bool:
    """Try to link the host code alone; return True if functions were left out, so try again.

    Those are the functions that nothing defines, macros and inline functions that call such ones,
    and those whose declaration the compiler refuses: they cost no other function. This compiles
    none of the wrappers. Any other error is left to the link of the library.
    """
    try:
        link(output)
    except ToolchainError as error:
        undefined = "no library that is linked defines"
        reasons = {
            name.removeprefix(CALL_PREFIX): f"{undefined} {symbol}, which it calls"
            for name, symbol in users_in(error).items()
        }
        reasons |= dict.fromkeys(sorted(undefined_in(error)), f"{undefined} it")
        refused = refused_in(error)
        avoided = [host.avoid_macros(refused) for host in hosts]
        if any(avoided):
            return True
        reasons |= {n: f"the compiler refuses its call: {text}" for n, text in refused.items()}
        changed = [host.leave_out(reasons) for host in hosts]
        return any(changed)
    output.unlink()
    return False


def functions_with_constants(root: Module) -> set[str]:
    """Return the functions to whose initialisers a const_loader of the tree passes constants."""
    loaders = [module for module in preorder(root) if module.type_key == "const_loader"]
    return {name for module in loaders for name in getattr(module, "const_vars_by_symbol", ())}


def save_glue(folder: Path, text: str, files: Sequence[CodeFile]) -> CodeFile:
    """Write the file with the wrappers, facts, entry and checksums of all functions.

    Beside C++ it is C++, so that the wrappers can catch exceptions.
    """
    language = "cc" if any(map(_is_cpp, files)) else "c"
    path = folder / f"glue.{language}"
    path.write_text(text, encoding="utf-8")
    return CodeFile(path, language, is_ours=True)


def _is_cpp(file: CodeFile) -> bool:
    """Return True for C++ source, and for objects whose code throws, handles or uses std."""
    if file.language in ("o", "a"):
        return contains(file.path, b"__cxa_throw\0", b"__gxx_personality_v0\0", b"\0_ZSt")
    return file.language in ("cc", "cu")

"""The options of importers: --onnx and those like it, their settings, and files by suffix."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..importers import Importer
from ..project.imported import ImportedSource
from ..project.registry import EXTRAS, advice, every, of_file, problems, refuse
from ..project.sources import is_known_suffix
from .compiler_options import compiler_words
from .parser import CommandParser, is_sought


def add_importer_options(parser: CommandParser, argv: Sequence[str]) -> list[Importer]:
    """Add the options of all importers, and return these.

    Nothing is looked up if packer itself knows each option and suffix of the arguments. An importer
    whose options are taken already is left out.
    """
    if not _is_needed(parser, argv):
        return []
    added = [importer for importer in every() if _add(parser, importer)]
    given = {word.partition("=")[0] for word in argv}
    for kind in EXTRAS:
        if f"--{kind}" in given and kind not in {importer.kind for importer in added}:
            parser.error(f"argument --{kind}: {problems().get(kind) or advice(kind)}")
    return added


def importer_source(
    parser: CommandParser, arguments: argparse.Namespace, importers: Sequence[Importer]
) -> ImportedSource | None:
    """Return the source that options or a suffix name, or None; end with exit code 2 for a mistake.

    A file with the suffix of an importer is removed from the sources.
    """
    if of_file(Path(arguments.output or ""), importers):
        given = f"packer export model.so {arguments.output}"
        parser.error(f"{arguments.output}: is a source, expected an output first: {given}")
    named = [importer for importer in importers if getattr(arguments, _dest(importer))]
    if len(named) > 1:
        parser.error(f"argument --{named[1].kind}: not allowed with --{named[0].kind}")
    for text in [text for text in arguments.sources if not is_known_suffix(_suffix(text))]:
        if (found := _importer_of(parser, text, importers)) is None:
            continue
        if named:
            parser.error(f"{text}: expected one source for importers; packer.toml can have several")
        arguments.sources.remove(text)
        named = [found]
        setattr(arguments, _dest(found), text)
    for importer in importers:
        if importer not in named:
            for action, _ in _given(parser, arguments, importer):
                parser.error(f"argument {action.option_strings[0]}: needs --{importer.kind}")
    if not named:
        return None
    if arguments.project is not None:
        parser.error(f"argument --project: not allowed with --{named[0].kind}")
    return _source(parser, arguments, named[0])


def _importer_of(
    parser: CommandParser, text: str, importers: Sequence[Importer]
) -> Importer | None:
    """Return the importer that recognises a source; None if no importer has its suffix."""
    found = of_file(Path(_file_of(text)), importers)
    if len(found) == 1:
        return found[0]
    suffix = _suffix(text)
    flags = [f"--{importer.kind}" for importer in importers if suffix in importer.suffixes]
    if found:
        parser.error(f"{text}: several importers read this file; say which by {_either(flags)}")
    kinds = {importer.kind for importer in importers}
    missing = [kind for kind in EXTRAS if kind not in kinds and suffix == EXTRAS[kind][0]]
    advices = [f"say which by {_either(flags)}"] if flags else []
    advices += [f"--{kind} {advice(kind)}" for kind in missing]
    if advices:
        parser.error(f"{text}: no importer recognises this file; {'; '.join(advices)}")
    return None


def _either(words: Sequence[str]) -> str:
    return " or ".join(words)


def _source(
    parser: CommandParser, arguments: argparse.Namespace, importer: Importer
) -> ImportedSource:
    text: str = getattr(arguments, _dest(importer))
    given = {action.dest: value for action, value in _given(parser, arguments, importer)}
    settings: dict[str, Any] = {}
    for setting in importer.settings:
        if (dest := _dest(importer, setting.name)) in given:
            value = Path(given[dest]) if setting.type == "path" else given[dest]
            settings[setting.name] = tuple(value) if isinstance(value, list) else value
    if words := compiler_words(arguments):
        if not any(setting.name == "options" for setting in importer.settings):
            parser.error(f"argument {words[0]}: not allowed with --{importer.kind}")
        settings["options"] = tuple(words)
    return ImportedSource(importer, text if importer.takes_names else Path(text), settings)


def _is_needed(parser: CommandParser, argv: Sequence[str]) -> bool:
    """Return True for help, an unknown option, or a path with an unknown suffix."""
    known, end = parser._option_string_actions, [*argv, "--"].index("--")
    paths = [*argv[end + 1 :]]
    for before, word in zip(("", *argv[:end]), argv[:end], strict=False):
        if before in known and known[before].nargs is None:
            continue  # the value of an option
        if word in ("-h", "--help") or (word[:2] == "--" and word.partition("=")[0] not in known):
            return True
        paths += [] if word.startswith("-") else [word]
    return is_sought(argv) or not all(is_known_suffix(_suffix(path)) for path in paths)


def _add(parser: CommandParser, importer: Importer) -> bool:
    """Add the options of one importer, unless one of them is taken."""
    own = argparse.ArgumentParser(add_help=False)
    group = own.add_argument_group(importer.title or f"importer {importer.kind}")
    metavar = "MODULE:FUNCTION" if importer.takes_names else "FILE"
    group.add_argument(f"--{importer.kind}", dest="source", metavar=metavar, help=importer.text)
    names = {"source", *(setting.name for setting in importer.settings)}
    try:
        if importer.add_options is not None:
            importer.add_options(group)
    except Exception as error:  # of another distribution
        refuse(importer.kind, f"its options: {type(error).__name__}: {error}")
        return False
    for action in own._actions:
        taken = [word for word in action.option_strings if word in parser._option_string_actions]
        if taken or action.dest not in names:
            fault = f"option {taken[0]} is taken" if taken else f"{action.dest!r} is not a setting"
            refuse(importer.kind, f"{fault}; its options are left out")
            return False
    for action in own._actions:
        action.dest = _dest(importer, action.dest)
    parser._add_container_actions(own)
    return True


def _dest(importer: Importer, name: str = "source") -> str:
    """Return the name of a setting in the parsed arguments, where importers share no names."""
    return f"{importer.kind}.{name}"


def _given(
    parser: CommandParser, arguments: argparse.Namespace, importer: Importer
) -> list[tuple[argparse.Action, Any]]:
    """Return the options of an importer that have another value than their default."""
    prefix = f"{importer.kind}."
    actions = [action for action in parser._actions if action.dest.startswith(prefix)]
    values = [(action, getattr(arguments, action.dest)) for action in actions]
    return [(action, value) for action, value in values if value != action.default]


def _suffix(text: str) -> str:
    return Path(_file_of(text)).suffix


def _file_of(text: str) -> str:
    """Return the file of FILE.py:FUNCTION; any other text itself."""
    file, _, name = text.rpartition(":")
    return file if file and name.isidentifier() else text

"""The scripts of ``packer completion``, made of the parsers of all commands."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from .parser import CommandParser

# A value is completed by files, folders, a list of words, or nothing.
Kind = Literal["files", "folders", "words", ""]
_FILES = {"FILE", "LIBRARY", "OUTPUT", "SOURCE", "INPUT", "A", "B", "ARGUMENT"}
_COMMON = ("-h", "--help", "--version")


class Value(NamedTuple):
    """The value of an option, or a positional argument."""

    name: str
    kind: Kind
    words: tuple[str, ...] = ()


class Option(NamedTuple):
    """An option: its spellings, its text, its value if it has one."""

    names: tuple[str, ...]
    text: str
    value: Value | None
    is_repeated: bool


class Command(NamedTuple):
    """A command: its options, and what completes its other arguments."""

    name: str
    text: str
    options: tuple[Option, ...]
    argument: Value


def command_of(name: str, text: str, parser: CommandParser) -> Command:
    """Read the options and arguments of a command from its parser."""
    actions = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    options = [_option(action) for action in actions if action.option_strings]
    values = [_value(action) for action in actions if not action.option_strings]
    files = next((value for value in values if value.kind), Value("", ""))
    return Command(name, text, tuple(options), files)


def _option(action: argparse.Action) -> Option:
    value = None if action.nargs == 0 else _value(action)
    is_repeated = isinstance(action, argparse._AppendAction)
    return Option(tuple(action.option_strings), action.help or "", value, is_repeated)


def _value(action: argparse.Action) -> Value:
    name = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if action.choices is not None:
        return Value(name, "words", tuple(map(str, action.choices)))
    return Value(name, "files" if name in _FILES else "folders" if name == "FOLDER" else "")


def bash(commands: Sequence[Command]) -> str:
    """Write the script for bash 4 or newer."""
    return "\n".join(_bash(commands))


def _bash(commands: Sequence[Command]) -> Iterator[str]:
    names = " ".join([*(command.name for command in commands), *_COMMON])
    yield '_packer_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$current"); }'
    yield "_packer_paths() {"
    yield "  compopt -o filenames 2>/dev/null"
    yield '  mapfile -t COMPREPLY < <(compgen "$1" -- "$current")'
    yield "}"
    yield "_packer() {"
    yield "  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}"
    yield "  # bash splits a word at =: --format=tvm is three words"
    yield "  if [[ $current == = ]]; then current="
    yield "  elif [[ $before == = ]]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi"
    yield "  COMPREPLY=()"
    yield f"  if (( COMP_CWORD == 1 )); then _packer_words {shlex.quote(names)}; return; fi"
    yield "  case ${COMP_WORDS[1]} in"
    for command in commands:
        yield f"  {command.name})"
        yield "    case $before in"
        for option in command.options:
            if option.value is not None:
                yield f"    {'|'.join(option.names)}) {_bash_value(option.value)}; return ;;"
        yield "    esac"
        words = " ".join(name for option in command.options for name in option.names)
        yield f"    if [[ $current == -* ]]; then _packer_words {shlex.quote(words)}; return; fi"
        yield f"    {_bash_value(command.argument)} ;;"
    yield "  esac"
    yield "}"
    yield "complete -F _packer packer"


def _bash_value(value: Value) -> str:
    if value.kind == "words":
        return f"_packer_words {shlex.quote(' '.join(value.words))}"
    return {"files": "_packer_paths -f", "folders": "_packer_paths -d"}.get(value.kind, ":")


def zsh(commands: Sequence[Command]) -> str:
    """Write the script for zsh: a file of ``$fpath``, or text for eval after compinit."""
    return "\n".join(_zsh(commands))


def _zsh(commands: Sequence[Command]) -> Iterator[str]:
    yield "#compdef packer"
    yield "_packer() {"
    yield "  local -a commands=("
    yield from (f"    {shlex.quote(f'{c.name}:{c.text}')}" for c in commands)
    yield "  )"
    yield "  if (( CURRENT == 2 )); then"
    yield "    _describe -t commands command commands"
    yield f"    compadd -- {' '.join(_COMMON)}"
    yield "    return"
    yield "  fi"
    yield "  local command=$words[2]"
    yield "  shift words; (( CURRENT-- ))"
    yield "  case $command in"
    for command in commands:
        specs = [spec for option in command.options for spec in _zsh_option(option)]
        argument = command.argument
        if argument.kind:
            specs.append(shlex.quote(f"*:{argument.name}:{_zsh_value(argument)}"))
        yield f"  {command.name}) _arguments -S \\"
        yield " \\\n".join(f"    {spec}" for spec in specs) + " ;;"
    yield "  esac"
    yield "}"
    yield 'if [[ "$funcstack[1]" == _packer ]]; then _packer "$@"; else compdef _packer packer; fi'


def _zsh_option(option: Option) -> Iterator[str]:
    text = "".join(f"\\{c}" if c in "[]:\\" else c for c in option.text)
    others = "" if option.is_repeated else f"({' '.join(option.names)})"
    for name in option.names:
        spelled = f"{others}{'*' if option.is_repeated else ''}{name}"
        if option.value is None:
            yield shlex.quote(f"{spelled}[{text}]")
        else:
            equals = "=" if name.startswith("--") else ""
            value = f"{option.value.name}:{_zsh_value(option.value)}"
            yield shlex.quote(f"{spelled}{equals}[{text}]:{value}")


def _zsh_value(value: Value) -> str:
    if value.kind == "words":
        return f"({' '.join(value.words)})"
    return {"files": "_files", "folders": "_files -/"}.get(value.kind, " ")


def fish(commands: Sequence[Command]) -> str:
    """Write the script for fish."""
    return "\n".join(_fish(commands))


def _fish(commands: Sequence[Command]) -> Iterator[str]:
    yield "function __packer_command"
    yield "  set -l words (commandline -opc)"
    yield '  test "$words[2]" = "$argv[1]"'
    yield "end"
    yield "complete -c packer -f"
    start = "complete -c packer -n '__packer_command \"\"'"
    for command in commands:
        yield f"{start} -a {command.name} -d {_fish_text(command.text)}"
    yield f"{start} -s h -l help -d 'explain the commands'"
    yield f"{start} -l version -d 'print the version'"
    for command in commands:
        start = f"complete -c packer -n '__packer_command {command.name}'"
        for option in command.options:
            names = " ".join(_fish_name(name) for name in option.names)
            value = "" if option.value is None else f" {_fish_value(option.value)}"
            yield f"{start} {names}{value} -d {_fish_text(option.text)}"
        if command.argument.kind:
            yield f"{start} {_fish_value(command.argument).removeprefix('-r ')}"


def _fish_name(name: str) -> str:
    return f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"


def _fish_value(value: Value) -> str:
    if value.kind == "words":
        return f"-x -a {_fish_text(' '.join(value.words))}"
    folders = "-x -a '(__fish_complete_directories)'"
    return {"files": "-r -F", "folders": folders}.get(value.kind, "-x")


def _fish_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"

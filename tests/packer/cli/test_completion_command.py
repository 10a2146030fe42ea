"""packer completion: each shell completes commands, options, values and files."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from packer.cli import COMMANDS, main

from ...support import needs
from ...support.command_line import Packer, refused

FILES = ("model.so", "model.toml", "a folder")
# A line and its completions.
CASES = {
    "packer ex": {"export", "extract"},
    "packer doc": {"doctor"},
    "packer export --emb": {"--embed"},
    "packer export --embed ": {"auto", "c", "llvm", "segment"},
    "packer inspect --ht": {"--html"},
    "packer inspect mod": {"model.so", "model.toml"},
    "packer extract -o a": {"a folder"},
    "packer completion ": {"bash", "zsh", "fish"},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of files."""
    made = tmp_path / "made"
    made.mkdir()
    for name in FILES:
        (made / name).mkdir() if " " in name else (made / name).touch()
    return made


@pytest.fixture
def script(capsys, tmp_path: Path) -> Callable[[str], Path]:
    """``script(shell)``: the script of a shell."""

    def make(shell: str) -> Path:
        assert main(["completion", shell]) == 0
        path = tmp_path / f"script.{shell}"
        path.write_text(capsys.readouterr().out)
        return path

    return make


@pytest.mark.parametrize("typed", CASES)
def test_bash_completes(typed: str, script, folder: Path) -> None:
    """The function that the script registers, called as bash calls it."""
    words = typed.split(" ")
    code = (
        'source "$0"; complete -p packer | grep -q "_packer packer" || exit 1\n'
        'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _packer; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    command = ["bash", "-c", code, str(script("bash")), *words]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert (set(run.stdout.splitlines()), run.stderr) == (CASES[typed], "")


def test_bash_completes_a_value_after_an_equals_sign(script, folder: Path) -> None:
    """Bash splits the word there."""
    code = 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _packer; echo ${COMPREPLY[@]}'
    for value, expected in (("=", "tvm tvm-ffi"), ("tvm-", "tvm-ffi")):
        words = ["packer", "export", "--format", *dict.fromkeys(("=", value))]
        command = ["bash", "-c", code, str(script("bash")), *words]
        assert subprocess.check_output(command, text=True).strip() == expected


@pytest.mark.parametrize("typed", CASES)
def test_fish_completes(typed: str, script, folder: Path) -> None:
    """By its command `complete -C`."""
    needs.program("fish")
    path = script("fish")
    command = ["fish", "--no-config", "-c", f"source {path}; complete -C '{typed}'"]
    environment = os.environ | {"HOME": str(folder.parent)}
    run = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    offered = {line.partition("\t")[0].rstrip("/") for line in run.stdout.splitlines()}
    assert (offered, run.stderr) == (CASES[typed], "")


@pytest.mark.parametrize("typed", [typed for typed in CASES if len(CASES[typed]) == 1])
def test_zsh_completes(typed: str, script, folder: Path) -> None:
    """In a terminal: the Tab key writes the one completion."""
    needs.program("zsh")
    path = script("zsh")
    setup = 'autoload -Uz compinit; compinit -u -D; show() { print -r -- "@$BUFFER@" }\n'
    setup += f"zle -N show; bindkey '^X' show; source {path}; echo rea''dy\n"
    (expected,) = CASES[typed]
    completed = typed[: typed.rindex(" ") + 1] + expected.replace(" ", "\\ ")
    with terminal(["zsh", "-f", "-i"], folder) as exchange:
        assert "ready" in exchange(setup, "ready")
        assert f"@{completed}" in exchange(f"{typed}\t\x18", f"@{completed}")


@contextlib.contextmanager
def terminal(command: list[str], folder: Path):
    """Run a program in a terminal; ``exchange(typed, until)`` returns what it shows."""
    child, screen = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execvpe(command[0], command, os.environ | {"TERM": "dumb", "HOME": str(folder.parent)})

    def exchange(typed: str, until: str) -> str:
        os.write(screen, typed.encode())
        shown, deadline = "", time.monotonic() + 20
        while until not in shown and time.monotonic() < deadline:
            if select.select([screen], [], [], 0.2)[0]:
                shown += os.read(screen, 4096).decode(errors="replace")
        return shown

    try:
        yield exchange
    finally:
        os.close(screen)
        os.kill(child, 9)
        os.waitpid(child, 0)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_has_every_command_and_option(shell: str, script, capsys) -> None:
    """The help of each command lists the same options."""
    text = script(shell).read_text()
    for name in COMMANDS:
        with pytest.raises(SystemExit):
            main([name, "--help"])
        words = capsys.readouterr().out.replace(",", " ").split()
        assert name in text
        for option in {word for word in words if word.startswith("--") and word[2:].isalpha()}:
            assert (f"-l {option[2:]}" if shell == "fish" else option) in text


def test_unknown_shell_is_refused(packer: Packer) -> None:
    """The error lists the shells."""
    assert "choose from" in refused(packer("completion", "csh"), 2)

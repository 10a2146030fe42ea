"""packer export --legacy-calls, and the key of packer.toml: `packer check` tells what they made."""

from __future__ import annotations

from pathlib import Path

from ...support.command_line import ADD, Packer, done, refused


def verdict(packer: Packer) -> str:
    """Return the line of `packer check` about TVM to 2025."""
    lines = done(packer("check", "m.so")).splitlines()
    return next(line for line in lines if line.startswith("pass  TVM to 2025: "))


def test_the_option_and_the_key_make_plain_names_packed(packer: Packer, tmp_path: Path) -> None:
    """Without both the plain names are C functions."""
    done(packer("export", "m.so", "add.c", "--function", ADD))
    assert verdict(packer).endswith("; export with --legacy-calls for it")
    done(packer("export", "m.so", "add.c", "--function", ADD, "--legacy-calls"))
    assert verdict(packer).endswith("packed C functions, which it can call")
    for value, text in (("false", "for it"), ("true", "it can call")):
        project = f'[library]\noutput = "m.so"\nlegacy_calls = {value}\n'
        module = '[module.m]\nkind = "c"\nsources = ["add.c"]\nfunctions = "auto"\n'
        (tmp_path / "packer.toml").write_text(project + module)
        done(packer("export"))
        assert verdict(packer).endswith(text)
    assert done(packer("load", "-q", "m.so", "add", "40", "2")) == "42\n"


def test_a_function_that_it_cannot_call_is_refused(packer: Packer, tmp_path: Path) -> None:
    """In one line, with what to do."""
    (tmp_path / "f.c").write_text("int f(char **names) { return !names; }")
    run = packer("export", "f.so", "f.c", "--function", "f=int(char **names)", "--legacy-calls")
    text = (
        "packer: legacy_calls: function 'f' takes an array for 'names' (char **), which TVM to 2025"
    )
    assert refused(run).startswith(text)
    assert not (tmp_path / "f.so").exists()

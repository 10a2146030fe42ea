"""The table of levels, compared with the compiler's; and the record in a library."""

from __future__ import annotations

import re
import subprocess

import pytest

from packer.levels.choice import _macros_of
from packer.levels.features import feature_bits
from packer.levels.record import CpuRecord, dump_record, parse_record
from packer.levels.table import LEVELS, levels_of

from ..support import needs

COMPILERS = {"x86_64": "gcc", "aarch64": "aarch64-linux-gnu-gcc"}
# Features that no macro of GCC 12 shows: loads, cache and flag instructions of Arm.
WITHOUT_MACRO = {"dcpop", "dcpodp", "lrcpc", "ilrcpc", "paca", "flagm", "flagm2", "sb"}


def macros(compiler: str, *options: str) -> set[str]:
    """Return the macros that a compiler defines."""
    command = [needs.program(compiler), *options, "-dM", "-E", "-x", "c", "/dev/null"]
    text = subprocess.check_output(command, text=True)
    return set(re.findall(r"^#define (\w+)", text, re.MULTILINE))


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
def test_features_of_a_level_are_those_of_the_compiler(level) -> None:
    """Code may use no feature that the load does not ask for."""
    found = macros(COMPILERS[level.machine], *level.options)
    base = {"x86_64": set(), "aarch64": {"fp", "asimd"}}[level.machine]
    used = {name for name in feature_bits(level.machine) if _macros_of(name) & found} | base
    assert used - WITHOUT_MACRO == {*level.features} - WITHOUT_MACRO


@pytest.mark.parametrize("machine", COMPILERS)
def test_levels_contain_the_lower_ones(machine) -> None:
    """They are sorted, and the header knows each feature."""
    levels = list(levels_of(machine).values())
    for lower, higher in zip(levels, levels[1:], strict=False):
        assert {*lower.features} < {*higher.features}
    assert {*levels[-1].features} <= {*feature_bits(machine)}


def test_record_is_read_as_written() -> None:
    """Levels, features and reasons."""
    levels = [level for level in LEVELS if level.name in ("x86-64-v1", "x86-64-v2")]
    text = dump_record(levels, ["a b.c: it has\nconstructors"])
    assert text.startswith("packer-cpu 1\nlevels x86-64-v1 x86-64-v2\nfeatures x86-64-v1\n")
    features = {"x86-64-v1": (), "x86-64-v2": levels[1].features}
    expected = CpuRecord(("x86-64-v1", "x86-64-v2"), features, ("a b.c: it has constructors",))
    assert parse_record(text) == expected
    assert parse_record(f"{text}later words\n") == expected


def test_record_of_a_newer_writer() -> None:
    """It has another first line."""
    with pytest.raises(ValueError, match="first line 'packer-cpu 2', expected 'packer-cpu 1'"):
        parse_record("packer-cpu 2\n")

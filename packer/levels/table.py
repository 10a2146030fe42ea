"""The levels of each machine: their names, compiler options and features.

Features have the same names in `runtime/include/dso_cpu.h`, which tests them. A level has all
features of the lower ones. x86-64: psABI, Micro-Architecture Levels; aarch64: Arm ARM, A2, the
mandatory features of each version that Linux reports in AT_HWCAP.
"""

from __future__ import annotations

from typing import NamedTuple


class Level(NamedTuple):
    """One level of a machine."""

    name: str  # ``"x86-64-v3"``; as users write it, and as DSO_CPU names it
    machine: str  # the name of the machine: ``"x86_64"``
    options: tuple[str, ...]  # what GCC and clang compile with for this level
    llvm_cpu: str  # the same for LLVM
    llvm_features: str  # likewise, as ``"+sve,+sve2"``
    features: tuple[str, ...]  # what a processor needs for its code and for that of lower levels

    @property
    def prefix(self) -> str:
        """The beginning of the hidden names of its functions."""
        return f"__packer_cpu_{_word(self.name)}_"


def _word(name: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in name)


NATIVE = "native"
_V2 = ("cx16", "lahf", "popcnt", "sse3", "ssse3", "sse4_1", "sse4_2")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_A8 = ("fp", "asimd")
_A82 = (*_A8, "crc32", "atomics", "asimdrdm", "dcpop")
# Every processor with SVE2 has the rest of Armv8.5.
_A9 = (
    *(*_A82, "fphp", "asimdhp", "asimdfhm", "asimddp", "jscvt", "fcma", "lrcpc", "ilrcpc"),
    *("paca", "flagm", "flagm2", "frint", "sb", "dcpodp", "sve", "sve2"),
)


def _rows(machine: str, llvm: dict[str, str], features: dict[str, tuple[str, ...]]) -> list[Level]:
    generic = "generic" if machine == "aarch64" else ""  # LLVM has no processors for Arm's versions
    return [
        Level(
            name,
            machine,
            (f"-march={name.removesuffix('-v1')}",),
            generic or name.removesuffix("-v1"),
            llvm.get(name, ""),
            names,
        )
        for name, names in features.items()
    ]


LEVELS = [
    *_rows("x86_64", {}, {"x86-64-v1": (), "x86-64-v2": _V2, "x86-64-v3": _V3, "x86-64-v4": _V4}),
    *_rows(
        "aarch64",
        {"armv8.2-a": "+v8.2a", "armv9-a": "+v9a"},
        {"armv8-a": _A8, "armv8.2-a": _A82, "armv9-a": _A9},
    ),
]


# Importers ask for these: code for every processor, and for wider vectors.
DEFAULT_LEVELS = ("x86-64-v1", "x86-64-v3", "x86-64-v4", "armv8-a", "armv8.2-a", "armv9-a")


def levels_of(machine: str) -> dict[str, Level]:
    """Return the levels of a machine by their names, lowest first."""
    return {level.name: level for level in LEVELS if level.machine == machine}

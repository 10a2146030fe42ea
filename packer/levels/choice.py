"""find_levels(cpu, target): the levels of an export, as callers name them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from runtime.error import ExportError, ToolchainError, near_names

from ..target import Target, find_target, native_triple
from ..toolchain.preprocess import preprocess
from .features import feature_bits
from .table import LEVELS, NATIVE, Level, levels_of

_OPTIONS = {"x86_64": "-march=native", "aarch64": "-mcpu=native"}
# The macro that a compiler defines if its code may use a feature, unless it is __FEATURE__.
_MACROS = {
    "cx16": "__GCC_HAVE_SYNC_COMPARE_AND_SWAP_16",
    "lahf": "__LAHF_SAHF__",
    "asimd": "__ARM_NEON",
    "fp": "__ARM_FP",
    "asimddp": "__ARM_FEATURE_DOTPROD",
    "asimdrdm": "__ARM_FEATURE_QRDMX",
    "asimdfhm": "__ARM_FEATURE_FP16_FML",
    "fphp": "__ARM_FEATURE_FP16_SCALAR_ARITHMETIC",
    "asimdhp": "__ARM_FEATURE_FP16_VECTOR_ARITHMETIC",
    "fcma": "__ARM_FEATURE_COMPLEX",
    "jscvt": "__ARM_FEATURE_JCVT",
    "lrcpc": "__ARM_FEATURE_RCPC",
    "i8mm": "__ARM_FEATURE_MATMUL_INT8",
    "bf16": "__ARM_FEATURE_BF16",
    "pmull": "__ARM_FEATURE_AES",
}


def find_levels(cpu: str | Sequence[str] | None, target: Target) -> tuple[Level, ...]:
    """Return the levels that `cpu` names, lowest first; none for None or ().

    Other machines' levels are not used beside levels of the target's machine. ``"native"`` is the
    level of this processor. Raises ExportError if a name is unknown or given twice, or if
    ``"native"`` is not alone or is for a target that is not this machine; ToolchainError if no
    compiler can be asked what it means.
    """
    names = [cpu] if isinstance(cpu, str) else list(cpu or ())
    if names == [NATIVE]:
        return (_native(target),)
    known = levels_of(target.machine.name)
    others = {level.name for level in LEVELS if level.name not in known}
    names = [name for name in names if name not in others] or names
    for name in names:
        if name not in known:
            raise ExportError(f"cpu: {_unknown(name, target, known)}")
        if names.count(name) > 1:
            raise ExportError(f"cpu: level {name!r} is named twice, expected once")
    return tuple(level for level in known.values() if level.name in names)


def _unknown(name: str, target: Target, known: dict[str, Level]) -> str:
    if name == NATIVE:
        return "'native' with other levels, expected it alone"
    if not known:
        return f"level {name!r}: {target.machine.name} has no levels; drop it, or use 'native'"
    return f"unknown level {name!r} of {target.machine.name}{near_names(name, [*known, NATIVE])}"


def _native(target: Target) -> Level:
    """Return the level of this processor: what the compiler's native option makes use of."""
    here = find_target(native_triple()).machine
    if target.machine is not here:
        text = f"cpu: 'native' is {here.name}, but the target is {target.triple!r}"
        raise ExportError(f"{text}; name levels of {target.machine.name}")
    if (option := _OPTIONS.get(here.name)) is None:
        raise ExportError(f"cpu: 'native' is unknown for {here.name}; drop it")
    macros = set(re.findall(r"^#define (\w+)", preprocess(b"", "c", (option, "-dM")), re.MULTILINE))
    features = [name for name in feature_bits(here.name) if _macros_of(name) & macros]
    if not features:
        text = f"cpu: the compiler defines no macro of a feature for {option}, expected some"
        raise ToolchainError(f"{text}; name levels instead of 'native'")
    return Level(NATIVE, here.name, (option,), NATIVE, "", tuple(features))


def _macros_of(name: str) -> set[str]:
    default = (f"__{name.upper()}__", f"__ARM_FEATURE_{name.upper()}")
    return {_MACROS[name]} if name in _MACROS else {*default}

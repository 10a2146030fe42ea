"""The guarantees of the manylinux tags, as tables: libraries, and their symbol versions.

PEP 600 says that a wheel tagged manylinux_X_Y works on every common distribution with glibc X.Y.
Which libraries these have, and with which symbol versions, is the policy of auditwheel; PyPI's
users rely on it. A tag between two of the policy is rounded up, so that auditwheel agrees.
"""

from __future__ import annotations

import re

Version = tuple[int, ...]

# The tags of the policy, by the glibc that each one needs.
_TAGS: tuple[Version, ...] = tuple(
    (2, minor) for minor in (5, 12, 17, 24, 26, 27, 28, 31, 34, 35, 36, 37, 38, 39, 40, 41)
)
# The names that these had before PEP 600; pip before 20.3 knows no others.
_ALIASES = {(2, 5): "manylinux1", (2, 12): "manylinux2010", (2, 17): "manylinux2014"}
# The first tag of each machine: no distribution for it has an older glibc.
_FIRST = {
    "x86_64": (2, 5),
    "aarch64": (2, 17),
    "ppc64le": (2, 17),
    "riscv64": (2, 31),
    "loongarch64": (2, 36),
}
# The libraries that every common distribution has, and the first tag that says so.
_LIBRARIES = dict.fromkeys(
    (
        "libGL.so.1", "libICE.so.6", "libSM.so.6", "libX11.so.6", "libXext.so.6",
        "libXrender.so.1", "libanl.so.1", "libatomic.so.1", "libc.so.6", "libdl.so.2",
        "libgcc_s.so.1", "libglib-2.0.so.0", "libgobject-2.0.so.0", "libgthread-2.0.so.0",
        "libm.so.6", "libnsl.so.1", "libpthread.so.0", "libresolv.so.2", "librt.so.1",
        "libstdc++.so.6", "libutil.so.1", "libz.so.1",
    ),
    (2, 5),
) | {"libexpat.so.1": (2, 12), "libmvec.so.1": (2, 24)}  # fmt: skip
_LOADER = re.compile(r"ld-linux.*|ld64\.so\.[12]")  # of every machine
# The newest symbol version that a tag guarantees, for each prefix: (version, first tag), ascending.
_NEWEST: dict[str, tuple[tuple[Version, Version], ...]] = {
    "GLIBCXX": (
        ((3, 4, 8), (2, 5)), ((3, 4, 13), (2, 12)), ((3, 4, 19), (2, 17)), ((3, 4, 22), (2, 24)),
        ((3, 4, 24), (2, 27)), ((3, 4, 28), (2, 31)), ((3, 4, 29), (2, 34)), ((3, 4, 30), (2, 35)),
        ((3, 4, 33), (2, 39)),
    ),
    "CXXABI": (
        ((1, 3, 1), (2, 5)), ((1, 3, 3), (2, 12)), ((1, 3, 7), (2, 17)), ((1, 3, 10), (2, 24)),
        ((1, 3, 11), (2, 27)), ((1, 3, 12), (2, 31)), ((1, 3, 13), (2, 34)), ((1, 3, 15), (2, 39)),
    ),
    "GCC": (
        ((4, 2, 0), (2, 5)), ((4, 3, 0), (2, 12)), ((4, 8, 0), (2, 17)), ((7, 0, 0), (2, 27)),
        ((12, 0, 0), (2, 35)), ((14, 0, 0), (2, 39)),
    ),
    "LIBATOMIC": (((1, 2), (2, 24)),),
    "ZLIB": (((1, 2, 2, 4), (2, 12)), ((1, 2, 5, 2), (2, 17)), ((1, 2, 9), (2, 27)),
             ((1, 2, 12), (2, 37))),
}  # fmt: skip
# The same for versions without a number.
_NAMED = {"CXXABI_TM_1": (2, 17), "CXXABI_FLOAT128": (2, 24), "GLIBC_ABI_DT_RELR": (2, 36)}
_NUMBERED = re.compile(r"([A-Z]+)_(\d{1,4}(?:\.\d{1,4}){0,3})")


def first_tag(machine: str) -> Version | None:
    """Return the glibc of the machine's first tag; None if no manylinux tag has the machine."""
    return _FIRST.get(machine)


def tag_of_library(name: str) -> Version | None:
    """Return the first tag whose distributions have a library; None if none does."""
    return (2, 5) if _LOADER.fullmatch(name) else _LIBRARIES.get(name)


def tag_of_version(version: str) -> Version | None:
    """Return the first tag that guarantees a symbol version; None if none does.

    A version of another library, whose prefix is not in the table, is never a reason against a
    tag: the library itself is allowed or not.
    """
    if version in _NAMED:
        return _NAMED[version]
    match = _NUMBERED.fullmatch(version)
    prefix = match[1] if match else version.partition("_")[0]
    if prefix != "GLIBC" and prefix not in _NEWEST:
        return _TAGS[0]
    if match is None:
        return None
    numbers = tuple(map(int, match[2].split(".")))
    if prefix == "GLIBC":
        return next((tag for tag in _TAGS if numbers <= tag), numbers[:2])
    return next((tag for newest, tag in _NEWEST[prefix] if numbers <= newest), None)


def tags(glibc: Version, machine: str) -> list[str]:
    """Return the platform tags for a glibc: that of PEP 600 first, then the older name of it."""
    names = [f"manylinux_{glibc[0]}_{glibc[1]}"]
    if glibc in _ALIASES:
        names.append(_ALIASES[glibc])
    return [f"{name}_{machine}" for name in names]

"""The rules of a hardened load: no code of a library runs while it is opened.

`violations` reads a file and runs nothing of it. `runtime.harden` refuses the first violation, and
`packer check --policy strict` lists all.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

from . import image as elf
from .image import Image, Relocation
from .walk import OwnCodeError, Walk, processors, relative_value

if TYPE_CHECKING:
    from collections.abc import Iterator

RULES = (
    "segments",
    "stack",
    "text relocations",
    "search paths",
    "needed libraries",
    "resolvers",
    "start-up names",
    "constructors",
    "destructors",
)

# The libraries of C, of compilers and of their runtimes, by SONAME: glibc, GCC, LLVM, musl.
SYSTEM = (
    *("libc.so.6", "libm.so.6", "libmvec.so.1", "libdl.so.2", "libpthread.so.0", "librt.so.1"),
    *("ld-linux*.so.*", "ld64.so.*", "libgcc_s.so.1", "libstdc++.so.6", "libatomic.so.1"),
    *("libgomp.so.1", "libquadmath.so.0", "libgfortran.so.5"),
    *("libomp.so", "libomp.so.5", "libc++.so.1", "libc++abi.so.1", "libunwind.so.1"),
    *("libc.so", "libc.musl-*.so.1", "ld-musl-*.so.1"),
)

# The functions of other libraries that a compiler's start-up code calls.
AT_START = (
    *("__gmon_start__", "_ITM_registerTMCloneTable", "_Jv_RegisterClasses"),
    *("__register_frame_info", "__getauxval"),
)
AT_END = ("__cxa_finalize", "_ITM_deregisterTMCloneTable", "__deregister_frame_info")

_ORIGIN = ("$ORIGIN", "${ORIGIN}")
_MOST_CALLED = 16  # a compiler adds two or three
_CONSTRUCTOR_HINT = "remove it, and static objects of C++ with it"


class Violation(NamedTuple):
    """One part of a file that a rule refuses.

    Attributes
    ----------
    rule : str
        One of `RULES`.
    text : str
        The place, and what is there.
    hint : str
        What to do.
    """

    rule: str
    text: str
    hint: str


class Rules(NamedTuple):
    """The exceptions from the rules.

    Attributes
    ----------
    needed : tuple of str
        Further libraries that it may need, by name; ``*`` stands for any text.
    origin : bool
        True if it may search for libraries in folders below or beside its own (``$ORIGIN``).
    """

    needed: tuple[str, ...] = ()
    origin: bool = False


def violations(data: memoryview, rules: Rules) -> Iterator[Violation]:
    """Iterate over all that the rules refuse in the bytes of a library.

    Raises
    ------
    ValueError
        If the file is damaged; the static check of a load has a better message.
    """
    image = Image(data)
    yield from _segments(image)
    yield from _text_relocations(image)
    yield from _search_paths(image, rules)
    yield from _needed(image, rules)
    yield from _resolvers(image)
    yield from _start_up_names(image)
    yield from _functions(image, "constructors", AT_START)
    yield from _functions(image, "destructors", AT_END)


def _segments(image: Image) -> Iterator[Violation]:
    for index, segment in enumerate(image.segments):
        both = segment.flags & elf.PF_W and segment.flags & elf.PF_X
        if segment.type == elf.PT_LOAD and both:
            text = f"program header {index}: expected not both writable and executable"
            yield Violation("segments", text, "link without -z rwx or --omagic")
    stacks = [segment.flags for segment in image.segments if segment.type == elf.PT_GNU_STACK]
    if not stacks or any(flags & elf.PF_X for flags in stacks):
        found = "an executable one" if stacks else "none, which makes the stack executable"
        text = f"program headers: PT_GNU_STACK, expected one without X, found {found}"
        yield Violation("stack", text, "link with -z noexecstack")


def _text_relocations(image: Image) -> Iterator[Violation]:
    flags = image.values(elf.DT_FLAGS)
    if image.values(elf.DT_TEXTREL) or any(value & elf.DF_TEXTREL for value in flags):
        text = "dynamic section: DT_TEXTREL, expected no relocations that write to code"
        yield Violation("text relocations", text, "compile with -fPIC")


def _search_paths(image: Image, rules: Rules) -> Iterator[Violation]:
    for tag, name in ((elf.DT_RPATH, "DT_RPATH"), (elf.DT_RUNPATH, "DT_RUNPATH")):
        folders = [folder for text in image.texts(tag) for folder in text.split(":")]
        for folder in folders:
            first = folder.split("/", 1)[0]
            if not (rules.origin and first in _ORIGIN):
                expected = "folders that begin with $ORIGIN" if rules.origin else "none"
                text = f"dynamic section: {name}, expected {expected}, found {folder!r}"
                hint = "link without -rpath, or remove it with patchelf --remove-rpath"
                yield Violation("search paths", text, hint)


def _needed(image: Image, rules: Rules) -> Iterator[Violation]:
    allowed = (*SYSTEM, *rules.needed)
    for name in image.texts(elf.DT_NEEDED):
        if "/" in name or not any(fnmatchcase(name, pattern) for pattern in allowed):
            text = f"dynamic section: DT_NEEDED, expected a library of the list, found {name!r}"
            hint = "link it statically, or allow it by name"
            yield Violation("needed libraries", text, hint)


def _resolvers(image: Image) -> Iterator[Violation]:
    """Resolvers run when the loader binds their symbol, or the relocation that names them."""
    hint = "compile without target_clones and the attribute ifunc"
    processor = processors().get(image.machine)
    found = image.has_relocation(processor.resolved) if processor is not None else None
    if found is not None:
        name = image.name_at(found.addend)
        text = f"relocation at {found.place:#x}: expected no resolver, found"
        yield Violation("resolvers", f"{text} {_shown(name, found.addend)}", hint)
    if (symbol := image.resolver()) is not None:
        text = f"dynamic symbols: expected no resolver, found {_shown(symbol.name, symbol.address)}"
        yield Violation("resolvers", text, hint)


def _start_up_names(image: Image) -> Iterator[Violation]:
    """A library that defines such a name would have it called by the start-up code of others."""
    for symbol in image.defined((*AT_START, *AT_END)):
        text = f"dynamic symbols: expected no function of start-up code, found {symbol.name!r}"
        yield Violation("start-up names", text, "rename it, or make it static")


def _functions(image: Image, rule: str, allowed: tuple[str, ...]) -> Iterator[Violation]:
    """Follow the functions that the loader calls; those of a compiler only call its runtime."""
    processor = processors().get(image.machine)
    for index, (where, call) in enumerate(_calls(image, rule)):
        if index == _MOST_CALLED:
            text = (
                f"{where}: more than {_MOST_CALLED} functions, expected only what a compiler adds"
            )
            yield Violation(rule, text, _CONSTRUCTOR_HINT)
            return
        address = call if isinstance(call, int) else None
        try:
            if processor is None:
                raise OwnCodeError(f"code of machine {image.machine} cannot be examined here")
            if isinstance(call, Relocation):
                if call.type in processor.symbolic:
                    raise OwnCodeError(f"calls {image.symbol(call.symbol).name!r}")
                address = relative_value(image, processor, call)
            if address is None:
                raise OwnCodeError("calls an address that is stored without one relocation")
            Walk(image, processor, allowed).follow(address, may_be_empty="[" not in where)
        except OwnCodeError as error:
            shown = _shown(image.name_at(address), address) if address is not None else "a call"
            text = f"{where}: expected only what a compiler adds, found {shown}, which {error}"
            yield Violation(rule, text, _CONSTRUCTOR_HINT)


def _calls(image: Image, rule: str) -> Iterator[tuple[str, int | Relocation | None]]:
    """Iterate over what the loader calls: an address, or the relocation that gives it."""
    tag, arrays = elf.CONSTRUCTORS if rule == "constructors" else elf.DESTRUCTORS
    for address in image.values(tag):
        yield elf.TAG_NAMES[tag], address
    for array, size in arrays:
        starts, sizes = image.values(array), image.values(size)
        count = min(sizes[0] // 8, _MOST_CALLED + 1) if starts and sizes else 0
        for index in range(count):
            found = image.relocations_at(starts[0] + 8 * index)
            yield f"{elf.TAG_NAMES[array]}[{index}]", found[0] if len(found) == 1 else None


def _shown(name: str, address: int) -> str:
    return f"{name!r} at {address:#x}" if name else f"a function at {address:#x}"

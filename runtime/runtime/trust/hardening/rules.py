"""The rules of a hardened load: no code of a library runs while it is opened.

`violations` reads a file and runs nothing of it. `runtime.harden` refuses the first violation, and
`packer check --policy strict` lists all.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

from ... import elf
from .forms import OwnCodeError, StartUp, called, machines, relative_value
from .image import Image, Relocation

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

_TAG_NAMES = {
    elf.DT_INIT: "DT_INIT",
    elf.DT_FINI: "DT_FINI",
    elf.DT_INIT_ARRAY: "DT_INIT_ARRAY",
    elf.DT_FINI_ARRAY: "DT_FINI_ARRAY",
    elf.DT_PREINIT_ARRAY: "DT_PREINIT_ARRAY",
}
# Functions that the loader calls: rule, form, tag of the function or array, tag of its size.
_CALLED = (
    ("constructors", "init", elf.DT_INIT, None),
    ("constructors", "constructor", elf.DT_INIT_ARRAY, elf.DT_INIT_ARRAYSZ),
    ("constructors", "constructor", elf.DT_PREINIT_ARRAY, elf.DT_PREINIT_ARRAYSZ),
    ("destructors", "fini", elf.DT_FINI, None),
    ("destructors", "destructor", elf.DT_FINI_ARRAY, elf.DT_FINI_ARRAYSZ),
)

_ORIGIN = ("$ORIGIN", "${ORIGIN}")
_MAX_CALLED = 16  # a compiler adds two or three
_CONSTRUCTOR_HINT = "remove it, and static objects of C++ with it"


class Violation(NamedTuple):
    """One part of a file that a rule refuses."""

    rule: str  # one of `RULES`
    text: str  # the place, and what is there
    hint: str  # what to do


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
    yield from _functions(image)


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
    machine = machines().get(image.machine_number)
    found = image.has_relocation(machine.resolved) if machine is not None else None
    if found is not None:
        name = image.name_at(found.addend)
        text = f"relocation at {found.place:#x}: expected no resolver, found"
        yield Violation("resolvers", f"{text} {_shown(name, found.addend)}", hint)
    if (symbol := image.resolver()) is not None:
        text = f"dynamic symbols: expected no resolver, found {_shown(symbol.name, symbol.address)}"
        yield Violation("resolvers", text, hint)


def _start_up_names(image: Image) -> Iterator[Violation]:
    """Refuse functions with names that the start-up code of other libraries calls."""
    for symbol in image.defined([name for _, form, _, _ in _CALLED for name in called(form)]):
        text = f"dynamic symbols: expected no function of start-up code, found {symbol.name!r}"
        yield Violation("start-up names", text, "rename it, or make it static")


def _functions(image: Image) -> Iterator[Violation]:
    """Compare the functions that the loader calls with the functions that compilers add."""
    machine = machines().get(image.machine_number)
    start_up = StartUp(image, machine) if machine is not None else None
    for index, (rule, where, form, call) in enumerate(called_functions(image)):
        if index == _MAX_CALLED:
            text = f"{where}: more than {_MAX_CALLED} functions, expected only what a compiler adds"
            yield Violation(rule, text, _CONSTRUCTOR_HINT)
            return
        address = call if isinstance(call, int) else None
        try:
            if machine is None or start_up is None:
                found = f"code of machine {image.machine_number}"
                raise OwnCodeError(f"{found} cannot be examined here")
            if isinstance(call, Relocation):
                if call.type in machine.symbolic:
                    raise OwnCodeError(f"calls {image.symbol(call.symbol).name!r}")
                address = relative_value(image, machine, call)
            if address is None:
                raise OwnCodeError("calls an address that is stored without one relocation")
            start_up.check(form, address)
        except OwnCodeError as error:
            shown = _shown(image.name_at(address), address) if address is not None else "a call"
            text = f"{where}: expected only what a compiler adds, found {shown}, which {error}"
            yield Violation(rule, text, _CONSTRUCTOR_HINT)


def called_functions(image: Image) -> Iterator[tuple[str, str, str, int | Relocation | None]]:
    """Iterate over the rule, the place, the form, and the address or the relocation with it."""
    for rule, form, tag, size_tag in _CALLED:
        if size_tag is None:
            yield from ((rule, _TAG_NAMES[tag], form, value) for value in image.values(tag))
            continue
        starts, sizes = image.values(tag), image.values(size_tag)
        count = min(sizes[0] // 8, _MAX_CALLED + 1) if starts and sizes else 0
        for index in range(count):
            found = image.relocations_at(starts[0] + 8 * index)
            call = found[0] if len(found) == 1 else None
            yield rule, f"{_TAG_NAMES[tag]}[{index}]", form, call


def _shown(name: str, address: int) -> str:
    return f"{name!r} at {address:#x}" if name else f"a function at {address:#x}"

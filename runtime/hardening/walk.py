"""Follow the code that a load runs, instruction by instruction, without running it.

A compiler's start-up files (crti.o, crtbeginS.o) add functions to every library. Symbols name
them, but a name proves nothing, and a stripped library has none. So the code itself is followed, on
every path: it calls functions of the compiler's runtime, which other libraries define; besides it
may compute, use its own frame, and store in zeroed variables of the library. Code that does
anything else is not shown to be the compiler's.

A value is a number; a Slot, the 8 bytes at an address as the loader fills them; a Frame, an address
on the stack, from its top at entry; an Entry, the value of a register at entry; or None if it is
unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from .image import PACKED, PF_W, PF_X, Relocation

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from .image import Image

_MAX_STEPS = 500  # a compiler's functions need 60
_MAX_INSTRUCTION = 16
_MAX_FRAME = 4096


class Slot(NamedTuple):
    """The contents of 8 bytes of the library, as they are when it is loaded."""

    address: int


class Frame(NamedTuple):
    """An address on the stack; 0 is its top when the function is entered."""

    offset: int


class Entry(NamedTuple):
    """The value of a register when the function is entered; -1 is the address of its caller."""

    register: int


CALLER = Entry(-1)
Value = int | Slot | Frame | Entry | None


class OwnCodeError(Exception):
    """The code does something else than the start-up code of a compiler."""


class State(NamedTuple):
    """The registers, and the words on the stack by offset."""

    registers: list[Value]
    stack: dict[int, Value]

    def copy(self) -> State:
        """Return a copy that an instruction may change."""
        return State([*self.registers], {**self.stack})

    def key(self) -> tuple[object, ...]:
        """Return a hashable form."""
        return tuple(self.registers), frozenset(self.stack.items())


class Processor(Protocol):
    """The instructions and the calling convention of a processor."""

    @property
    def kept(self) -> Collection[int]:
        """The registers that a function keeps for its caller, the stack pointer aside."""

    @property
    def relative(self) -> int:
        """The relocation type that stores base + addend."""

    @property
    def resolved(self) -> int:
        """The relocation type that stores the result of a resolver."""

    @property
    def symbolic(self) -> Collection[int]:
        """The relocation types that store the address of a symbol."""

    def enter(self) -> State:
        """Return the state at the first instruction."""

    def step(self, walk: Walk, place: int, state: State) -> list[Value]:
        """Run one instruction on the state; return where it may continue."""

    def call_outside(self, state: State) -> Value:
        """Forget what a function may change, and return where it returns to."""

    def stack_pointer(self, state: State) -> Value:
        """Return the stack pointer after the return to the caller, 0 if it is balanced."""


class Walk:
    """One function and all that it calls.

    Parameters
    ----------
    image : Image
        The library.
    processor : Processor
        That of its machine.
    allowed : collection of str
        The functions of other libraries that may be called.
    """

    def __init__(self, image: Image, processor: Processor, allowed: Collection[str]) -> None:
        self._image, self._processor, self._allowed = image, processor, allowed
        self._calls: set[str] = set()
        self._stores: set[tuple[int, int]] = set()
        self._slots: set[int] = set()

    def follow(self, entry: int, *, may_be_empty: bool) -> None:
        """Follow every path from an address to its end.

        Raises OwnCodeError if the code is not a compiler's, ValueError if the file is damaged. A
        function that calls nothing must be empty, if that is allowed.
        """
        pending: list[tuple[Value, State]] = [(entry, self._processor.enter())]
        seen = set()
        for _ in range(_MAX_STEPS):
            if not pending:
                if not self._calls and (self._stores or not may_be_empty):
                    raise OwnCodeError("calls nothing of a compiler's runtime")
                return self._check_stores()
            value, state = pending.pop()
            place = self._place(value, state)
            if place is None or (place, state.key()) in seen:
                continue
            seen.add((place, state.key()))
            targets = self._processor.step(self, place, state)
            pending.extend((target, state.copy()) for target in targets)
        raise OwnCodeError(f"more than {_MAX_STEPS} steps")

    def code(self, place: int) -> bytes:
        """Return the bytes of an instruction, and some after it."""
        segment = self._image.segment_at(place)
        if segment is None or not segment.flags & PF_X or segment.flags & PF_W:
            raise OwnCodeError(f"{place:#x} is no code")
        left = segment.address + segment.nbytes - place
        return bytes(self._image.at(place, max(1, min(left, _MAX_INSTRUCTION))))

    def store(self, address: int, nbytes: int) -> None:
        """Note that the code writes there."""
        self._stores.add((address, nbytes))

    def _place(self, value: Value, state: State) -> int | None:
        """Return the address at which to continue; None after the return to the caller."""
        while isinstance(value, Slot):
            target = self._filled(value)
            value = self._processor.call_outside(state) if target is None else target
        if isinstance(value, int):
            return value
        if value != CALLER:
            raise OwnCodeError("jumps to an address that is computed or read")
        kept = all(state.registers[i] == Entry(i) for i in self._processor.kept)
        if not kept or self._processor.stack_pointer(state) != Frame(0):
            raise OwnCodeError("returns with other registers than it was called with")
        return None

    def _filled(self, slot: Slot) -> int | None:
        """Return the address that the loader stores in a slot; None for an allowed function."""
        self._slots.add(slot.address)
        found = self._image.relocations_at(slot.address)
        if len(found) != 1 or found[0].place != slot.address:
            raise OwnCodeError(f"calls what is stored at {slot.address:#x}")
        if found[0].type in self._processor.symbolic:
            symbol = self._image.symbol(found[0].symbol)
            if symbol.section != 0 or found[0].addend != 0 or symbol.name not in self._allowed:
                raise OwnCodeError(f"calls {symbol.name!r}")
            self._calls.add(symbol.name)
            return None
        return relative_value(self._image, self._processor, found[0])

    def _check_stores(self) -> None:
        """Zeroed variables are the only place where code of a compiler stores something."""
        for address, nbytes in self._stores:
            segment = self._image.segment_at(address, nbytes)
            if segment is None or not segment.flags & PF_W:
                raise OwnCodeError(f"stores at {address:#x}, which is no variable")
            if address < segment.address + segment.nbytes:
                raise OwnCodeError(f"stores at {address:#x}, which is not a zeroed variable")
            if any(slot - nbytes < address < slot + 8 for slot in self._slots):
                raise OwnCodeError(f"stores at {address:#x}, and calls what is there")


def check_frame(pointer: Value) -> None:
    """Refuse a stack pointer outside of the function's own frame."""
    if not isinstance(pointer, Frame) or not -_MAX_FRAME <= pointer.offset <= 0:
        raise OwnCodeError("moves the stack pointer out of its frame")


def relative_value(image: Image, processor: Processor, found: Relocation) -> int:
    """Return base + addend, with 0 as base; raises OwnCodeError for other relocations."""
    if found.type == PACKED:
        return image.word(found.place)
    if found.type != processor.relative:
        what = "what a resolver returns" if found.type == processor.resolved else "another address"
        raise OwnCodeError(f"calls {what} through {found.place:#x}")
    return found.addend


def processors() -> Mapping[int, Processor]:
    """Return the known processors by their number (e_machine)."""
    from .aarch64 import AArch64
    from .image import EM_AARCH64, EM_X86_64
    from .x86_64 import X86

    return {EM_X86_64: X86(), EM_AARCH64: AArch64()}

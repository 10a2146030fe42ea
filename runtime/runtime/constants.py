"""The constants and variables of a library's C code: the text of ``__packer_constants``.

    packer-constants 1
    int SIZE 4096
    float PI 3.141592653589793
    text VERSION "1.2.3"                JSON
    bytes MAGIC 28b52ffd                text that is not UTF-8, in hexadecimal digits
    enum color RED 0 GREEN 1            an enum with a name, and its names that are known
    global count i32                    a variable: its code; of an array with its extents; after :
                                        or, if it is const, ! a member's code (docs/format.md)
    left rows an array of struct row    one that the export left out, with the reason

A NUL ends the text. Unknown keys are skipped.
"""

from __future__ import annotations

from _collections_abc import Mapping

from .abi import CONSTANTS
from .error import BlobFormatError, ConstantNotFoundError, near_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from enum import IntEnum

Value = int | float | str | bytes
FIRST_LINE = "packer-constants 1"
MAX_NBYTES = 1 << 24


class Enum:
    """An enum: its name, and the values of its names."""

    __slots__ = ("members", "name")

    def __init__(self, name: str, members: Mapping[str, int]) -> None:
        self.name, self.members = name, members


class ConstantsRecord:
    """The constants of one library, as its record has them.

    `values` has the values without the members of enums with a name, `globals` the codes of the
    variables, `left_out` the reasons of what was not exported.
    """

    def __init__(self) -> None:
        self.values: dict[str, Value] = {}
        self.enums: list[Enum] = []
        self.globals: dict[str, str] = {}
        self.left_out: dict[str, str] = {}

    def plain(self) -> dict[str, Value]:
        """Return the values of all constants, members of enums included."""
        members = {name: value for enum in self.enums for name, value in enum.members.items()}
        return {**members, **self.values}


def dump_constants(record: ConstantsRecord) -> str:
    """Write the text, without the NUL; empty without constants and variables."""
    from json import dumps

    lines = [
        f"enum {e.name} {' '.join(f'{n} {v}' for n, v in e.members.items())}" for e in record.enums
    ]
    for name, value in record.values.items():
        if isinstance(value, bytes):
            lines.append(f"bytes {name} {value.hex()}".rstrip())
        elif isinstance(value, str):
            lines.append(f"text {name} {dumps(value)}")
        else:
            lines.append(f"{'int' if isinstance(value, int) else 'float'} {name} {value!r}")
    lines += [f"global {name} {code}" for name, code in record.globals.items()]
    lines += [f"left {name} {' '.join(why.split())}" for name, why in record.left_out.items()]
    return "\n".join([FIRST_LINE, *lines, ""]) if lines else ""


def parse_constants(data: bytes | memoryview | None, path: str = "") -> ConstantsRecord:
    """Parse the bytes of ``__packer_constants``; None gives an empty record.

    Raises BlobFormatError if they are not such a record, or have more than 16 MiB.
    """
    record = ConstantsRecord()
    try:
        if data is not None:
            _parse(data, record)
    except ValueError as error:
        text = f"{path}: {CONSTANTS}: {error}; export the library again"
        raise BlobFormatError(text.removeprefix(": "), path=path or None, offset=0) from error
    return record


def _parse(data: bytes | memoryview, record: ConstantsRecord) -> None:
    if len(data) > MAX_NBYTES:
        raise ValueError(f"{len(data)} bytes, expected at most {MAX_NBYTES}")
    text, nul, rest = bytes(data).partition(b"\0")
    if not nul or rest:
        raise ValueError("expected text that ends with its only NUL")
    first, *lines = text.decode().split("\n")
    if first != FIRST_LINE:
        raise ValueError(f"first line {first[:40]!r}, expected {FIRST_LINE!r}")
    for line in lines:
        key, _, rest_of_line = line.partition(" ")
        name, _, value = rest_of_line.partition(" ")
        try:
            _read_line(record, key, name, value)
        except (ValueError, RecursionError):
            raise ValueError(f"line {line[:80]!r}, expected a name and its value") from None


def _read_line(record: ConstantsRecord, key: str, name: str, value: str) -> None:
    if key == "int":
        record.values[name] = _integer(value)
    elif key == "float":
        record.values[name] = float(value)
    elif key == "text":
        from .serial.strict_json import parse_json

        record.values[name] = str(parse_json(value.encode()))
    elif key == "bytes":
        record.values[name] = bytes.fromhex(value)
    elif key == "enum":
        words = value.split(" ")
        if len(words) % 2:
            raise ValueError(value)
        members = {words[i]: _integer(words[i + 1]) for i in range(0, len(words) - 1, 2)}
        record.enums.append(Enum(name, members))
    elif key == "left":
        record.left_out[name] = value
    elif key == "global":
        from re import fullmatch

        if not fullmatch(r"[^ \[]+|[:!][^ ]+|[*&][a-z0-9]+(\[\d{0,18}\])+", value):
            raise ValueError(value)
        record.globals[name] = value


def _integer(text: str) -> int:
    if len(text) > 20:
        raise ValueError(text)
    return int(text)


def named_values(record: ConstantsRecord) -> dict[str, Value | type[IntEnum]]:
    """Return the constants as Python has them: names of enums as members of an IntEnum.

    The class of each enum is among them by its name, unless a constant has that name.
    """
    from enum import IntEnum

    found: dict[str, Value | type[IntEnum]] = {}
    classes: dict[str, Value | type[IntEnum]] = {}
    for enum in record.enums:
        members = {name: v for name, v in enum.members.items() if _is_member(name)}
        made = IntEnum(enum.name, members, module=__name__)  # type: ignore[misc]
        classes[enum.name] = made
        found.update(enum.members)
        found.update(made.__members__)
    return {**classes, **found, **record.values}


def _is_member(name: str) -> bool:
    """Return True for a name that a member of an Enum can have."""
    return name != "mro" and not (name[0] == "_" and name[-1] == "_")


def not_found(
    what: str, name: str, names: list[str], left_out: Mapping[str, str]
) -> ConstantNotFoundError:
    """Make the error for a name that the tree does not have."""
    if name in left_out:
        text = f"{what} {name!r} is not exported: {left_out[name]}"
    else:
        text = f"no {what} {name!r} in the tree{near_names(str(name), names)}"
    return ConstantNotFoundError(text, name=name)


class Constants(Mapping[str, "Value | type[IntEnum]"]):
    """A read-only view of the constants of a tree: ``constants["SIZE"]``, ``constants.SIZE``.

    `parts` are the constants of each module; of equal names the first is found. `left_out` has the
    reasons of constants that an export left out.
    """

    def __init__(
        self, parts: Iterable[Mapping[str, Value | type[IntEnum]]], left_out: Mapping[str, str]
    ) -> None:
        self._parts = list(parts)
        self._left_out = left_out

    def __getitem__(self, name: str) -> Value | type[IntEnum]:
        for part in self._parts:
            if name in part:
                return part[name]
        raise not_found("constant", name, list(self), self._left_out)

    def __getattr__(self, name: str) -> Value | type[IntEnum]:
        if name.startswith("__"):  # of Python's protocols
            raise AttributeError(name)
        value = self[name]
        self.__dict__.setdefault(name, value)  # the next access finds it here
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for part in self._parts for name in part))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def __repr__(self) -> str:
        return f"<Constants of {len(self)} names>"

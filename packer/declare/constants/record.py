"""The record of all constants and variables of a library: the text of ``__packer_constants``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from runtime.constants import MAX_NBYTES, ConstantsRecord, dump_constants
from runtime.error import ExportError

from ..c.expression import Text, Value
from .found import without

if TYPE_CHECKING:
    from runtime.constants import Value as PlainValue

    from ...modules.host import HostModule


def constants_text(hosts: Sequence[HostModule]) -> str:
    """Write the text, without the NUL; empty if no module has constants or variables.

    A name that has different values in two modules is left out. Raises ExportError if the text is
    too large.
    """
    record, differing = ConstantsRecord(), _differing(hosts)
    for host in hosts:
        _add(record, host, differing)
    record.left_out |= differing
    text = dump_constants(record)
    if len(text.encode()) >= MAX_NBYTES:
        what = f"constants: {len(text)} bytes, expected less than {MAX_NBYTES}"
        raise ExportError(f"{what}; choose some by their names (constants)")
    return text


def _differing(hosts: Sequence[HostModule]) -> dict[str, str]:
    """Return the constants that have another value, or are a variable, in another module."""
    owners: dict[str, tuple[HostModule, PlainValue | None]] = {
        name: (host, None) for host in hosts for name in host.c_globals
    }
    found: dict[str, str] = {}
    for host in hosts:
        for name, value in host.c_constants.values.items():
            other, known = owners.setdefault(name, (host, _plain(value)))
            if known != _plain(value):
                found[name] = f"{other!r} and {host!r} have different values of it; rename one"
    return found


def _add(record: ConstantsRecord, host: HostModule, left_out: Collection[str]) -> None:
    constants = without(host.c_constants, left_out)
    members = {name for enum in constants.enums for name in enum.members}
    names = {enum.name for enum in record.enums}
    record.enums += [enum for enum in constants.enums if enum.name not in names]
    record.values |= {n: _plain(v) for n, v in constants.values.items() if n not in members}
    record.globals |= host.c_globals
    record.left_out |= host.c_left_out


def _plain(value: Value) -> PlainValue:
    """Return a value as Python has it; text that is not UTF-8 is bytes."""
    if not isinstance(value, Text):
        assert value.value is not None
        return value.value
    try:
        return value.data.decode()
    except UnicodeDecodeError:
        return value.data

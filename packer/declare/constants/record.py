"""The record of all constants and variables of a library: the text of ``__packer_constants``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from runtime.constants import MAX_NBYTES, ConstantsRecord, dump_constants
from runtime.error import ExportError

from ..c.expression import Text, Value

if TYPE_CHECKING:
    from runtime.constants import Value as PlainValue

    from ...modules.host import HostModule


def constants_text(hosts: Iterable[HostModule]) -> str:
    """Write the text, without the NUL; empty if no module has constants or variables.

    Of equal names the first is taken; raises ExportError if another one has another value.
    """
    record = ConstantsRecord()
    owners: dict[str, HostModule] = {}
    for host in hosts:
        _add(record, host, owners)
    text = dump_constants(record)
    if len(text.encode()) >= MAX_NBYTES:
        what = f"constants: {len(text)} bytes, expected less than {MAX_NBYTES}"
        raise ExportError(f"{what}; choose some by their names (constants)")
    return text


def _add(record: ConstantsRecord, host: HostModule, owners: dict[str, HostModule]) -> None:
    known, plain = record.plain(), {n: _plain(v) for n, v in host.c_constants.values.items()}
    for name in (*plain, *host.c_globals):
        other = owners.setdefault(name, host)
        if other is not host and (name in host.c_globals or known.get(name) != plain[name]):
            text = f"{name}: a constant of {other!r} and of {host!r}, expected one value"
            text += f"; leave one out: constants = ['!{name}'], or rename it"
            raise ExportError(text, module=host.type_key)
    members = {name for enum in host.c_constants.enums for name in enum.members}
    names = {enum.name for enum in record.enums}
    record.enums += [enum for enum in host.c_constants.enums if enum.name not in names]
    record.values |= {name: value for name, value in plain.items() if name not in members}
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

"""The C text that stores what a function returned, as the results of the call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .arguments import give_lines
from .values import Value


def stored_lines(
    outs: Sequence[tuple[str, str]], shared: Value | None, result: Value
) -> Iterator[str]:
    """Store the value ``r`` that the code returned.

    Parameters
    ----------
    outs : sequence of (str, str)
        The name and the code of each result.
    shared : Value or None
        What all signatures return; None if they differ.
    result : Value
        What this one returns.
    """
    if not outs:
        return
    if shared is not None and shared.kind == "tuple" and len(shared.items) > 1:
        for i, item in enumerate(shared.items):
            yield from _out_lines(item, f"r.f{i}", i)
        yield from _undo_lines(outs)
    elif shared is not None and shared.kind == "number":
        yield from _out_lines(shared, "r", 0)
    else:
        yield from give_lines(result, "r", "out0")


def _out_lines(item: Value, stored: str, i: int) -> Iterator[str]:
    if item.kind == "number":
        yield f"__builtin_memcpy(out{i}, &{stored}, sizeof {stored});"
    else:
        yield from give_lines(item, stored, f"out{i}", 1 if "." in stored else 0)


def _undo_lines(outs: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Release the results that were stored before one failed."""
    if any(code == "any" for _, code in outs):
        releases = " ".join(f"dso_release(out{i});" for i, (_, c) in enumerate(outs) if c == "any")
        yield f"if (status) {{ {releases} }}"

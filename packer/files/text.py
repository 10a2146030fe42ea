"""Text that is shown, not obeyed."""

from __future__ import annotations

_MAX_LENGTH = 4_096


def visible(text: str) -> str:
    r"""Escape what a reader could not see, or a browser would act on; line ends and tabs stay.

    That is control and formatting characters (bidi marks among them), surrogates, unassigned
    and private characters, and white space other than the plain one. A text that nobody would
    read to its end is cut, and says so.

    >>> visible("a\u202eb")
    'a\\u202eb'
    """
    if len(text) > _MAX_LENGTH:
        text = f"{text[:_MAX_LENGTH]}... ({len(text):,} characters)"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\t\n" else ascii(c)[1:-1] for c in text)

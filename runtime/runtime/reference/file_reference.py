"""The facts of a library's file that a pickle by reference contains."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from .file_state import State

if TYPE_CHECKING:
    from .fetch import Fetch


class Reference(NamedTuple):
    """The file of a library, as a pickle by reference names it.

    Attributes
    ----------
    path : str
        Its absolute path on the machine that wrote the pickle.
    nbytes : int
        Its size.
    sha256 : str
        Its digest: 64 lower-case hexadecimal digits.
    state : tuple or None
        The identity of its content on that machine, until it restarts.
    """

    path: str
    nbytes: int
    sha256: str
    state: State | None = None

    @property
    def name(self) -> str:
        """The name of the file, without its folder."""
        return os.path.basename(self.path)


class Asked(NamedTuple):
    """A reference, and the source of the file for a machine that does not have it."""

    reference: Reference
    fetch: Fetch | None

"""Passphrases and PINs: from the environment, or typed on the terminal; never an argument."""

from __future__ import annotations

import os
import sys

from runtime.error import ExportError

_VARIABLES = {"passphrase": "DSO_KEY_PASSPHRASE", "PIN": "DSO_PKCS11_PIN"}


def secret(what: str) -> bytes | None:
    """Return the secret that `what` begins with, a passphrase or a PIN; None if there is none."""
    variable = _VARIABLES[what.split()[0]]
    if os.environ.get(variable):
        return os.environb[os.fsencode(variable)]
    return _typed(what) if sys.stdin is not None and sys.stdin.isatty() else None


def new_passphrase() -> bytes:
    """Return the passphrase for a new key.

    Raises ExportError if there is none, or if it was not typed twice in the same way.
    """
    given = secret("passphrase of the new key")
    if not given:
        text = f"no passphrase; set {_VARIABLES['passphrase']}, or run on a terminal"
        raise ExportError(text)
    if not os.environ.get(_VARIABLES["passphrase"]) and _typed("passphrase again") != given:
        raise ExportError("the passphrases differ; type the same one twice")
    return given


def _typed(what: str) -> bytes:
    from getpass import getpass

    return os.fsencode(getpass(f"{what}: "))

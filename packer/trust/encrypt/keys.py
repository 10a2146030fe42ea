"""create_encryption_key(stem): make a key that encrypts modules."""

from __future__ import annotations

import os
from binascii import b2a_base64
from pathlib import Path

from runtime.trust.encryption.envelope import KEY_NBYTES
from runtime.trust.encryption.keys import ENVIRONMENT, PREFIX, TOKEN, find_key

from ...files.new_file import readable_by_others, refuse_existing, write_new

SUFFIX = ".aes"


def create_encryption_key(stem: str | os.PathLike[str]) -> Path:
    """Make a key for encrypted modules: ``<stem>.aes``, which only the owner may read.

    Parameters
    ----------
    stem : path
        The path without the suffix. An existing file is never replaced.

    Returns
    -------
    Path
        The file, of mode 0600: one line, ``dso-aes256-key:`` and base64 of 32 random bytes.

    Raises
    ------
    ExportError
        If the file exists or cannot be written.
    """
    path = Path(f"{os.fspath(stem)}{SUFFIX}")
    refuse_existing(path)
    line = b2a_base64(os.urandom(KEY_NBYTES))
    write_new(path, PREFIX.encode() + line, 0o600)
    return path


def warning_of(source: str) -> str:
    """Say if others may read the file of a key; "" if not."""
    if source.startswith((ENVIRONMENT, TOKEN)):
        return ""
    return readable_by_others(source)


def key_id_of(source: str | os.PathLike[str]) -> str:
    """Return the id of a key in hexadecimal digits; raise EncryptionError."""
    return find_key(source).key_id.hex()

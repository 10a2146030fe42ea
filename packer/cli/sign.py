"""``packer sign``: sign a library."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ..files.text import shown_path
from .parser import CommandParser
from .terminal import write, write_error

_DESCRIPTION = """\
Sign a library: its name, size, SHA-256, version, and the digest of each entry of its tree. The
signature is a Sigstore bundle, LIBRARY.sigstore.json. The library is read, not run. Sign last:
strip and other tools change the bytes."""

_EPILOG = """\
examples:
  packer sign model.so --key acme.key       # writes model.so.sigstore.json
  packer sign model.so --key acme.key --embed    # inside it; export it with --signature-room
  packer sign model.so --key env:ACME_KEY   # the variable has the key, as PEM
  packer sign model.so --key 'pkcs11:token=release;object=acme?module-path=/usr/lib/hsm.so'

A passphrase is taken from DSO_KEY_PASSPHRASE, the PIN of a token from DSO_PKCS11_PIN; otherwise the
terminal asks. Both need the package cryptography, tokens also python-pkcs11: pip install
'dso-packer[sign]'."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of ``packer sign``."""
    parser = CommandParser("packer sign", description=_DESCRIPTION, epilog=_EPILOG)
    add = parser.add_argument
    add("library", metavar="LIBRARY", help="the library")
    text = "the private key: a file with PEM, env:NAME, or a PKCS #11 URI"
    add("--key", metavar="KEY", required=True, help=text)
    text = "the version to sign; default: that of the library's metadata"
    add("--version", metavar="VERSION", help=text)
    add("--embed", action="store_true", help="store the signature in the library")
    return parser.parse_paths(argv)


def run(arguments: argparse.Namespace) -> None:
    """Sign, and print what was signed."""
    from ..sign import sign_library
    from ..sign.secrets import secret

    signed = sign_library(
        arguments.library,
        arguments.key,
        version=arguments.version,
        embed=arguments.embed,
        secret=secret,
    )
    if signed.warning:
        write_error(f"packer: warning: {signed.warning}")
    statement = signed.statement
    version = f"version {statement.version}" if statement.version else "no version"
    path = shown_path(signed.path)
    write(f"{path}: signed {statement.name}, {version}, sha256 {statement.sha256}")

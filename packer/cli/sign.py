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
  packer sign model.so --key acme.key --embed    # inside it
  packer sign model.so --key env:ACME_KEY   # the variable has the key, as PEM
  packer sign model.so --key 'pkcs11:token=T;object=acme?module-path=hsm.so'
  packer sign model.so --statement > a.json      # for cosign attest-blob
  packer sign model.so --bundle cosign.json      # store its bundle

A passphrase is taken from DSO_KEY_PASSPHRASE, the PIN of a token from DSO_PKCS11_PIN; otherwise the
terminal asks. Both need the package cryptography, tokens also python-pkcs11: pip install
'dso-packer[sign]'."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of ``packer sign``."""
    parser = CommandParser("packer sign", description=_DESCRIPTION, epilog=_EPILOG)
    add = parser.add_argument
    add("library", metavar="LIBRARY", help="the library")
    text = "the private key: a file with PEM, env:NAME, or a PKCS #11 URI"
    by = parser.add_mutually_exclusive_group(required=True)
    by.add_argument("--key", metavar="KEY", help=text)
    text = "print what is signed (an in-toto statement), for another tool"
    by.add_argument("--statement", action="store_true", help=text)
    text = "store the Sigstore bundle that another tool made of the statement"
    by.add_argument("--bundle", metavar="FILE", help=text)
    text = "the version to sign; default: that of the library's metadata"
    add("--version", metavar="VERSION", help=text)
    add("--embed", action="store_true", help="store the signature in the library")
    arguments = parser.parse_paths(argv)
    if arguments.bundle and arguments.version:
        parser.error(
            "argument --version: expected it where the statement is made, not with --bundle"
        )
    if arguments.statement and arguments.embed:
        parser.error("argument --embed: expected it with --key or --bundle")
    return arguments


def run(arguments: argparse.Namespace) -> None:
    """Sign, and print what was signed."""
    from ..trust.sign import library_statement, sign_library, store_bundle
    from ..trust.sign.secrets import secret

    library, version, embed = arguments.library, arguments.version, arguments.embed
    if arguments.statement:
        write(library_statement(library, version=version).decode())
        return
    if arguments.bundle:
        signed = store_bundle(library, arguments.bundle, embed=embed)
    else:
        signed = sign_library(library, arguments.key, version=version, embed=embed, secret=secret)
    if signed.warning:
        write_error(f"packer: warning: {signed.warning}")
    statement = signed.statement
    shown = f"version {statement.version}" if statement.version else "no version"
    path = shown_path(signed.path)
    write(f"{path}: signed {statement.name}, {shown}, sha256 {statement.sha256}")

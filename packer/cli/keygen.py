"""``packer keygen``: make a pair of keys that sign libraries, or a key that encrypts modules."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ..files.text import shown_path
from .parser import CommandParser
from .terminal import write

_DESCRIPTION = """\
Make a pair of keys: NAME.key, which signs and which only you can read, and NAME.pub, which
verifies. Existing files are never replaced. Keep NAME.key secret; publish NAME.pub.

With --encryption make one key instead, NAME.aes, which encrypts the modules of a library and
decrypts them at load. Only you can read it; keep it secret too."""

_EPILOG = """\
examples:
  packer keygen acme                  # acme.key and acme.pub
  packer keygen acme --algorithm ecdsa-p256
  packer keygen acme --passphrase     # or DSO_KEY_PASSPHRASE has it
  packer keygen acme --encryption     # acme.aes, to encrypt exports

Signing, verifying and encryption need the package cryptography: pip install 'dso-packer[sign]'."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of ``packer keygen``."""
    parser = CommandParser("packer keygen", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("name", metavar="NAME", help="the path without a suffix")
    choices = ("ed25519", "ecdsa-p256")
    text = "the algorithm; default: ed25519"
    parser.add_argument("--algorithm", choices=choices, help=text)
    text = "encrypt the private key"
    parser.add_argument("--passphrase", action="store_true", help=text)
    text = "make a key that encrypts modules, NAME.aes"
    parser.add_argument("--encryption", action="store_true", help=text)
    arguments = parser.parse_paths(argv)
    if arguments.encryption and (arguments.algorithm or arguments.passphrase):
        parser.error("argument --encryption: not allowed with --algorithm or --passphrase")
    return arguments


def run(arguments: argparse.Namespace) -> None:
    """Write both files, and print their names."""
    if arguments.encryption:
        _make_encryption_key(arguments.name)
        return
    from ..trust.sign.keys import create_keys
    from ..trust.sign.secrets import new_passphrase

    passphrase = new_passphrase() if arguments.passphrase else None
    algorithm = arguments.algorithm or "ed25519"
    made = create_keys(arguments.name, algorithm=algorithm, passphrase=passphrase)
    write(f"{shown_path(made[0])}: the private key; keep it secret")
    write(f"{shown_path(made[1])}: the public key; packer verify model.so --key {made[1]}")


def _make_encryption_key(name: str) -> None:
    from ..trust.encrypt.keys import create_encryption_key, key_id_of

    path = create_encryption_key(name)
    write(f"{shown_path(path)}: the key with id {key_id_of(path)}; keep it secret")

"""``packer keygen``: make a pair of keys that sign libraries."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ..files.text import shown_path
from .parser import CommandParser
from .terminal import write

_DESCRIPTION = """\
Make a pair of keys: NAME.key, which signs and which only you can read, and NAME.pub, which
verifies. Existing files are never replaced. Keep NAME.key secret; publish NAME.pub."""

_EPILOG = """\
examples:
  packer keygen acme                        # acme.key and acme.pub
  packer keygen acme --algorithm ecdsa-p256
  packer keygen acme --passphrase           # asks for one, or takes DSO_KEY_PASSPHRASE

Signing and verifying need the package cryptography: pip install 'dso-packer[sign]'."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of ``packer keygen``."""
    parser = CommandParser("packer keygen", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("name", metavar="NAME", help="the path without a suffix")
    choices = ("ed25519", "ecdsa-p256")
    text = "the algorithm; default: ed25519"
    parser.add_argument("--algorithm", choices=choices, default=choices[0], help=text)
    text = "encrypt the private key"
    parser.add_argument("--passphrase", action="store_true", help=text)
    return parser.parse_paths(argv)


def run(arguments: argparse.Namespace) -> None:
    """Write both files, and print their names."""
    from ..sign.keys import create_keys
    from ..sign.secrets import new_passphrase

    passphrase = new_passphrase() if arguments.passphrase else None
    made = create_keys(arguments.name, algorithm=arguments.algorithm, passphrase=passphrase)
    write(f"{shown_path(made[0])}: the private key; keep it secret")
    write(f"{shown_path(made[1])}: the public key; packer verify model.so --key {made[1]}")

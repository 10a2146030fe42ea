"""``packer verify``: verify the signature of a library."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ..files.text import shown_path
from .parser import CommandParser
from .terminal import write

_DESCRIPTION = """\
Verify that the holder of a key signed a library, or the identity in a certificate of Sigstore, and
that not one byte has changed since. The signature is in the library, or beside it as
LIBRARY.sigstore.json. The library is read, not run."""

_EPILOG = """\
examples:
  packer verify model.so --key acme.pub
  packer verify model.so --key acme.pub --minimum-version 1.2
  packer verify model.so --key acme.pub --key other.pub
  packer verify model-1.2.so --key acme.pub --name model.so  # it was renamed
  packer verify model.so --identity me@a.com --issuer https://login.a.com
  packer verify model.so --key acme.pub --json | jq .version

--identity needs the package sigstore: pip install 'dso-runtime[sigstore]'. No network is asked.

Exit status: 0 if the signature holds, 1 if not, 2 for wrong usage."""

_SCHEMA = 1


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of ``packer verify``."""
    parser = CommandParser("packer verify", description=_DESCRIPTION, epilog=_EPILOG)
    add = parser.add_argument
    add("library", metavar="LIBRARY", help="the library")
    text = "a public key: a file with PEM, or env:NAME"
    parser.add_repeated("--key", "KEY", text)
    add("--identity", metavar="TEXT", help="the signer in a certificate: a mail address or a URI")
    add("--issuer", metavar="URL", help="who vouched for the identity")
    text = "the authorities and logs of a Sigstore instance; default: the public one"
    add("--trusted-root", metavar="FILE", help=text)
    add("--minimum-version", metavar="VERSION", type=_version, help="refuse an older library")
    add("--name", metavar="NAME", help="the name that was signed; default: that of LIBRARY")
    add("--bundle", metavar="FILE", help="the signature; default: LIBRARY.sigstore.json")
    parser.add_json()
    arguments = parser.parse_paths(argv)
    named = (arguments.identity, arguments.issuer, arguments.trusted_root)
    if arguments.key and any(named):
        parser.error("argument --key: expected it without --identity, --issuer and --trusted-root")
    if any(named) and not (arguments.identity and arguments.issuer):
        parser.error("arguments --identity and --issuer: expected both")
    if not arguments.key and not any(named):
        parser.error("argument --key: expected at least one public key, or --identity and --issuer")
    return arguments


def run(arguments: argparse.Namespace) -> None:
    """Verify, and print what was signed."""
    from runtime.trust.identity import Identity
    from runtime.trust.verify import verify_file

    who = arguments.identity, arguments.issuer
    root = arguments.trusted_root
    statement = verify_file(
        arguments.library,
        arguments.key or Identity(*who, trusted_root=root),
        minimum_version=arguments.minimum_version,
        name=arguments.name,
        bundle=arguments.bundle,
    )
    if arguments.json:
        from .json_text import write_json

        entries = [entry._asdict() for entry in statement.entries]
        fields = {"name": statement.name, "version": statement.version}
        digests = {"nbytes": statement.nbytes, "sha256": statement.sha256, "entries": entries}
        write_json({"schema": _SCHEMA, "path": arguments.library, "ok": True, **fields, **digests})
        return
    version = f"version {statement.version}" if statement.version else "no version"
    count = len(statement.entries)
    entries_shown = f"{count} {'entry' if count == 1 else 'entries'}"
    path = shown_path(arguments.library)
    write(f"{path}: signed, {version}, {statement.nbytes} bytes, {entries_shown}")


def _version(text: str) -> str:
    from runtime.trust.version import order_of

    try:
        order_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None
    return text

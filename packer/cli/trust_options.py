"""Options of ``packer export`` for trust: signature, bill of materials, encryption."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .parser import names_in
from .terminal import write_error

if TYPE_CHECKING:
    import argparse

    from runtime.module import Module

    from ..project import Project
    from .parser import CommandParser


def add_trust_options(parser: CommandParser) -> None:
    """Add the options."""
    text = "reserve N bytes, such as 8192, for packer sign --embed"
    parser.add_argument("--signature-room", metavar="N", type=int, default=0, help=text)
    text = "store a bill of materials (CycloneDX), which packer sbom prints"
    parser.add_argument("--sbom", action="store_true", help=text)
    text = "encrypt modules: a file of packer keygen --encryption, env:NAME, or a PKCS #11 URI"
    parser.add_argument("--encrypt-key", metavar="KEY", help=text)
    text = "the modules to encrypt: all, graph, weights, kernels, or type keys; default: all"
    parser.add_argument("--encrypt", metavar="PARTS", type=names_in, help=text)


@contextmanager
def encrypting_parts(
    root: Module, arguments: argparse.Namespace, project: Project
) -> Iterator[list[str]]:
    """Encrypt what the options or packer.toml name, in the export inside the block.

    Yields the type keys of the modules that are encrypted.
    """
    key = arguments.encrypt_key or project.encrypt_key
    if key is None:
        yield []
        return
    from ..trust.encrypt import encrypting
    from ..trust.encrypt.keys import warning_of

    if warning := warning_of(key):
        write_error(f"packer: warning: {warning}")
    with encrypting(root, key, arguments.encrypt or project.encrypt or ("all",)) as modules:
        yield [module.type_key for module in modules]

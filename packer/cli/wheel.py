"""``packer wheel``: write a wheel that installs libraries as a Python package."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from ..files.text import shown_path
from .parser import CommandParser
from .terminal import size_text, write, write_error

_DESCRIPTION = """\
Write a wheel that installs a library as a Python package, or several as the modules of one. pip
installs it with the distribution dso-runtime, which loads libraries; packer is not needed there.
The library is read, not loaded. Its needs decide the tag of the wheel."""

_EPILOG = """\
examples:
  packer wheel model.so --name geo --version 1.0       # import geo; geo.mean(x)
  packer wheel model.so --name geo --version 1.0 --license MIT --license-file LICENSE
  packer wheel shape.so image.so --name geo --version 1.0    # geo.shape.area(), geo.image.blur()
  packer wheel model.so --name acme-geo --package geo --version 1.0 --requires "numpy>=1.26"
  packer wheel model.so --name geo --version 1.0 --platform manylinux_2_28_x86_64
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) packer wheel model.so --name geo --version 1.0

The tag is py3-none with the platform: manylinux_2_X for glibc, musllinux_1_2 for musl. A library
that needs another library, which not every system has, gets linux_: pip installs such a wheel, and
PyPI does not take it. `auditwheel repair` copies the other library into the wheel."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of ``packer wheel``."""
    parser = CommandParser("packer wheel", description=_DESCRIPTION, epilog=_EPILOG)
    add = parser.add_argument
    add("libraries", nargs="+", metavar="LIBRARY", help="the library, or several")
    add("--name", required=True, help="the name that pip installs")
    add("--version", help="its version; default: that of the library, if it has one")
    default = "the folder to write it in; default: dist"
    add("-o", "--output", metavar="FOLDER", default="dist", help=default)
    add("--package", metavar="NAME", help="the name that Python imports; default: that of --name")
    add("--description", metavar="TEXT", default="", help="one line")
    add("--readme", metavar="FILE", help="the long description, in Markdown")
    add("--license", metavar="EXPR", help="an SPDX expression: Apache-2.0, MIT OR BSD-3-Clause")
    parser.add_repeated("--license-file", "FILE", "a file for the wheel")
    add("--author", metavar="TEXT", default="", help='"Name <name@example.org>"')
    add("--url", default="", help="the home page")
    python = "the versions of Python; default: the versions of the runtime"
    add("--requires-python", metavar="SPEC", default="", help=python)
    parser.add_repeated("--requires", "DIST", "a distribution to install too: numpy>=1.26")
    parser.add_repeated("--include", "FILE", "a further file for the package: palette.py")
    loader = "the loader of a type of modules: geo.palette=geo.palette:load"
    parser.add_repeated("--loader", "KEY=PLACE", loader)
    add("--platform", metavar="TAG", help="fail if the libraries cannot have this tag")
    arguments = parser.parse_paths(argv)
    arguments.loaders = _loaders(parser, arguments.loader)
    return arguments


def run(arguments: argparse.Namespace) -> None:
    """Write the wheel, and print its path, its size, and the reason for its tag."""
    from ..packaging.wheel import write_wheel

    notes: list[str] = []
    path = write_wheel(
        arguments.libraries,
        arguments.output,
        name=arguments.name,
        version=arguments.version,
        package=arguments.package,
        description=arguments.description,
        readme=arguments.readme,
        license=arguments.license,
        license_files=arguments.license_file,
        author=arguments.author,
        url=arguments.url,
        requires_python=arguments.requires_python,
        requires=arguments.requires,
        include=arguments.include,
        loaders=arguments.loaders,
        platform=arguments.platform,
        note=notes.append,
    )
    write(f"{shown_path(path)}: {size_text(os.path.getsize(path))}")
    for text in notes:
        write_error(f"packer: note: {text}")


def _loaders(parser: CommandParser, texts: Sequence[str]) -> dict[str, str]:
    loaders: dict[str, str] = {}
    for text in texts:
        key, _, place = text.partition("=")
        if not key or not place:
            parser.error(f"argument --loader: expected KEY=MODULE:FUNCTION, found {text!r}")
        loaders[key] = place
    return loaders

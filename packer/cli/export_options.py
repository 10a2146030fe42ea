"""The options of ``packer export``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, get_args

from ..declare.declaration import AUTO, EVERY
from ..dialect import Dialect
from ..embed import Embed
from ..project import PROJECT_FILE
from ..toolchain.visibility import VISIBILITIES
from .compiler_options import add_compiler_options, compiler_words
from .executor_option import executor_text
from .importer_options import add_importer_options, importer_source
from .parser import CommandParser, names_in
from .trust_options import add_trust_options

_MATRIX_KEYS = ("target", "cpu")
# The options that --all gives on to each export.
PASSED = ("format", "embed", "cpu", "target", "executor", "signature_room")
PASSED_SWITCHES = ("sbom", "legacy_calls", "align_constants")
_DESCRIPTION = """\
Make one shared library of a tree of modules, or the objects to link one on another machine.

packer.toml describes the tree. A tree of source files and weights alone can be given as arguments
instead; packer.toml is not read then."""

_EPILOG = """\
examples:
  packer export a.so a.c       # every function of a.c; prints the declarations
  packer export a.so src/*.c -Iinclude -DSIZE=3 -O3 -std=c11 -Wall -Llib -lfoo
  packer export a.so a.c --function add        # this function alone
  packer export a.so a.c --function "add=int64_t(int64_t a, int64_t b)"
  packer export z.so --header /usr/include/zlib.h -lz   # all of a header
  packer export uv.so --pkg-config libuv
  packer export lua.so --header lua.h --header lauxlib.h -llua5.4
  packer export                # the library that packer.toml describes
  packer export model.so       # the same, written to model.so
  packer export a.so a.c b.ll --function "run=int(float *x)" --entry run
  packer export model.so model.onnx        # an importer reads it, by its suffix
  packer export model.so a.c --weights model.safetensors
  packer export model.so --weights 1.safetensors --weights 2.safetensors
  packer export model.tar      # `packer link model.tar -o model.so` links it
  packer export net1.o --system-lib --c-symbol-prefix net1_    # for a program
  packer export model.so a.c --target aarch64-linux-gnu
  packer export model.so a.c --cpu x86-64-v2,x86-64-v3,x86-64-v4
  packer export --all nets --matrix target=x86_64-linux-gnu,aarch64-linux-gnu
  packer export model.so --executor threads:4
  packer export --function "add=int(int)" -- -strange.so -name.c

Source files: .c .cc .cpp .cxx .cu, LLVM IR (.ll .bc), objects and archives (.o .a), assembler
(.s .S) and Fortran (.f90 .f95 .f03 .f08), whose functions --function or --header declares; device
code:
.cl .ptx .cubin .fatbin .spv .clbin .hsaco. CC, CXX and NVCC name the compilers: CC="ccache gcc".

A declaration is the C type of a function without its name; the packer.toml of `packer init` lists
the types, and docs/functions.md explains them.

The suffix of OUTPUT selects its kind: .o an object, .a an archive, .tar the objects with the
options of their link; any other a shared library (docs/outputs.md). If the export fails or is
interrupted, an existing OUTPUT is unchanged."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of ``packer export``."""
    usage = "packer export [OPTION ...] [OUTPUT] [SOURCE ...]"
    parser = CommandParser("packer export", usage=usage, description=_DESCRIPTION, epilog=_EPILOG)
    add = parser.add_argument
    add("output", nargs="?", metavar="OUTPUT", help="the library; default: that of packer.toml")
    add("sources", nargs="*", metavar="SOURCE", help="host code, instead of packer.toml")
    function = "a function to export; without TYPE, SOURCE or --header declares it"
    parser.add_repeated("--function", "NAME[=TYPE]", function)
    kept = "C keeps the callbacks and void * of NAME: a parameter's handle, forever, or kept"
    parser.add_repeated("--callback", "NAME=UNTIL", kept)
    parser.add_repeated("--header", "FILE", "a C header; its functions are exported")
    parts = "the headers that count as parts of these: 'gsl/*'; '!gsl/*' leaves some out"
    parser.add_repeated("--header-filter", "PATTERN", parts)
    package = "take header, options and RUNPATH of this package from pkg-config"
    parser.add_repeated("--pkg-config", "PACKAGE", package)
    taken = "the constants and variables to export, as 'SIZE_*'; '!SIZE_*' leaves some out"
    parser.add_repeated("--constants", "PATTERN", taken)
    parser.add_repeated("--weights", "FILE", "a safetensors file to pack, instead of packer.toml")
    add("--project", metavar="FILE", help=f"read this file instead of {PROJECT_FILE}")
    add("--entry", metavar="NAME", help="the function that runtime.load(OUTPUT)(...) calls")
    add("--format", choices=get_args(Dialect), help="the dialect of the tree; default: tvm")
    add("--embed", choices=get_args(Embed), help="how to embed the imports; default: auto")
    static = "register the modules at start-up, for static linking"
    add("--system-lib", action="store_true", help=static)
    prefix = "a prefix for every symbol, to link several models into a program: net1_"
    add("--c-symbol-prefix", metavar="PREFIX", help=prefix)
    visible = "declared: hide all functions of the code that are not declared"
    add("--visibility", choices=VISIBILITIES, help=visible)
    described = "store this text: version=1.0, license=MIT, ...; packer.toml can store more"
    parser.add_repeated("--metadata", "KEY=TEXT", described)
    aligned = (
        "move the constants of relax bytecode to a safetensors payload, where they are used in "
        "place; TVM does not read it"
    )
    add("--align-constants", action="store_true", help=aligned)
    levels = "CPU levels, as x86-64-v2,x86-64-v3; or native: only for this machine's processor"
    add("--cpu", metavar="LEVELS", type=names_in, help=levels)
    legacy = (
        "plain names are packed C functions, which TVM to 2025 can call; C functions are hidden"
    )
    add("--legacy-calls", action="store_true", help=legacy)
    parser.add_link_options()
    add_compiler_options(parser)
    add_trust_options(parser)
    every = "export each packer.toml in the folder OUTPUT (default: this one) and below"
    add("--all", action="store_true", help=every)
    matrix = "with --all: once for each value, below a folder of its name; KEY: target or cpu"
    add("--matrix", action="append", default=[], metavar="KEY=A,B", type=_matrix_row, help=matrix)
    where = "compile in threads:N, processes:N, or the executor that MODULE:FUNCTION returns"
    add("--executor", metavar="WHERE", type=executor_text, help=where)
    importers = add_importer_options(parser, argv)
    arguments = parser.parse_paths(argv)
    if arguments.matrix and not arguments.all:
        parser.error("argument --matrix: needs --all")
    if arguments.all:
        _refuse_others(parser, arguments)
    arguments.model = importer_source(parser, arguments, importers)
    if (arguments.sources or arguments.weights) and arguments.project is not None:
        parser.error("argument --project: not allowed with SOURCE or --weights")
    if arguments.header and arguments.project is not None:
        parser.error("argument --project: not allowed with --header")
    if arguments.pkg_config and arguments.project is not None:
        parser.error("argument --project: not allowed with --pkg-config")
    if arguments.header_filter and not (arguments.header or arguments.pkg_config):
        parser.error("argument --header-filter: needs --header or --pkg-config")
    is_read = arguments.sources or arguments.header or arguments.pkg_config
    if arguments.function and not is_read:
        parser.error("argument --function: needs SOURCE; or declare functions in packer.toml")
    if arguments.constants and not is_read:
        parser.error("argument --constants: needs SOURCE or --header; packer.toml has constants")
    if arguments.encrypt and not arguments.encrypt_key and (arguments.sources or arguments.weights):
        parser.error(
            "argument --encrypt: needs --encrypt-key; packer keygen --encryption makes one"
        )
    has_code = is_read or arguments.model
    if compiler_words(arguments) and not has_code:
        option = compiler_words(arguments)[0]
        parser.error(f"argument {option}: needs SOURCE; or set options in packer.toml")
    if arguments.callback and not (arguments.sources or arguments.header):
        parser.error("argument --callback: needs SOURCE or --header; or set kept in packer.toml")
    functions = _functions(parser, arguments.function)
    arguments.functions = _with_callbacks(parser, functions, arguments.callback)
    arguments.metadata = _metadata(parser, arguments.metadata)
    return arguments


def _refuse_others(parser: CommandParser, arguments: argparse.Namespace) -> None:
    """Refuse options that --all does not give on; packer.toml can have most of them."""
    allowed = {"output", "all", "matrix", "jobs", *PASSED, *PASSED_SWITCHES}
    for action in parser._actions:
        value = getattr(arguments, action.dest, None)
        if action.dest not in allowed and value and value != action.default:
            given = action.option_strings[-1] if action.option_strings else "SOURCE"
            parser.error(f"argument --all: not allowed with {given}; set it in packer.toml")
    if set(dict(arguments.matrix)) & {key for key in _MATRIX_KEYS if getattr(arguments, key)}:
        parser.error("argument --matrix: not allowed with the option of its key")
    if len(dict(arguments.matrix)) < len(arguments.matrix):
        parser.error("argument --matrix: each key once")


def _matrix_row(text: str) -> tuple[str, list[str]]:
    """Parse ``KEY=VALUE,VALUE``."""
    key, _, values = text.partition("=")
    found = [value.strip() for value in values.split(",") if value.strip()]
    is_name = all("/" not in value and value not in (".", "..") for value in found)
    if key not in _MATRIX_KEYS or not found or len(set(found)) < len(found) or not is_name:
        known = " or ".join(f"{key}=VALUE,VALUE" for key in _MATRIX_KEYS)
        raise argparse.ArgumentTypeError(f"expected {known}, each value once, found {text!r}")
    return key, found


def _with_callbacks(
    parser: CommandParser, functions: dict[str, str], texts: Sequence[str]
) -> dict[str, Any]:
    """Add how long the callbacks of functions are kept; without functions to the others."""
    made: dict[str, Any] = dict(functions) if functions or not texts else {EVERY: AUTO}
    for text in texts:
        name, _, until = (part.strip() for part in text.partition("="))
        if not name or not until:
            parser.error(f"argument --callback: expected NAME=UNTIL, found {text!r}")
        if functions and name not in functions:
            parser.error(f"argument --callback: {name!r} is not exported; add --function {name}")
        if isinstance(made.get(name), dict):
            parser.error(f"argument --callback: {name!r} is given twice")
        declaration = functions.get(name, AUTO)
        own = {} if declaration == AUTO else {"declaration": declaration}
        made[name] = {**own, "kept": until}
    return made


def _functions(parser: CommandParser, texts: Sequence[str]) -> dict[str, str]:
    functions: dict[str, str] = {}
    for text in texts:
        name, separator, declaration = (part.strip() for part in text.partition("="))
        if not name or (separator and not declaration) or (not separator and "(" in name):
            parser.error(f"argument --function: expected NAME or NAME=TYPE, found {text!r}")
        if name in functions:
            parser.error(f"argument --function: {name!r} is declared twice")
        functions[name] = declaration or AUTO
    return functions


def _metadata(parser: CommandParser, texts: Sequence[str]) -> dict[str, str]:
    metadata: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not (name and separator):
            parser.error(f"argument --metadata: expected KEY=TEXT, found {text!r}")
        if name in metadata:
            parser.error(f"argument --metadata: {name!r} is given twice")
        metadata[name] = value
    return metadata

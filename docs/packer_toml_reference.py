"""docs/reference/packer-toml.md: each key of packer.toml, from the table of kinds."""

from pathlib import Path
from typing import get_args

from dso_packer_numba import importer as numba
from dso_packer_onnx import importer as onnx
from dso_packer_onnx.torch import importer as torch
from dso_packer_trees import importer as trees
from packer.dialect import Dialect
from packer.embed import Embed
from packer.importers import Importer
from packer.project import LIBRARY_KEYS
from packer.project.kinds import KINDS
from packer.toolchain.visibility import VISIBILITIES

# key -> (type, meaning)
LIBRARY = {
    "output": ("path", "The library to write. `packer export OUTPUT` overrides it."),
    "root": (
        "string",
        "The root of the tree. Default: the one module that no other imports.",
    ),
    "format": ("choice", "The dialect of the blob, [format.md](../format.md#dialect-tvm-ffi)."),
    "embed": ("choice", "How the blob gets into the library, [outputs.md](../outputs.md)."),
    "target": ("string", "The machine to compile for, [cross.md](../cross.md). Default: this one."),
    "entry": ("string", "The function that calling the loaded module runs."),
    "options": ("array of strings", "Further options for the linker driver."),
    "allow_undefined": (
        "array of strings",
        'Patterns of symbols that the process provides, as `["cu*"]`: no library of the link has '
        "to define them ([linking.md](../linking.md)).",
    ),
    "addons": ("array of paths", "Further objects and archives to link."),
    "system_lib": ("boolean", "Register the modules at start-up, for static linking."),
    "c_symbol_prefix": ("string", "A prefix for every symbol; needs `system_lib`."),
    "visibility": (
        "choice",
        "`declared` hides every symbol of the host code except the declared functions.",
    ),
    "soname": (
        "string",
        'The name by which other binaries need the library: `"libmodel.so.1"`. Default: none.',
    ),
    "version": ("string", '`model.metadata["version"]`, [outputs.md](../outputs.md#metadata).'),
    "license": ("string", '`model.metadata["license"]`, such as an SPDX identifier.'),
    "metadata": (
        "table",
        "Further values of `model.metadata`: text, numbers, booleans, arrays and tables of them.",
    ),
    "cpu": (
        'array of strings, or `"native"`',
        "CPU levels to compile the host code for, [cpu-levels.md](../cpu-levels.md).",
    ),
    "encrypt_key": (
        "path, `env:NAME` or `pkcs11:` URI",
        "The key that encrypts modules, [trust.md](../trust.md#encrypted-modules).",
    ),
    "encrypt": (
        "array of strings",
        "The modules to encrypt: `all` (the default), `graph`, `weights`, `kernels`, or type keys.",
    ),
    "legacy_calls": (
        "boolean",
        "Plain names are packed C functions, for TVM to 2025,"
        " [coming-from-tvm.md](../coming-from-tvm.md#a-dso-packer-library-in-tvm-to-2025).",
    ),
}
CHOICES = {"format": get_args(Dialect), "embed": get_args(Embed), "visibility": VISIBILITIES}

EVERY_KIND = {
    "kind": ("string", "The type of the module: one of the kinds below. Required."),
    "imports": ("array of strings", "The modules that it imports, by their names in this file."),
}

KIND_TEXTS = {
    "c": "C source, compiled and merged into the library.",
    "cc": "C++ source, likewise.",
    "cu": "CUDA C++ source, compiled by nvcc, likewise.",
    "llvm": "LLVM IR, `.ll` or `.bc`, compiled and merged into the library.",
    "static_library": "Compiled code, `.o` or `.a`, linked into the library.",
    "const_loader": "Constants for host code.",
    "safetensors": "Weights, stored byte for byte; `model.weights[name]` reads them.",
    "graph": "A graph of operators that host code computes, [graph.md](../graph.md).",
    "python": "A module that a Python function makes.",
    "cuda": "CUDA kernels: PTX, cubin or fatbin, [devices.md](../devices.md#cuda).",
    "opencl": "OpenCL kernels: source, binary or SPIR-V, [devices.md](../devices.md#opencl).",
}
OTHER_DEVICE = "Kernels that this runtime stores and does not launch."

HOST_FUNCTIONS = (
    'table, or `"auto"`',
    "Name = C function type without the name, or a table of it and options: "
    '`{ declaration = "...", doc = "...", gil = "keep", out = ["..."], errno = true, free = "...", '
    'symbol = "...", lifetime = "...", kept = "...", defaults = { ... } }`. `header = "x.h"`, or '
    'an array: the functions of C headers (or `"pkg-config:NAME"`), of which `header_filter = '
    '["x/*"]` chooses headers, `only = ["f"]` functions, and which other '
    'names change or, by `false`, leave out. `"auto"` as a type: the source has it; for the '
    "table: every function that C and C++ files define; [functions.md](../functions.md).",
)
HOST_CONSTANTS = (
    "array of strings",
    "Patterns of the constants and variables to export, by default all: `SIZE_*`, or `!SIZE_*` to "
    'leave some out. Needs a header, or `functions = "auto"`; [constants.md](../constants.md).',
)
KERNELS = (
    "table of tables",
    "For each kernel `arg_types` and `launch_param_tags`, [devices.md](../devices.md#a-kernel). "
    "Default: the kernels that the code declares (PTX, OpenCL C, SPIR-V), as `runtime.load` finds "
    "them; the export names the kernels that it leaves out.",
)
KEYS = {
    "sources": (
        "array of paths",
        "The files, at least one; a pattern (`*.c`, `src/**/*.c`) is all files that it matches.",
    ),
    "include": ("array of paths", "Folders with headers."),
    "define": ("array of strings", '`"NAME"` or `"NAME=VALUE"`: macros.'),
    "libraries": (
        "array of strings",
        '`"foo"`: link libfoo. `options = ["-Llib"]` in [library] names a folder to search.',
    ),
    "options": ("array of strings", "Further options for the compiler."),
    "target": ("string", "The LLVM target triple. Default: the one that the IR names."),
    "cpu": (
        "string",
        'The processor that LLVM compiles for, `"x86-64-v3"`; `"native"` is this machine\'s. '
        "Default: the oldest of the target.",
    ),
    "features": ("string", '`"+avx2,-fma"`: features that are added to the processor or removed.'),
    "levels": (
        "table",
        "CPU level = path of a library that is made for it, in place of `sources`; "
        "[compiling.md](../compiling.md#objects-and-archives).",
    ),
    "opt": ("integer", "0 to 3: how much LLVM optimises. Default: 2."),
    "constants": ("table", "Name = path of a `.npy` file."),
    "by_symbol": (
        "table",
        "Function = array of constants: `__init_<function>` gets them at its first look-up.",
    ),
    "graph": ("path", "The graph as JSON. Required."),
    "params": ("path", "A params dict file or a safetensors file with the parameters."),
    "name": ("string", 'The name of the function that makes an executor. Default: `"default"`.'),
    "factory": ("string", '`"FILE.py:FUNCTION"`; called without arguments. Required.'),
    "fmt": ("string", "The format of the code. Default: the suffix of the source."),
}

# The importers of this checkout, each with its page.
IMPORTERS = (
    (onnx.IMPORTER, "importers/onnx/docs/onnx.md"),
    (torch.IMPORTER, "importers/onnx/docs/onnx.md"),
    (numba.IMPORTER, "importers/numba/docs/numba.md"),
    (trees.IMPORTER, "importers/trees/docs/trees.md"),
)
# Type of a setting -> what the key contains.
TYPES = {
    "string": "string",
    "strings": "array of strings",
    "path": "path",
    "boolean": "boolean",
    "number": "number",
    "table": "table",
}
_SEVERAL = (
    "Several of them; the first imports the others. One of `model` and `sources` is required."
)
# The keys of the source, for importers of files and for importers of Python functions.
SOURCES = {
    False: {"model": ("path", "The file."), "sources": ("array of paths", _SEVERAL)},
    True: {
        "model": ("string", '`"FILE.py:FUNCTION"` or `"MODULE:FUNCTION"`.'),
        "sources": ("array of strings", _SEVERAL),
    },
}

HEAD = """\
# Reference of packer.toml

<!-- Generated from packer/project/ by `make docs`; edit docs/packer_toml_reference.py. -->

`packer export` reads `packer.toml` in the current folder, or the file that `--project` names.
`packer init` writes a commented one. Paths are relative to the folder of the file, in which
compilers and the linker run. An unknown table or key is an error. Keys are optional unless this
page says "required".

## [library]
"""
MODULES = """
## [module.NAME]

One table for each module. Names are free; they are used in `imports` and `root`, and are not stored
in the library. Every module must be reachable from the root. Every kind takes:
"""


def page() -> str:
    """Return the whole page."""
    _compare("[library]", LIBRARY, LIBRARY_KEYS)
    used = {key for kind in KINDS.values() for key in kind.keys}
    _compare("[module.NAME]", {**KEYS, "functions": HOST_FUNCTIONS}, used)
    parts = [HEAD, _rows(LIBRARY), MODULES, _rows(EVERY_KIND)]
    sections: dict[str, list[str]] = {}
    for name, kind in KINDS.items():
        sections.setdefault(_rows(_described(name, kind.keys)), []).append(name)
    for rows, names in sections.items():
        title = ", ".join(f'"{name}"' for name in names)
        texts = [f"- `{name}`: {KIND_TEXTS[name]}\n" for name in names if name in KIND_TEXTS]
        if others := ", ".join(f"`{name}`" for name in names if name not in KIND_TEXTS):
            texts.append(f"- {others}: {OTHER_DEVICE}\n")
        parts.append(f"\n### kind = {title}\n\n{''.join(texts)}{rows}")
    return "".join([*parts, *(_of_importer(*row) for row in IMPORTERS)])


def _of_importer(importer: Importer, page: str) -> str:
    """Return the section of an importer of this checkout."""
    source = SOURCES[importer.takes_names]
    rows = {setting.name: (TYPES[setting.type], setting.text) for setting in importer.settings}
    text = f"{importer.text[:1].upper()}{importer.text[1:]}; [{Path(page).name}](../../{page})."
    name = importer.kind
    return f'\n### kind = "{name}"\n\n- `{name}`: {text}\n{_rows({**source, **rows})}'


def _described(kind: str, keys: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    """The rows of one kind; some keys mean something else in device code."""
    host = {"functions": HOST_FUNCTIONS} | (
        {"constants": HOST_CONSTANTS} if "include" in keys else {}
    )
    rows = {key: host.get(key) or KEYS[key] for key in keys}
    if "fmt" in keys:
        rows["functions"] = KERNELS
        rows["sources"] = ("array of one path", "The file.")
    if kind == "cuda":
        several = "One file, or several cubins and PTX files, which become one fatbin."
        rows["sources"] = ("array of paths", several)
    return rows


def _compare(table: str, described: object, known: object) -> None:
    """Fail if a key is not described here, or is not one of the program's."""
    if difference := set(described) ^ set(known):
        names = ", ".join(sorted(difference))
        raise SystemExit(f"docs/packer_toml_reference.py: {table}: add or remove {names}")


def _rows(keys: dict[str, tuple[str, str]]) -> str:
    lines = ["\n| key | type | meaning |\n|---|---|---|\n"]
    for key, (kind, text) in keys.items():
        if key in CHOICES:
            names = [f'`"{name}"`' for name in CHOICES[key]]
            kind, text = "one of " + ", ".join(names), f"{text} Default: {names[0]}."
        lines.append(f"| `{key}` | {kind} | {text} |\n")
    return "".join(lines)

"""A stub of one library: its functions and weights with their types, for type checkers and editors.

The stub has two uses. It can be the ``__init__.pyi`` of a package: its attributes are the functions
whose names are identifiers of Python, and ``model``, the loaded tree. And it has the class
``Model``, whose ``model[name]`` is known for each name. Names that begin with ``_`` are private to
the stub, and the classes in it exist for type checkers only.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from runtime.abi import __version__

from ...files.output import refuse_output_among_inputs, replacing
from ...inspect import open_library
from .annotations import Annotations
from .functions import Signature, docstring, signature_of, signature_of_alias
from .model import model_text
from .names import Scope, is_identifier
from .tree import Found, Tree, read_tree

__all__ = ["public_functions", "stub_of", "write_stub"]

# mypy compares each overload with each other one, unless it would not report what it finds.
_MANY = 100
_UNCHECKED = "# mypy: ignore-errors"


def stub_of(path: str | os.PathLike[str]) -> str:
    """Return the text of a stub (``.pyi``) of a library, which is read, never executed.

    Parameters
    ----------
    path : path
        The library; of any machine.

    Returns
    -------
    str
        A module with a function for each function of the tree, and the class ``Model`` of the tree.
        Declared functions have their parameters and results; others accept anything.

    Raises
    ------
    LibraryLoadError
        It is not a library, a load would refuse it, or its tree cannot be read.
    """
    opened = open_library(path)
    tree = read_tree(opened)
    name = os.path.basename(opened.report.path)
    doc = docstring(f"The functions of {name}. Written by packer stubs {__version__}.", "")
    head = f"{doc}\n\n{_UNCHECKED}" if len(tree.functions) > _MANY else doc
    return f"{head}\n\n{_body(tree, name)}\n"


def write_stub(library: str | os.PathLike[str], output: str | os.PathLike[str]) -> None:
    """Write the stub of a library of any machine, as `stub_of` returns it, to a file ``.pyi``."""
    refuse_output_among_inputs(output, [library])
    text = stub_of(library)
    with replacing(output) as workspace:
        workspace.output.write_text(text)
        workspace.commit()


def public_functions(tree: Tree) -> list[Found]:
    """Return the functions that a module can have as attributes."""
    functions = tree.functions.values()
    return [f for f in functions if is_identifier(f.name) and not f.name.startswith("_")]


def _body(tree: Tree, library: str) -> str:
    public = public_functions(tree)
    scope = Scope(f.name for f in public)
    annotations = Annotations(scope, _kinds(tree), tree.members)
    signatures = dict(_signatures(tree, annotations))
    model = model_text(tree, signatures, scope, library)
    functions = "\n".join(_function(f, signatures.get(f.name), scope) for f in public)
    definitions = "\n\n".join(annotations.definitions.values())
    imports = "\n".join(scope.import_lines()).strip()
    return "\n\n".join(part for part in (imports, functions, definitions, model) if part)


def _signatures(tree: Tree, annotations: Annotations) -> Iterator[tuple[str, Signature]]:
    entry = tree.functions.get(tree.entry, Found("")).facts
    for name, function in tree.functions.items():
        if function.facts is not None:
            signature = signature_of(function.facts, annotations)
            yield name, signature.positional() if function.is_positional else signature
        elif name == "main" and entry is not None and entry.abi == "safe_call":
            yield name, signature_of_alias(entry, annotations)


def _function(function: Found, signature: Signature | None, scope: Scope) -> str:
    if signature is not None:
        return signature.text(function.name)
    result = scope.use("GraphExecutor" if function.makes_executor else "Any")
    return f"def {function.name}(*args: {scope.use('Any')}) -> {result}: ..."


def _kinds(tree: Tree) -> frozenset[str]:
    """Return the kinds of the handles that the functions return."""
    found = (f.facts for f in tree.functions.values() if f.facts is not None)
    codes = (code for facts in found for code in (facts.result, *(c for _, c in facts.out)))
    return frozenset(code[1:] for code in codes if code[0] == "@")

"""The functions of a stub have the parameters and results that `inspect.signature` reports."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import packer
import runtime

from ....support import every_code
from ....support.paths import C_SOURCES, ROOT
from ....support.wrapped_library import build_declared

FORMS = ROOT / "benchmarks/forms.c"
NUMBERS = {int: "Int", float: "Float", bool: "Bool", complex: "Complex"}


def files(name: str, folder: Path, compile_library: Callable[..., Path]) -> Path:
    """Make one of the libraries whose functions are compared."""
    if name == "forms.c":
        host = packer.CSourceModule(FORMS, functions="auto")
        return packer.export_library(host, folder / "forms.so")
    if name == "every_code.c":
        return build_declared(folder, every_code.CODE, every_code.DECLARATIONS, "-w")
    return compile_library((C_SOURCES / name).read_text())


def definitions(stub: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The functions of a stub, and what its look-ups return, by name."""
    calls = {}
    for node in ast.parse(stub).body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            methods = [item for item in node.body if isinstance(item, ast.FunctionDef)]
            for method in methods:
                if method.name == "__call__":
                    calls[node.name] = method
                names = re.findall(r"'(\w+)'", ast.unparse(method.args))
                if method.name == "__getitem__" and len(names) == 1:
                    yield names[0], calls[ast.unparse(method.returns or method)]


def parameters(node: ast.FunctionDef) -> list[tuple[str, str, str, str]]:
    """The name, kind, annotation and default of each parameter, without that of a method."""
    positional, named = node.args.posonlyargs, node.args.args
    rows = [(a, "positional-only") for a in positional] + [
        (a, "positional or keyword") for a in named
    ]
    if rows[0][0].annotation is None if rows else False:
        rows = rows[1:]
    defaults = [""] * (len(rows) - len(node.args.defaults))
    defaults += [ast.unparse(default) for default in node.args.defaults]
    return [
        (a.arg, kind, ast.unparse(a.annotation or a), default)
        for (a, kind), default in zip(rows, defaults, strict=True)
    ]


def accepted(annotation: Any) -> str:
    """A pattern of the annotations in a stub for one of `inspect.signature`."""
    if annotation in NUMBERS:
        return NUMBERS[annotation]
    if annotation is str:
        return r"str \| bytes \| bytearray \| memoryview \| None"
    text = re.sub(r" (array|buffer|str|struct)( \[.*)?$", r" \1", annotation)
    if text.endswith(" struct"):
        return rf"_{text.split()[0]}_\w+( \| None)?"
    if text.endswith(" handle"):
        return rf"({text.split()[0]} \| )?VoidHandle \| None"
    patterns = {
        "list of str": r"list\[str\] \| tuple\[str, \.\.\.\]( \| None)?",
        "callable": r"Callable\[.*\] \| None",
        "array": "Array",
        "buffer": r"(Array|Bytes)( \| Handle)?( \| None)?",
    }
    return patterns.get(text, r"(Array|Bytes)( \| None)?")


def returned(annotation: Any) -> str:
    """The annotation of a result in a stub for one of `inspect.signature`."""
    if not isinstance(annotation, str):
        name = "None" if annotation is None else annotation.__name__
        return "str | None" if name == "str" else name
    if annotation.startswith("("):
        return f"tuple[{', '.join(map(returned_text, annotation[1:-1].split(', ')))}]"
    return returned_text(annotation)


def returned_text(text: str) -> str:
    """The same for a text, such as one of several results."""
    if text == "str":
        return "str | None"
    if text == "handle":
        return "VoidHandle | None"
    kind, _, what = text.partition(" ")
    return {"handle": f"{kind} | None", "struct": kind}.get(what, text.replace("char", "int"))


@pytest.mark.parametrize("name", ["declared.c", "every_code.c", "forms.c"])
def test_stub_has_the_signatures_of_the_loaded_functions(
    name: str, tmp_path: Path, compile_library: Callable[..., Path]
) -> None:
    """Names, kinds and defaults of parameters, and the types of parameters and results."""
    path = files(name, tmp_path, compile_library)
    module = runtime.load(path)
    found: dict[str, list[ast.FunctionDef]] = {}
    for function, node in definitions(packer.stub_of(path)):
        found.setdefault(function, []).append(node)
    assert set(module.function_names()) <= set(found)
    compared = 0
    for function in module.function_names():
        loaded: Any = module[function]
        if loaded.__signature__ is None:  # no parameters in its metadata
            continue
        signature = inspect.signature(loaded)
        for node in found[function]:
            rows = parameters(node)
            shown = [(n, kind, default) for n, kind, _, default in rows]
            assert shown == [
                (p.name, p.kind.description, "" if p.default is p.empty else repr(p.default))
                for p in signature.parameters.values()
            ]
            for (_, _, annotation, _), p in zip(rows, signature.parameters.values(), strict=True):
                assert re.fullmatch(accepted(p.annotation), annotation), (function, annotation)
            assert ast.unparse(node.returns or node) == returned(signature.return_annotation)
            compared += 1
    assert compared >= 14

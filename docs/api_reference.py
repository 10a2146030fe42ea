"""docs/reference/api.md: the public names of both packages, from their docstrings."""

import inspect
import re
from enum import Enum
from types import ModuleType
from typing import Any

import dso_packer_numba
import dso_packer_onnx
import dso_packer_onnx.torch
import dso_packer_trees
import packer
import runtime

# Names of packer that other distributions define.
OF_IMPORTERS = {
    "from_numba": dso_packer_numba.from_numba,
    "NumbaModule": dso_packer_numba.NumbaModule,
    "from_onnx": dso_packer_onnx.from_onnx,
    "from_torch": dso_packer_onnx.torch.from_torch,
    "from_trees": dso_packer_trees.from_trees,
}
HEAD = """\
# API reference

<!-- Generated from the docstrings by `make docs`; edit those. -->

Every name in `packer.__all__` and `runtime.__all__`, and the names of packer that importers define.
`runtime` loads libraries and needs no other package; `packer` makes them.
"""


def page() -> str:
    """Return the whole page."""
    return HEAD + "".join(_package(package) for package in (packer, runtime))


def _package(package: ModuleType) -> str:
    """One package: its functions, classes, errors and modules, each in alphabetical order."""
    groups: dict[str, list[str]] = {"Functions": [], "Classes": [], "Errors": [], "Modules": []}
    others = OF_IMPORTERS if package is packer else {}
    for name in sorted([*package.__all__, *others], key=str.lower):
        value = others.get(name) or getattr(package, name)
        groups[_group(value)].append(_entry(f"{package.__name__}.{name}", value, package))
    parts = [f"\n## {package.__name__}\n\n{_text(inspect.getdoc(package))}\n"]
    for title, entries in groups.items():
        if entries:
            parts += [f"\n### {package.__name__}: {title.lower()}\n", *entries]
    return "".join(parts)


def _group(value: Any) -> str:
    if isinstance(value, ModuleType):
        return "Modules"
    if not isinstance(value, type):
        return "Functions"
    return "Errors" if issubclass(value, BaseException) else "Classes"


def _entry(name: str, value: Any, package: ModuleType) -> str:
    """One public name."""
    if package is packer and getattr(runtime, name.rpartition(".")[2], None) is value:
        other = f"runtime.{name.rpartition('.')[2]}"
        anchor = other.replace(".", "").lower()
        return f"\n#### {name}\n\nThe same as [`{other}`](#{anchor}).\n"
    signature = "" if isinstance(value, ModuleType) else _signature(value)
    code = f"\n```python\n{name}{signature}\n```\n" if signature else ""
    members = _members(value) if isinstance(value, (type, ModuleType)) else []
    listed = "\n" + "".join(members) if members else ""
    return f"\n#### {name}\n{code}\n{_text(inspect.getdoc(value))}\n{listed}"


def _members(owner: Any) -> list[str]:
    """Return the lines of members: of a class its own, of a module the ones not in its package."""
    if isinstance(owner, ModuleType):
        found = {n: v for n, v in vars(owner).items() if _is_own(v, owner)}
    else:
        private = [base for base in owner.__mro__[1:] if base.__module__ == "runtime._core"]
        found = {n: v for base in (*reversed(private), owner) for n, v in vars(base).items()}
    lines = []
    for name, value in sorted(found.items()):
        function = getattr(value, "__func__", value)
        doc = inspect.cleandoc(getattr(function, "__doc__", None) or "")
        is_field = isinstance(owner, type) and issubclass(owner, (tuple, Enum))
        if name.startswith("_") or not doc or is_field or not _is_member(function):
            continue
        signature = _signature(function, bound=isinstance(owner, type))
        summary = _inline(" ".join(doc.split("\n\n")[0].split()))
        lines.append(f"- `{name}{signature}`: {summary}\n")
    return lines


def _is_own(value: Any, module: ModuleType) -> bool:
    is_code = isinstance(value, type) or inspect.isfunction(value)
    exported = any(value is getattr(runtime, name) for name in runtime.__all__)
    return is_code and value.__module__ == module.__name__ and not exported


def _is_member(value: Any) -> bool:
    return callable(value) or inspect.isdatadescriptor(value)


def _signature(value: Any, *, bound: bool = False) -> str:
    """Return names and defaults; types as well where the docstring has no list of parameters."""
    if not callable(value) or (isinstance(value, type) and issubclass(value, Enum)):
        return ""
    try:
        signature = inspect.signature(value)
    except ValueError:  # a type of the native core that does not say
        return "(...)"
    parameters = list(signature.parameters.values())[bound:]
    if parameters and parameters[0].name in ("_args", "args") and isinstance(value, type):
        parameters = []  # of Module.__new__, which takes what a subclass's __init__ takes
    has_list = "Parameters\n---" in (inspect.getdoc(value) or "")
    shown = [_parameter(parameter, typed=not has_list) for parameter in parameters]
    result = signature.return_annotation
    arrow = "" if result in (signature.empty, "None") else f" -> {_annotation(result)}"
    text = str(signature.replace(parameters=shown, return_annotation=signature.empty))
    return text + ("" if isinstance(value, type) else arrow)


class _Source(str):
    """Text whose repr is the text: an annotation, or a default whose repr has an address."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _parameter(parameter: inspect.Parameter, *, typed: bool) -> inspect.Parameter:
    default, annotation = parameter.default, parameter.empty
    if default is not parameter.empty and " at 0x" in repr(default):
        default = _Source("...")
    if typed and parameter.annotation is not parameter.empty:
        annotation = _Source(_annotation(parameter.annotation))
    return parameter.replace(default=default, annotation=annotation)


def _annotation(value: Any) -> str:
    if isinstance(value, str):
        return value
    return (
        getattr(value, "__forward_arg__", None) or getattr(value, "__name__", None) or repr(value)
    )


def _text(doc: str | None) -> str:
    """Turn a numpydoc docstring to Markdown: bold section titles, a list item per parameter."""
    lines = [line.rstrip() for line in (doc or "").splitlines()]
    output: list[str] = []
    section, code = "", False
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if re.fullmatch("-{3,}", line):
            continue
        if following.startswith("---") and len(following) == len(line):
            section = line
            output += [f"**{line}**", ""]
            continue
        if not code and line.startswith(">>> " if section else (">>> ", "    ")):
            code = True
            output.append("```pycon" if line.startswith(">>>") else "```text")
        if code and not line:  # an example and a table end at an empty line
            code = False
            output.append("```")
        if code:
            output.append(line.removeprefix("    ") if not section else line)
        elif section and line and not line.startswith(" ") and section not in ("Notes", "Examples"):
            name, colon, kind = line.partition(" : ")
            output.append(f"- `{name}`{': ' + _inline(kind) if colon else ''}")
        elif section and line.startswith("    "):
            output.append(f"  {_inline(line.strip())}")
        else:
            output.append(_inline(line))
    return "\n".join([*output, "```"] if code else output)


def _inline(text: str) -> str:
    """Turn reStructuredText's double backticks to Markdown's, and keep ``<`` outside of them."""
    parts = text.replace("``", "`").split("`")
    parts[::2] = [part.replace("<", "\\<") for part in parts[::2]]
    return "`".join(parts)

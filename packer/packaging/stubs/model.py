"""The class ``Model`` of a stub: the tree, its functions and weights by their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .constants import constants_class, globals_class
from .functions import Signature
from .names import Scope, quoted
from .tree import Tree, WeightType

# It finds fewer names than Module's does. The checkers report this at different lines.
_OVERRIDE = "# type: ignore[override]"
_OVERRIDE_PYRIGHT = "# pyright: ignore[reportIncompatibleMethodOverride]"


def model_text(tree: Tree, signatures: Mapping[str, Signature], scope: Scope, library: str) -> str:
    """Return the class of the tree, with the classes that it needs, and the variable ``model``."""
    use = scope.use
    name = scope.public("Model", "ModelTree")
    calls = {f: scope.private(f) for f in signatures}
    weights = scope.private("Weights") if tree.weights else ""
    parts = [_protocol(calls[f], s, scope) for f, s in signatures.items()]
    if weights:
        parts.append(_weights(weights, tree.weights, scope))
    views = {}
    if tree.constants.values or tree.constants.enums:
        views["constants"] = scope.private("Constants")
        parts += constants_class(tree.constants, scope, views["constants"])
    if tree.constants.globals:
        views["globals"] = scope.private("Globals")
        parts.append(globals_class(tree.constants, scope, views["globals"]))
    head = f"@{use('type_check_only')}\nclass {name}({use('Module')}):"
    load = f'cast("{name}", runtime.load("{library}"))'
    lines = [head, f'    """The tree of {library}: ``{load}``."""', ""]
    lines += _look_ups(tree, calls, scope)
    for attribute, class_name in {"weights": weights, **views}.items():
        if class_name:
            lines.append(f"    @{use('property')}")
            lines.append(f"    def {attribute}(self) -> {class_name}: ...")
    lines += _call(tree, signatures, scope)
    parts.append("\n".join(lines))
    if "model" not in tree.functions:
        parts.append(f"model: {name}")
    return "\n\n".join(parts)


def _call(tree: Tree, signatures: Mapping[str, Signature], scope: Scope) -> Iterator[str]:
    """``model(...)``, which calls the entry function; Module's accepts anything."""
    entry = signatures.get(tree.entry)
    function = tree.functions.get(tree.entry)
    if entry is not None and not entry.is_open:
        yield entry.positional().text("__call__", "    ", "self", _OVERRIDE_PYRIGHT)
    elif function is not None and function.makes_executor:
        made = scope.use("GraphExecutor")
        yield f"    def __call__(self, *devices: {scope.use('Any')}) -> {made}: ..."


def _protocol(name: str, signature: Signature, scope: Scope) -> str:
    head = f"class {name}({scope.use('Function')}, {scope.use('Protocol')}):"
    return f"{head}\n{signature.text('__call__', '    ', 'self')}"


def _look_ups(tree: Tree, calls: Mapping[str, str], scope: Scope) -> Iterator[str]:
    """``model[name]``: an overload for each declared function, and one for all others."""
    use = scope.use
    rows = [(_literal([name], scope), call) for name, call in calls.items()]
    unknown = [function for name, function in tree.functions.items() if name not in calls]
    executors = [f.name for f in unknown if f.makes_executor]
    if executors:
        rows.append((_literal(executors, scope), _any_call("GraphExecutor", scope)))
    others = [f.name for f in unknown if not f.makes_executor]
    if not tree.is_complete:
        rows.append((use("str"), _any_call("Any", scope)))
    elif others:
        rows.append((_literal(others, scope), _any_call("Any", scope)))
    if not rows:
        rows.append((use("Never"), _any_call("Any", scope)))
    is_narrow = tree.is_complete
    if len(rows) == 1:
        yield _look_up(*rows[0], _OVERRIDE if is_narrow else "")
        return
    for i, row in enumerate(rows):
        yield f"    @{use('overload')}" + (f"  {_OVERRIDE}" if is_narrow and i == 0 else "")
        yield _look_up(*row, _OVERRIDE_PYRIGHT if is_narrow and row is rows[-1] else "")


def _any_call(result: str, scope: Scope) -> str:
    return f"{scope.use('Callable')}[..., {scope.use(result)}]"


def _literal(names: list[str], scope: Scope) -> str:
    return f"{scope.use('Literal')}[{', '.join(map(quoted, names))}]"


def _look_up(names: str, result: str, mark: str) -> str:
    line = f"    def __getitem__(self, name: {names}, /) -> {result}: ..."
    return f"{line}  {mark}" if mark else line


def _weights(name: str, weights: Mapping[str, WeightType], scope: Scope) -> str:
    """Return the class of the weights; the comments are their types and shapes."""
    use = scope.use
    key = scope.private("weight")
    rows = (f"    {quoted(n)},  # {dtype}{list(shape)}" for n, (dtype, shape) in weights.items())
    names = "\n".join([f"{key}: {use('TypeAlias')} = {use('Literal')}[", *rows, "]"])
    return f"""\
{names}

@{use("type_check_only")}
class {name}({use("Weights")}):
    def __getitem__(self, name: {key}, /) -> {use("Tensor")}: ...  {_OVERRIDE}
    def __iter__(self) -> {use("Iterator")}[{key}]: ...
    def keys(self) -> {use("KeysView")}[{key}]: ..."""

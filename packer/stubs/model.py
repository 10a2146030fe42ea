"""The class ``Model`` of a stub: the tree, its functions and weights by their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from runtime.tensors.tensor import Tensor

from .functions import Signature
from .names import Scope, quoted
from .tree import Tree

# It finds fewer names than Module's does. The checkers report this at different lines.
_OVERRIDE = "# type: ignore[override]"
_OVERRIDE_PYRIGHT = "# pyright: ignore[reportIncompatibleMethodOverride]"


def model_text(tree: Tree, signatures: Mapping[str, Signature], scope: Scope, library: str) -> str:
    """Return the class of the tree, with those that it needs, and the variable ``model``."""
    use = scope.use
    name = scope.public("Model")
    calls = {f: scope.private(f) for f in signatures}
    weights = scope.private("Weights") if tree.weights else ""
    parts = [_protocol(calls[f], s, scope) for f, s in signatures.items()]
    if weights:
        parts.append(_weights(weights, tree.weights, scope))
    head = f"@{use('type_check_only')}\nclass {name}({use('Module')}):"
    load = f'cast("{name}", runtime.load("{library}"))'
    lines = [head, f'    """The tree of {library}: ``{load}``."""', ""]
    lines += _look_ups(tree, calls, scope)
    if weights:
        lines += ["    @property", f"    def weights(self) -> {weights}: ..."]
    if entry := signatures.get(tree.entry):
        lines.append(entry.positional().text("__call__", "    ", "self", _OVERRIDE))
    parts.append("\n".join(lines))
    if "model" not in tree.functions:
        parts.append(f"model: {name}")
    return "\n\n".join(parts)


def _protocol(name: str, signature: Signature, scope: Scope) -> str:
    head = f"class {name}({scope.use('Function')}, {scope.use('Protocol')}):"
    return f"{head}\n{signature.text('__call__', '    ', 'self')}"


def _look_ups(tree: Tree, calls: Mapping[str, str], scope: Scope) -> Iterator[str]:
    """``model[name]``: an overload for each declared function, and one for all others."""
    use = scope.use
    anything = f"{use('Callable')}[..., {use('Any')}]"
    rows = [(f"{use('Literal')}[{quoted(name)}]", call) for name, call in calls.items()]
    executors = [f.name for f in tree.functions.values() if f.makes_executor]
    if executors:
        made = f"{use('Callable')}[..., {use('GraphExecutor')}]"
        rows.append((f"{use('Literal')}[{', '.join(map(quoted, executors))}]", made))
    others = [f.name for f in tree.functions.values() if f.facts is None and not f.makes_executor]
    if not tree.is_complete:
        rows.append((use("str"), anything))
    elif others:
        rows.append((f"{use('Literal')}[{', '.join(map(quoted, others))}]", anything))
    if not rows:
        rows.append((use("Never"), anything))
    is_narrow = tree.is_complete
    if len(rows) == 1:
        yield _look_up(*rows[0], _OVERRIDE if is_narrow else "")
        return
    for i, row in enumerate(rows):
        yield f"    @{use('overload')}" + (f"  {_OVERRIDE}" if is_narrow and i == 0 else "")
        yield _look_up(*row, _OVERRIDE_PYRIGHT if is_narrow and row is rows[-1] else "")


def _look_up(names: str, result: str, mark: str) -> str:
    line = f"    def __getitem__(self, name: {names}, /) -> {result}: ..."
    return f"{line}  {mark}" if mark else line


def _weights(name: str, weights: Mapping[str, Tensor], scope: Scope) -> str:
    """Return the class of the weights; the comments are their types and shapes."""
    use = scope.use
    names = "\n".join(
        f"            {quoted(key)},  # {tensor.dtype}{list(tensor.shape)}"
        for key, tensor in weights.items()
    )
    return f"""\
@{use("type_check_only")}
class {name}({use("Weights")}):
    def __getitem__(  {_OVERRIDE}
        self,
        name: {use("Literal")}[
{names}
        ],
        /,
    ) -> {use("Tensor")}: ..."""

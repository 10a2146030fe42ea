"""The root of a project's tree: the module that no other imports."""

from __future__ import annotations

from collections.abc import Iterator

from runtime.error import near_names

from .table import Table


def find_root(file: Table, library: Table, imports: dict[str, tuple[str, ...]]) -> str:
    """Return the name of the root, and refuse modules that it does not reach."""
    imported = {name for names in imports.values() for name in names}
    tops = [name for name in imports if name not in imported]
    root = library.text("root")
    if root is None:
        if len(tops) > 1:
            text = f"no module imports {', '.join(map(repr, tops))}; name one of them as the root"
            raise library.error(text, "root")
        return tops[0]
    if root not in imports:
        text = f"there is no module {root!r}{near_names(root, list(imports))}"
        raise library.error(text, "root")
    reached = set(_reached(root, imports))
    if lost := [repr(name) for name in imports if name not in reached]:
        names = ", ".join(lost)
        raise file.error(f"the root {root!r} does not reach {names}; import or remove them")
    return root


def _reached(root: str, imports: dict[str, tuple[str, ...]]) -> Iterator[str]:
    pending, seen = [root], {root}
    while pending:
        yield (name := pending.pop())
        pending += [other for other in imports[name] if other not in seen]
        seen.update(imports[name])

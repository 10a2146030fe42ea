"""Pool: many models by name, loaded on demand, closed when memory is short, replaced while in use.

A request takes a module from the pool and holds it for as long as it runs; the pool drops its own
reference when it closes or replaces the model. The module's references thus count the requests in
progress, and its code is unmapped when the last one ends.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock, RLock
from typing import TYPE_CHECKING
from weakref import WeakSet

from ..error import ModelNotFoundError, OutOfMemoryError, PackerError, shown
from ..load import load as load_library
from ..serial.mapped_file import reason_of
from .options import bytes_of, positive
from .statistics import PoolStatistics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from ..module import Module

_SUFFIX = ".so"

_State = tuple[int, int, int, int]
_pools: WeakSet[Pool] = WeakSet()


class Pool:
    """Many models by name: loaded on demand, the least recently used closed first.

    Parameters
    ----------
    source : path, or mapping of str to path
        A folder, whose files ``<name>.so`` are the models; or the file of each name.
    budget : int or str, optional
        The sum of the sizes of the files in memory, at most: bytes, or text such as ``"4 GiB"``
        (units B, KiB, MiB, GiB, TiB). None: no limit.
    limit : int, optional
        The number of models in memory, at most. None: no limit.
    load : function, optional
        Loads a file, given its path: `runtime.load`, or that with options, as
        ``functools.partial(runtime.load, trust=...)``.

    Raises
    ------
    ValueError
        `budget` or `limit` is malformed or not positive.
    TypeError
        `source` is neither a path nor a mapping.

    Notes
    -----
    ``pool[name]`` gives a Module. Hold it for one request, and look it up again for the next one:
    each look-up compares the file with the one in memory, and loads it if it was replaced. A
    look-up that begins after the rename never gives the old version, also if the new one cannot be
    loaded; calls in progress finish on the old one, and its memory is freed when they end. Replace
    a file by a rename, never in place.

    A model that was closed while a caller holds it does not count for the budget any more:
    `statistics` has the number of these. Memory that a model allocates while it runs is not known
    here. The system's dlopen compares a new library with every one in memory: with many thousands
    of models, set a `limit` of some hundreds, and a load stays short.

    Threads may use a pool at the same time. One loads, and the others wait only if they want a
    model that is not in memory. After a fork, parent and child share the pages of the files.

    Examples
    --------
    >>> pool = runtime.Pool("models", budget="4 GiB")  # doctest: +SKIP
    >>> pool["resnet18"]["main"](x)  # doctest: +SKIP
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | Mapping[str, str | os.PathLike[str]],
        *,
        budget: int | str | None = None,
        limit: int | None = None,
        load: Callable[[str], Module] = load_library,
    ) -> None:
        if isinstance(source, Mapping):
            self._paths = {name: os.path.abspath(path) for name, path in source.items()}
            self._folder = None
        else:
            self._paths = {}
            self._folder = os.path.abspath(source)
        self._budget = None if budget is None else positive("budget", bytes_of(budget))
        self._limit = None if limit is None else positive("limit", limit)
        self._load = load
        # The models in memory, the least recently used first.
        self._models: OrderedDict[str, tuple[_State, Module]] = OrderedDict()
        self._nbytes = 0
        self._draining: WeakSet[Module] = WeakSet()
        self._counts = dict.fromkeys(("hits", "loads", "replaced", "evicted", "failed"), 0)
        self._make_locks()
        _pools.add(self)

    def __getitem__(self, name: str) -> Module:
        """Return the model of this name, loaded from the file as it is now.

        Raises
        ------
        ModelNotFoundError
            There is no such file.
        OutOfMemoryError
            The file is larger than the budget.
        PackerError
            It cannot be loaded, as `load` says.
        """
        try:
            path = self._path(name)
            return self._resident(name, _state_of(path)) or self._loaded(name, path)
        except PackerError:
            with self._lock:  # what is in memory is not the model any more
                dropped = self._drop(name) if name in self._models else None
                self._counts["failed"] += 1
            del dropped
            raise

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names, sorted."""
        if self._folder is None:
            return iter(sorted(self._paths))
        names = (name for name in os.listdir(self._folder) if name.endswith(_SUFFIX))
        return iter(sorted(name.removesuffix(_SUFFIX) for name in names))

    def __len__(self) -> int:
        """Return the number of names."""
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        """Return True if there is a file of this name; it is not loaded."""
        try:
            _state_of(self._path(name))
        except ModelNotFoundError:
            return False
        return True

    def statistics(self) -> PoolStatistics:
        """Return what the pool has done, and what it holds."""
        with self._lock:
            held = len(self._models), self._nbytes, len(self._draining)
            return PoolStatistics(*held, **self._counts)

    def close(self) -> None:
        """Drop every model; calls in progress finish. A later look-up loads again."""
        with self._lock:
            dropped = [self._drop(name) for name in list(self._models)]
        del dropped  # their destructors run here, without the lock

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Pool({self._folder or f'{len(self._paths)} files'!r})"

    # ---- One look-up

    def _path(self, name: object) -> str:
        """Return the file of a name; only the caller's mapping can name a file elsewhere."""
        if not isinstance(name, str):
            raise TypeError(f"name of a model: expected a str, found {name!r}")
        if self._folder is None:
            if name not in self._paths:
                text = f"{self!r}: no model {shown(name)}"
                raise ModelNotFoundError(text, name=name)
            return self._paths[name]
        if "/" in name or name.startswith("."):
            text = (
                f"{self._folder}: no model {shown(name)}, expected the name of a file without .so"
            )
            raise ModelNotFoundError(text, name=name)
        return f"{self._folder}/{name}{_SUFFIX}"

    def _resident(self, name: str, state: _State) -> Module | None:
        """Return the module in memory, if it is of the file as it is now."""
        with self._lock:
            found = self._models.get(name)
            if found is None or found[0] != state:
                return None
            self._models.move_to_end(name)
            self._counts["hits"] += 1
            return found[1]

    def _loaded(self, name: str, path: str) -> Module:
        """Load a model, unless another thread did meanwhile."""
        with self._loading:
            state = _state_of(path)
            found = self._resident(name, state)
            if found is not None:
                return found
            self._make_room(name, path, state)
            module = self._load(path)
            if _state_of(path) == state:  # else it was replaced, and the next look-up loads again
                self._keep(name, state, module)
        return module

    def _make_room(self, name: str, path: str, state: _State) -> None:
        """Drop the old version, and then the least recently used until the new one has room."""
        nbytes = state[2]
        if self._budget is not None and nbytes > self._budget:
            text = f"{path}: {nbytes} bytes, and the budget of the pool is {self._budget}"
            raise OutOfMemoryError(f"{text}: raise `budget`")
        dropped = []
        with self._lock:
            if name in self._models:
                dropped.append(self._drop(name))
                self._counts["replaced"] += 1
            while self._is_full(nbytes):
                dropped.append(self._drop(next(iter(self._models))))
                self._counts["evicted"] += 1

    def _is_full(self, nbytes: int) -> bool:
        if not self._models:
            return False
        if self._limit is not None and len(self._models) >= self._limit:
            return True
        return self._budget is not None and self._nbytes + nbytes > self._budget

    def _keep(self, name: str, state: _State, module: Module) -> None:
        with self._lock:
            self._counts["loads"] += 1
            self._models[name] = state, module
            self._nbytes += state[2]
            self._draining.discard(module)

    def _drop(self, name: str) -> Module:
        """Take a model out; the caller, who holds the lock, frees it without the lock."""
        state, module = self._models.pop(name)
        self._nbytes -= state[2]
        self._draining.add(module)
        return module

    def _make_locks(self) -> None:
        """Make the locks, again in a child: a thread that held one does not exist there."""
        self._lock = Lock()  # of the state above, for moments
        self._loading = RLock()  # of one load; `load` itself loads one library at a time
        self._nbytes = sum(state[2] for state, _ in self._models.values())


def _state_of(path: str) -> _State:
    """Return what identifies the file's contents; raises ModelNotFoundError."""
    try:
        stat = os.stat(path)
    except (OSError, ValueError) as error:
        why = reason_of(error)
        name = os.path.basename(path).removesuffix(_SUFFIX)
        raise ModelNotFoundError(f"{shown(path)}: no model: {why}", name=name) from None
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns


def _after_fork() -> None:
    for pool in _pools:
        pool._make_locks()


os.register_at_fork(after_in_child=_after_fork)

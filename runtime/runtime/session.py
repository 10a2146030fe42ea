"""Session: the state of a model from call to call, as the keys and values of its tokens."""

from __future__ import annotations

from ._core import Session as CoreSession
from .module import preorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .graph.model_record import TensorInfo
    from .module import Module


class Session:
    """The state of a model, as calls leave it: ``session["main"](ids)``.

    ``module.session()`` makes one. The export says which inputs and outputs of a model are its
    state; its functions have neither, and are called by a session only.

    Notes
    -----
    One call uses a session at a time; several sessions of one module may be used by several
    threads. A call that raises leaves the state as it was.

    Examples
    --------
    ::

        session = runtime.load("model.so").session()
        main = session["main"]
        logits = main(prompt)
        logits = main(token)
    """

    def __init__(self, module: Module, maximum: int | None = None) -> None:
        if maximum is not None and maximum < 1:
            raise ValueError(f"session: maximum, expected at least 1, found {maximum!r}")
        self._module = module
        self._core = CoreSession(maximum or 0)

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """Find a function of the module or its imports; its calls use this session.

        Raises
        ------
        FunctionNotFoundError
            The tree has none of this name.
        """
        for module in preorder(self._module):
            if (function := module.find_with(self._core, name)) is not None:
                return function
        return self._module[name]  # raises: it is not found

    @property
    def length(self) -> int:
        """The rows that calls appended, as tokens; 0 for a model that only replaces its state.

        Raises
        ------
        RuntimeError
            A call uses the session.
        """
        return self._core.length

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """The inputs of the model, without its state: as `Module.inputs`.

        Raises
        ------
        BlobFormatError
            The record is malformed; another program wrote or changed it.
        """
        return self._module.inputs

    def reset(self) -> None:
        """Forget the state, and keep its memory.

        Raises
        ------
        RuntimeError
            A call uses the session.
        """
        self._core.reset()

    def fork(self) -> Session:
        """Make a session with the same state, whose memory both share until one changes it.

        Raises
        ------
        RuntimeError
            A call uses the session.
        """
        fork = Session.__new__(Session)
        fork._module, fork._core = self._module, self._core.fork()
        return fork

    def __repr__(self) -> str:
        return f"<Session of {self._module!r}>"

"""const_loader: constants, passed to the host code that needs them on its first use.

    vector<string> names, u64 n, n x NDArray
    vector<string> symbols, u64 m, m x vector<string>   the constants that each symbol takes

The first look-up of a listed symbol calls ``__init_<symbol>(arrays...)`` of the first import that
has it. Code that TVM compiled takes the arrays as one Array, here a tuple.
(TVM, src/runtime/const_loader_module.cc)
"""

from __future__ import annotations

from _thread import RLock

from ..abi import BINARY_SERIALIZABLE
from ..error import ExportError, PackerError
from ..module import Module
from ..tensors.ndarray import read_named_arrays, write_named_arrays
from ..tensors.tensor import tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from ..serial.stream import Reader, Writer
    from ..tensors.tensor import Tensor

# TVM's names for the function that returns all constants: until 2025, and since.
GET_CONST_VARS = ("get_const_var_ndarray", "get_const_var_tensor")


class ConstLoaderModule(Module):
    """Constants of the host code that it imports.

    Parameters
    ----------
    const_vars : mapping of str to Tensor or buffer
        The constants by name; viewed, not copied.
    const_vars_by_symbol : mapping of str to sequence of str
        For each host function the names of the constants that its ``__init_`` function takes.

    Raises
    ------
    ExportError
        A symbol lists an unknown constant.

    Notes
    -----
    Every function is looked up in the imports. ``get_const_var_ndarray()`` returns the constants.
    The tensors that ``__init_`` functions receive are valid while this module is alive.
    """

    type_key = "const_loader"
    property_mask = BINARY_SERIALIZABLE

    def __init__(
        self,
        const_vars: Mapping[str, Any],
        const_vars_by_symbol: Mapping[str, Sequence[str]],
    ) -> None:
        self._dialect = "tvm"
        self.const_vars: dict[str, Tensor] = {n: tensor(a) for n, a in const_vars.items()}
        self.const_vars_by_symbol = {s: tuple(names) for s, names in const_vars_by_symbol.items()}
        self._initialized: set[str] = set()
        self._lock = RLock()
        for symbol, names in self.const_vars_by_symbol.items():
            if missing := [name for name in names if name not in self.const_vars]:
                text = f"const_loader: {symbol!r} needs unknown constants {missing}"
                raise ExportError(text, module=self.type_key)

    def find_function(self, name: str) -> Callable[..., Any] | None:
        """Find a function of the imports, after its constants were passed to it."""
        if name in GET_CONST_VARS:
            return lambda: dict(self.const_vars)
        self._hand_over(name)
        return self._find_in_imports(name)

    def _hand_over(self, name: str) -> None:
        if name in self.const_vars_by_symbol and name not in self._initialized:
            with self._lock:  # a call releases the GIL
                self._initialize(name)

    def _initialize(self, symbol: str) -> None:
        initialize = self._find_in_imports(f"__init_{symbol}")
        if initialize is None or symbol in self._initialized:
            return
        arrays = tuple(self.const_vars[name] for name in self.const_vars_by_symbol[symbol])
        is_theirs = self._dialect == "tvm-ffi" and getattr(initialize, "signature", "") is None
        result = initialize(arrays) if is_theirs else initialize(*arrays)
        if result not in (None, 0):
            raise PackerError(f"const_loader: __init_{symbol} returned {result!r}, expected 0")
        self._initialized.add(symbol)

    def _find_in_imports(self, name: str) -> Callable[..., Any] | None:
        """Search the imports; for a const_loader among them, search its imports instead."""
        seen: set[int] = set()
        pending = self._imports[::-1]
        while pending:
            module = pending.pop()
            if id(module) in seen:
                continue
            seen.add(id(module))
            if type(module) is ConstLoaderModule:
                module._hand_over(name)
                pending.extend(reversed(module._imports))
            elif (function := module.find_function(name)) is not None:
                return function
        return None

    def function_names(self) -> list[str]:
        """The function that returns all constants, by both names."""
        return list(GET_CONST_VARS)

    @property
    def own_weights(self) -> Mapping[str, Tensor]:
        """The constants."""
        return self.const_vars

    def save(self, path: str | os.PathLike[str], fmt: str = "") -> None:
        """Write the constants as a params dict file, without the symbols that take them.

        Raises
        ------
        PackerError
            `fmt` is not ``"params"``.
        """
        if fmt not in ("", "params"):
            super().save(path, fmt)
        from ..tensors.params import save_param_dict_to_file

        save_param_dict_to_file(self.const_vars, path)

    def save_to_binary(self, writer: Writer) -> None:
        """Write constants, then the names that each symbol takes."""
        write_named_arrays(writer, self.const_vars)
        writer.write_vector(self.const_vars_by_symbol, writer.write_string)
        writer.write_vector(
            self.const_vars_by_symbol.values(),
            lambda names: writer.write_vector(names, writer.write_string),
        )


def decode(reader: Reader, type_key: str) -> ConstLoaderModule:
    """Read the payload of ``const_loader``, or of its alias ``metadata``."""
    del type_key
    const_vars = read_named_arrays(reader)
    symbols = reader.read_vector(reader.read_name)
    names = reader.read_vector(lambda: reader.read_vector(reader.read_name))
    module = ConstLoaderModule(const_vars, dict(zip(symbols, names, strict=True)))
    module._dialect = reader.dialect
    return module
